"""AMD cards: the kernel lists them, amd-smi or rocm-smi tells the rest. Asked through the GPU loop."""

from __future__ import annotations

import time

from fleettui.fleet.doctor.check import Outcome, failed, passed, warned
from fleettui.fleet.doctor.context import Context, NoAnswer
from fleettui.fleet.doctor.gpu_answer import AmdAnswer
from fleettui.model.machine import Machine
from fleettui.probes.clean import clean_text
from fleettui.probes.frames import Section
from fleettui.view.units import count

_NOTHING = Section(127, b"")
_AMD_WORDS = ("amd", "radeon", "instinct", "firepro", "mi1", "mi2", "mi3", "rx ")
_TOOL_CASES = {
    75: (
        "an earlier call still hangs; no second one is started",
        "a call in state D ends only with a reboot",
    ),
    124: ("did not answer within its time limit and was ended", "see dmesg for amdgpu errors"),
}


def read_amd_cards(cards: Section, tool: Section) -> AmdAnswer:
    """Sections `amd` and `amd-find`; other exit codes than 0 and 6 of the first: no card."""
    lines = [clean_text(line, 60) for line in cards.payload.split(b"\n")]
    if cards.exit_code not in (0, 6):
        return AmdAnswer()
    unbound = tuple(line.removeprefix("unbound ") for line in lines if line.startswith("unbound "))
    path = clean_text(tool.payload) if tool.exit_code == 0 else ""
    return AmdAnswer(sum(line.startswith("card ") for line in lines), unbound, path)


def is_about_amd(machine: Machine, answer: AmdAnswer) -> bool:
    """AMD cards are what is to be checked; a graphics unit beside a declared NVIDIA card is not."""
    if not answer.has_cards:
        return False
    declared = [gpu.model.lower() for gpu in machine.gpus or ()]
    return not declared or any(word in model for model in declared for word in _AMD_WORDS)


def judge_amd_tool(answer: AmdAnswer) -> Outcome:
    """amd-smi or rocm-smi: where, and how fast."""
    if not answer.tool:
        return warned(
            "neither amd-smi nor rocm-smi found: memory, load and temperature are read from the kernel",
            "install ROCm's amd-smi for names and processes",
        )
    if answer.is_late:
        return failed(
            f"{answer.tool} did not answer within 3 s and was ended",
            "run it there; see dmesg for amdgpu errors",
            answer.took_s,
        )
    if answer.exit_code == 76:
        return passed(f"{answer.tool}, not called: a card sleeps")
    if answer.exit_code in _TOOL_CASES:
        what, hint = _TOOL_CASES[answer.exit_code]
        return failed(f"{answer.tool}: {what}", hint, answer.took_s)
    if answer.exit_code:
        hint = "run it there and see what it says"
        if "ermission" in answer.said or "groups" in answer.said or "is not member" in answer.said:
            hint = "add the user to the groups render and video (counts from the next login)"
        return failed(f"{answer.tool} failed: {answer.said or f'exit code {answer.exit_code}'}", hint)
    return passed(f"{answer.tool} in {answer.took_s * 1000:.0f} ms", answer.took_s)


def judge_amd_driver(answer: AmdAnswer, machine: Machine) -> Outcome:
    """The amdgpu driver and the cards it shows against the file."""
    if answer.unbound:
        return failed(
            f"no driver for {', '.join(answer.unbound[:4])}",
            "load it (modprobe amdgpu), or install the driver for this kernel",
        )
    evidence = f"amdgpu, {count(answer.cards, 'GPU')}"
    declared = len(machine.gpus or ())
    if answer.cards < declared:
        return warned(
            f"{evidence}; the file declares {declared}",
            "is a card lost (dmesg, lspci), or the file out of date?",
        )
    return passed(evidence)


async def ask_amd_tool(context: Context, answer: AmdAnswer, limit_s: float) -> AmdAnswer:
    """One call of the tool that was found."""
    if not answer.tool:
        return answer
    asked_at = time.monotonic()
    try:
        frame = await context.ask("gpu", "amd-static", limit_s=limit_s)
    except NoAnswer as silence:
        if not silence.is_late:
            raise
        return AmdAnswer(answer.cards, answer.unbound, answer.tool, took_s=limit_s, is_late=True)
    section = frame.sections.get("amd-static", _NOTHING)
    text = section.payload.partition(b"\n")[2]
    has_json = b'{"' in text or b'"gpu"' in text
    code = 0 if has_json and section.exit_code < 64 else section.exit_code  # warnings cost an exit code too
    said = clean_text(text, 120) if code else ""
    return AmdAnswer(answer.cards, answer.unbound, answer.tool, code, said, time.monotonic() - asked_at)
