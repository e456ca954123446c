"""The GPU tool, the driver under it, persistence mode. Asked through the GPU loop with its protections:
never while another call hangs, never waking sleeping cards, ended with the channel when it is late."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from fleettui.fleet.doctor.check import LIMIT_S, Check, Outcome, failed, passed, skipped, warned
from fleettui.fleet.doctor.context import Context, NoAnswer
from fleettui.fleet.doctor.gpu_amd import (
    ask_amd,
    declares_nvidia,
    judge_amd_driver,
    judge_amd_tool,
)
from fleettui.fleet.doctor.gpu_answer import AmdAnswer, GpuAnswer
from fleettui.fleet.doctor.gpu_hints import LINUX_HINTS, WINDOWS_HINTS
from fleettui.fleet.doctor.gpu_windows import ask_windows, judge_silence
from fleettui.fleet.doctor.shell import not_without_posix
from fleettui.model.doctor import CheckState
from fleettui.model.gpu import GpuProblem, GpuProblemCode, GpuReading
from fleettui.model.machine import Machine
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.clean import clean_text
from fleettui.probes.frames import Section
from fleettui.probes.nvidia import gpu_section, parse_gpus, query_fields
from fleettui.probes.nvidia_condition import condition_fields, condition_section, parse_condition
from fleettui.view.units import count

_DETAIL_SHOWN = 120
_ALWAYS_THE_SAME: tuple[GpuProblemCode, ...] = (
    "no_tool", "no_devices", "version_mismatch", "driver_not_running", "library_missing", "no_permission",
)  # fmt: skip
"""Problems that nvidia-smi tells in one sentence only."""
SLOW_S = 2.0
"""Slower calls make figures old; a driver that is loaded anew for each call takes 2 to 10 s."""
_NOTHING = Section(127, b"")
_ORDER: tuple[CheckState, ...] = ("skip", "pass", "warn", "fail")

_OF_THE_TOOL: tuple[GpuProblemCode, ...] = (
    "no_tool", "cannot_run", "hung", "timed_out", "killed", "usage_error", "unreadable",
)  # fmt: skip
"""Problems of nvidia-smi itself; the others are the driver's."""


def judge_tool(answer: GpuAnswer, machine: Machine, hints: Mapping[str, str] = LINUX_HINTS) -> Outcome:
    """Was nvidia-smi found, where, and how fast does it answer?"""
    reading = answer.reading
    problem = reading.problem if reading is not None else None
    if answer.is_late:
        return failed(
            f"{answer.path or 'nvidia-smi'} did not answer within {LIMIT_S:g} s and was ended",
            hints["late"],
            answer.took_s,
        )
    if not answer.path and (problem is None or problem.code == "no_tool"):
        if machine.declares_gpus:
            declared = count(len(machine.gpus or ()), "GPU")
            return failed(
                f"no nvidia-smi in PATH and the usual places; the file declares {declared}", hints["no_tool"]
            )
        return skipped("no GPU tool found, and the file declares no GPU")
    took = f"{answer.took_s * 1000:.0f} ms" if answer.took_s < 1 else f"{answer.took_s:.1f} s"
    if problem is not None and problem.code in _OF_THE_TOOL:
        return failed(_tell(problem), hints[problem.code], answer.took_s)
    if problem is not None and problem.code == "asleep":
        return passed(f"{answer.path}, not called: every GPU sleeps", answer.took_s)
    if answer.took_s >= SLOW_S:
        return warned(f"{answer.path} takes {took}", hints["slow"], answer.took_s)
    return passed(f"{answer.path} in {took}", answer.took_s)


def judge_driver(
    answer: GpuAnswer,
    machine: Machine,
    user: str,
    hints: Mapping[str, str] = LINUX_HINTS,
    other_cards: int = 0,
) -> Outcome:
    """Does the driver show the cards that the file declares? `other_cards`: those of another vendor."""
    reading = answer.reading
    if reading is None:
        return skipped("no answer of a GPU tool")
    problem = reading.problem
    if problem is not None and problem.code == "asleep":
        return skipped("every GPU sleeps and is not woken")
    if problem is not None and problem.code == "no_tool":
        return skipped("no GPU tool")
    if problem is not None:
        hint = hints.get(problem.code, "run nvidia-smi there and see what it says").format(user=user)
        if problem.code == "no_devices" and not machine.declares_gpus:
            return warned(problem.text, "write `gpu: []` into the machine file if it has none")
        return failed(_tell(problem), hint)
    return _judge_cards(reading, len(machine.gpus or ()) - other_cards, hints)


def _tell(problem: GpuProblem) -> str:
    """What it is, with the tool's own words where they differ; what to do stands in the hint."""
    what, _, advice = problem.text.partition(":")
    if advice.endswith(")") and "(library " in advice:
        what += advice[advice.index(" (library ") :]
    said = clean_text(problem.detail, _DETAIL_SHOWN)
    return f"{what}; it says {said!r}" if said and problem.code not in _ALWAYS_THE_SAME else what


def _judge_cards(reading: GpuReading, declared: int, hints: Mapping[str, str]) -> Outcome:
    faults = [*reading.faults, *(card.fault for card in reading.cards if card.fault is not None)]
    if faults:
        return failed("; ".join(fault.text for fault in faults[:3]), hints["fault"])
    versions = list(
        dict.fromkeys(card.driver for card in reading.cards if not isinstance(card.driver, Unknown))
    )
    names = list(dict.fromkeys(card.name for card in reading.cards if not isinstance(card.name, Unknown)))
    seen = (
        f"{count(len(reading.cards), 'GPU')}: {', '.join(names)}"
        if names
        else count(len(reading.cards), "GPU")
    )
    evidence = clean_text(f"{' and '.join(versions) or 'version unknown'}, {seen}")
    if len(reading.cards) < declared:
        return warned(f"{evidence}; the file declares {declared}", hints["missing"])
    if reading.warnings:
        return warned(f"{evidence}; {reading.warnings[0]}", "see what nvidia-smi prints below its rows")
    return passed(evidence)


def judge_persistence(modes: Sequence[Maybe[bool]]) -> Outcome:
    """Without persistence mode the driver is loaded anew for calls while nothing uses the card."""
    known = [mode for mode in modes if not isinstance(mode, Unknown)]
    if not known:
        return skipped("not reported by this driver")
    if all(known):
        return passed("on")
    off = known.count(False)
    which = "off" if off == len(known) else f"off on {off} of {len(known)} GPUs"
    return warned(
        f"{which}; the driver is loaded anew while nothing uses the card",
        "sudo nvidia-smi -pm 1, or enable nvidia-persistenced",
    )


def join_outcomes(first: Outcome, second: Outcome) -> Outcome:
    """One outcome for the cards of two vendors: both told, the worse one counts."""
    worse = max((first, second), key=lambda outcome: _ORDER.index(outcome.state))
    hints = [outcome.hint for outcome in (first, second) if outcome.hint is not None]
    took = [outcome.took_s for outcome in (first, second) if outcome.took_s is not None]
    told = f"{first.evidence}; {second.evidence}"
    return Outcome(worse.state, told, "; ".join(hints) or None, sum(took) if took else None)


async def _check_tool(context: Context) -> Outcome:
    if context.is_windows:
        answer = await ask_windows(context)
        silence = judge_silence(answer)
        context.gpu = answer if silence is None else None
        return silence or judge_tool(answer, context.machine, WINDOWS_HINTS)
    until = time.monotonic() + LIMIT_S
    first = await context.ask("gpu", "find", "amd", "amd-kind", "amd-find")
    path = clean_text(first.sections.get("find", _NOTHING).payload)
    gpu = context.gpu = await _ask_nvidia(context, path, until)
    amd = context.amd = await ask_amd(context, first, gpu.reading)
    if amd is None:
        return judge_tool(gpu, context.machine)
    if is_amd_all(amd, gpu, context.machine):
        return judge_amd_tool(amd)
    return join_outcomes(judge_tool(gpu, context.machine), judge_amd_tool(amd))


def is_amd_all(amd: AmdAnswer, gpu: GpuAnswer, machine: Machine) -> bool:
    """Nothing of NVIDIA is there, nor missing."""
    is_missing = len(amd.cards) < len(machine.gpus or ()) and declares_nvidia(machine)
    return amd.is_alone and not gpu.path and not is_missing


async def _ask_nvidia(context: Context, path: str, until: float) -> GpuAnswer:
    """Ask nvidia-smi for the cards; again without a field that the driver refuses."""
    refused: frozenset[str] = frozenset()
    while True:
        asked_at = time.monotonic()
        try:
            frame = await context.ask("gpu", gpu_section(refused), limit_s=until - asked_at)
        except NoAnswer as silence:
            if not silence.is_late:
                raise
            return GpuAnswer(path, took_s=LIMIT_S, is_late=True)
        section = frame.sections.get("gpu", _NOTHING)
        reading = parse_gpus(section.payload, section.exit_code, query_fields(refused))
        new = refused.union(reading.unsupported_fields)
        if new == refused:
            return GpuAnswer(path, reading, time.monotonic() - asked_at)
        refused = new


async def _ask_persistence(context: Context) -> tuple[Maybe[bool], ...]:
    """Persistence mode of each card; empty where the driver does not tell."""
    until = time.monotonic() + LIMIT_S
    refused: frozenset[str] = frozenset()
    while True:
        request = condition_section(refused)
        frame = await context.ask("gpu", request, limit_s=until - time.monotonic())
        section = frame.sections.get("condition", _NOTHING)
        answer = parse_condition(section.payload, section.exit_code, condition_fields(refused))
        if answer.refused is None or answer.refused in refused:
            return tuple(card.has_persistence for card in answer.cards)
        refused |= {answer.refused}


async def _check_driver(context: Context) -> Outcome:
    machine, amd, gpu = context.machine, context.amd, context.gpu or GpuAnswer("")
    declared = len(machine.gpus or ())
    if amd is not None and is_amd_all(amd, gpu, machine):
        return judge_amd_driver(amd, declared)
    account = context.account
    user = account.user if account is not None and not isinstance(account.user, Unknown) else "the user"
    if amd is None:
        return judge_driver(gpu, machine, user, WINDOWS_HINTS if context.is_windows else LINUX_HINTS)
    own = len(gpu.reading.cards) if gpu.reading is not None else 0
    return join_outcomes(
        judge_driver(gpu, machine, user, other_cards=len(amd.cards)),
        judge_amd_driver(amd, 0 if own else declared),
    )


async def _check_persistence(context: Context) -> Outcome:
    answer = context.gpu
    if context.amd is not None and answer is not None and is_amd_all(context.amd, answer, context.machine):
        return skipped("NVIDIA only")
    problem = answer.reading.problem if answer is not None and answer.reading is not None else None
    if problem is not None:
        is_asleep = problem.code == "asleep"
        return skipped("every GPU sleeps and is not woken" if is_asleep else "no GPU to ask")
    return judge_persistence(await _ask_persistence(context))


def not_without_gpus(context: Context) -> str | None:
    """Nothing to look for: the file says so."""
    return "declared CPU-only" if context.machine.is_cpu_only else None


def not_without_nvidia_gpus(context: Context) -> str | None:
    """Nothing to look for, or no such mode: Windows loads its driver once."""
    return not_without_gpus(context) or not_without_posix(context)


GPU_CHECKS = (
    Check(
        "gpu_tool", "GPU tool", _check_tool, ("authentication", "shell"), not_without_gpus, has_own_limit=True
    ),
    Check("driver", "driver", _check_driver, ("gpu_tool",), not_without_gpus),
    Check("persistence", "persistence", _check_persistence, ("driver",), not_without_nvidia_gpus),
)
