"""AMD cards: the kernel lists them, amd-smi or rocm-smi tells the rest. Asked through the GPU loop, and read
by the record that the dashboard reads them with."""

from __future__ import annotations

import time

from fleettui.fleet.amd_record import AmdRecord
from fleettui.fleet.doctor.check import LIMIT_S, Outcome, failed, passed, warned
from fleettui.fleet.doctor.context import Context, NoAnswer
from fleettui.fleet.doctor.gpu_answer import AmdAnswer
from fleettui.model.gpu import GpuCard, GpuProblem, GpuProblemCode, GpuReading
from fleettui.model.machine import Machine
from fleettui.model.unknown import Unknown
from fleettui.probes.amd_json import read_document
from fleettui.probes.amd_problems import read_amd_problem, split_tool
from fleettui.probes.clean import clean_text
from fleettui.probes.frames import Frame, Section
from fleettui.view.units import count

_NOTHING = Section(127, b"")
_AMD_WORDS = ("amd", "radeon", "instinct", "firepro", "mi1", "mi2", "mi3", "rx ")
_HINTS: dict[GpuProblemCode, str] = {
    "no_permission": "add the user to the groups render and video (counts from the next login)",
    "driver_not_running": "load it (modprobe amdgpu), or install the driver for this kernel",
    "no_devices": "is the card seated and powered? see lspci and dmesg",
    "hung": "a call in state D ends only with a reboot; see dmesg for amdgpu errors",
    "timed_out": "run it there; see dmesg for amdgpu errors",
    "killed": "was the machine out of memory? see dmesg",
}
_ELSE = "run it there and see what it says"
_NO_ANSWER_CODES = frozenset({"hung", "timed_out", "killed"})


async def ask_amd(context: Context, first: Frame, other: GpuReading | None) -> AmdAnswer | None:
    """What AMD's side of the machine says; None: nothing of AMD is there, nor missing.

    `first`: a frame with `amd amd-kind amd-find`; `other`: what nvidia-smi said. The tool is called once.
    """
    record = AmdRecord()
    record.take(first, time.time(), context.machine, other)
    tool = clean_text(first.sections.get("amd-find", _NOTHING).payload)
    problem, took_s, is_late = None, 0.0, False
    if tool and "amd-static" in record.tool_due(time.time(), wants_processes=False):
        asked_at = time.monotonic()
        try:
            frame = await context.ask("gpu", "amd-static")
        except NoAnswer as silence:
            if not silence.is_late:
                raise
            is_late = True
        else:
            record.take(frame, time.time(), context.machine, other)
            problem = read_tool_problem(frame.sections.get("amd-static", _NOTHING))
        took_s = time.monotonic() - asked_at
    reading = record.join(other)
    cards = tuple(card for card in reading.cards if card.vendor == "amd") if reading is not None else ()
    is_alone = record.is_alone(other)
    lacking = None if reading is None else reading.problem if is_alone else reading.amd_problem
    if not cards and lacking is None:
        return None
    return AmdAnswer(cards, None if cards else lacking, tool, problem, took_s, is_late, is_alone)


def read_tool_problem(section: Section) -> GpuProblem | None:
    """Why section `amd-static` has no list; warnings around a list, and their exit code, are none."""
    name, text = split_tool(section.payload)
    document, lines = read_document(text)
    return None if document is not None else read_amd_problem(name, lines, section.exit_code)


def declares_nvidia(machine: Machine) -> bool:
    """The file declares a card whose name has nothing of AMD."""
    models = [gpu.model.lower() for gpu in machine.gpus or ()]
    return any(model and not any(word in model for word in _AMD_WORDS) for model in models)


def judge_amd_tool(answer: AmdAnswer) -> Outcome:
    """amd-smi or rocm-smi: where, and how fast. What the kernel shows is read without it."""
    if not answer.tool:
        return warned(
            "neither amd-smi nor rocm-smi found: memory, load and temperature are read from the kernel",
            "install ROCm's amd-smi for names and processes",
        )
    if answer.is_late:
        return failed(
            f"{answer.tool} did not answer within {LIMIT_S:g} s and was ended",
            _HINTS["timed_out"],
            answer.took_s,
        )
    problem = answer.tool_problem
    if problem is None:
        if not answer.took_s:
            return passed(f"{answer.tool}, not called: no card to ask about")
        return passed(f"{answer.tool} in {answer.took_s * 1000:.0f} ms", answer.took_s)
    if problem.code == "asleep":
        return passed(f"{answer.tool}, not called: a card sleeps")
    what, hint = _split(problem)
    outcome = failed if problem.code in _NO_ANSWER_CODES else warned
    own = what.removeprefix(f"{answer.tool.rpartition('/')[2]} ")
    told = f"{answer.tool} {own}" if own != what else f"{answer.tool}: {what}"
    return outcome(told, hint, answer.took_s)


def judge_amd_driver(answer: AmdAnswer, declared: int) -> Outcome:
    """The amdgpu driver and the cards it shows. `declared`: how many are expected of it."""
    if answer.problem is not None:
        what, hint = _split(answer.problem)
        return failed(what, hint)
    evidence = describe_amd_cards(answer.cards)
    if len(answer.cards) < declared:
        return warned(
            f"{evidence}; the file declares {declared}",
            "is a card lost (dmesg, lspci), or the file out of date?",
        )
    return passed(evidence)


def describe_amd_cards(cards: tuple[GpuCard, ...]) -> str:
    """`amdgpu 6.12.12, 2 GPUs: AMD Instinct MI300X`."""
    drivers = dict.fromkeys(card.driver for card in cards if not isinstance(card.driver, Unknown))
    names = dict.fromkeys(card.name for card in cards if not isinstance(card.name, Unknown))
    driver = " ".join(("amdgpu", *(text for text in drivers if text != "amdgpu")))
    seen = count(len(cards), "GPU")
    return clean_text(f"{driver}, {seen}: {', '.join(names)}" if names else f"{driver}, {seen}")


def _split(problem: GpuProblem) -> tuple[str, str]:
    """What it is, with the bus ids or the tool's own words; and what to do."""
    what, _, advice = problem.text.partition("; see its own text")[0].partition(": ")
    said = clean_text(problem.detail, 120)
    told = f"{what} ({said})" if problem.code == "driver_not_running" and said else what
    if problem.code not in ("driver_not_running", "no_permission", "asleep") and said:
        told = f"{what}; it says {said!r}"
    return told, _HINTS.get(problem.code, advice or _ELSE)
