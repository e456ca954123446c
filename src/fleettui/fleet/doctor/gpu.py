"""The GPU tool, the driver under it, persistence mode. Asked through the GPU loop with its protections:
never while another call hangs, never waking sleeping cards, ended with the channel when it is late."""

from __future__ import annotations

import time
from collections.abc import Sequence

from fleettui.fleet.doctor.check import LIMIT_S, Check, Outcome, failed, passed, skipped, warned
from fleettui.fleet.doctor.context import Context, NoAnswer
from fleettui.fleet.doctor.gpu_amd import (
    ask_amd_tool,
    is_about_amd,
    judge_amd_driver,
    judge_amd_tool,
    read_amd_cards,
)
from fleettui.fleet.doctor.gpu_answer import GpuAnswer
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

_OF_THE_TOOL: tuple[GpuProblemCode, ...] = (
    "no_tool", "cannot_run", "hung", "timed_out", "killed", "usage_error", "unreadable",
)  # fmt: skip
"""Problems of nvidia-smi itself; the others are the driver's."""

_HINTS: dict[GpuProblemCode, str] = {
    "no_tool": "install the NVIDIA driver, or link nvidia-smi into /usr/local/bin",
    "cannot_run": "reinstall the driver's user space, it does not fit this system",
    "hung": "look at dmesg for Xid errors; a call in state D ends only with a reboot",
    "timed_out": "look at dmesg for Xid errors; it may only be slow: turn persistence mode on",
    "killed": "was the machine out of memory? see dmesg",
    "usage_error": "the driver is very old or another program has this name",
    "unreadable": "run nvidia-smi there and see what it says",
    "no_devices": "is the card seated and powered? see lspci and dmesg",
    "version_mismatch": "reboot, or reload the nvidia modules: the driver was updated since they were loaded",
    "driver_not_running": "is the module built for this kernel and loaded? see dkms status, modprobe nvidia",
    "library_missing": "reinstall the driver's user space (libnvidia-ml.so)",
    "no_permission": "add {user} to the group of /dev/nvidia* (video or render; counts from the next login)",
    "nvml_failed": "see dmesg for NVRM lines; a reboot often helps",
}


def judge_tool(answer: GpuAnswer, machine: Machine) -> Outcome:
    """Was nvidia-smi found, where, and how fast does it answer?"""
    reading = answer.reading
    problem = reading.problem if reading is not None else None
    if not answer.path and (problem is None or problem.code == "no_tool"):
        if machine.declares_gpus:
            declared = count(len(machine.gpus or ()), "GPU")
            return failed(
                f"no nvidia-smi in PATH and the usual places; the file declares {declared}", _HINTS["no_tool"]
            )
        return skipped("no GPU tool found, and the file declares no GPU")
    if answer.is_late:
        return failed(
            f"{answer.path} did not answer within {LIMIT_S:g} s and was ended",
            "may only be slow: turn persistence mode on (nvidia-smi -pm 1); if it never answers, see dmesg",
            answer.took_s,
        )
    took = f"{answer.took_s * 1000:.0f} ms" if answer.took_s < 1 else f"{answer.took_s:.1f} s"
    if problem is not None and problem.code in _OF_THE_TOOL:
        return failed(_tell(problem), _HINTS[problem.code], answer.took_s)
    if problem is not None and problem.code == "asleep":
        return passed(f"{answer.path}, not called: every GPU sleeps", answer.took_s)
    if answer.took_s >= SLOW_S:
        return warned(
            f"{answer.path} takes {took}",
            "turn persistence mode on (nvidia-smi -pm 1, or nvidia-persistenced)",
            answer.took_s,
        )
    return passed(f"{answer.path} in {took}", answer.took_s)


def judge_driver(answer: GpuAnswer, machine: Machine, user: str) -> Outcome:
    """Does the driver show the cards that the file declares?"""
    reading = answer.reading
    if reading is None:
        return skipped("no answer of a GPU tool")
    problem = reading.problem
    if problem is not None and problem.code == "asleep":
        return skipped("every GPU sleeps and is not woken")
    if problem is not None and problem.code == "no_tool":
        return skipped("no GPU tool")
    if problem is not None:
        hint = _HINTS.get(problem.code, "run nvidia-smi there and see what it says").format(user=user)
        if problem.code == "no_devices" and not machine.declares_gpus:
            return warned(problem.text, "write `gpu: []` into the machine file if it has none")
        return failed(_tell(problem), hint)
    return _judge_cards(reading, machine)


def _tell(problem: GpuProblem) -> str:
    """What it is, with the tool's own words where they differ; what to do stands in the hint."""
    what, _, advice = problem.text.partition(":")
    if advice.endswith(")") and "(library " in advice:
        what += advice[advice.index(" (library ") :]
    said = clean_text(problem.detail, _DETAIL_SHOWN)
    return f"{what}; it says {said!r}" if said and problem.code not in _ALWAYS_THE_SAME else what


def _judge_cards(reading: GpuReading, machine: Machine) -> Outcome:
    faults = [*reading.faults, *(card.fault for card in reading.cards if card.fault is not None)]
    if faults:
        return failed(
            "; ".join(fault.text for fault in faults[:3]),
            "see dmesg for Xid errors; reboot, reseat the card if it comes again",
        )
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
    declared = len(machine.gpus or ())
    if len(reading.cards) < declared:
        return warned(
            f"{evidence}; the file declares {declared}",
            "is a card lost (dmesg, lspci), or the file out of date?",
        )
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


async def _check_tool(context: Context) -> Outcome:
    until = time.monotonic() + LIMIT_S
    sections = (await context.ask("gpu", "find", "amd", "amd-find")).sections
    path = clean_text(sections.get("find", _NOTHING).payload)
    amd = read_amd_cards(sections.get("amd", _NOTHING), sections.get("amd-find", _NOTHING))
    if not path and is_about_amd(context.machine, amd):
        context.amd = await ask_amd_tool(context, amd, until - time.monotonic())
        return judge_amd_tool(context.amd)
    context.gpu = await _ask_nvidia(context, path, until)
    return judge_tool(context.gpu, context.machine)


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
    if context.amd is not None:
        return judge_amd_driver(context.amd, context.machine)
    account = context.account
    user = account.user if account is not None and not isinstance(account.user, Unknown) else "the user"
    return judge_driver(context.gpu or GpuAnswer(""), context.machine, user)


async def _check_persistence(context: Context) -> Outcome:
    if context.amd is not None:
        return skipped("NVIDIA only")
    answer = context.gpu
    problem = answer.reading.problem if answer is not None and answer.reading is not None else None
    if problem is not None:
        is_asleep = problem.code == "asleep"
        return skipped("every GPU sleeps and is not woken" if is_asleep else "no GPU to ask")
    return judge_persistence(await _ask_persistence(context))


def not_without_gpus(context: Context) -> str | None:
    """Nothing to look for: the file says so, or there is no shell to look with."""
    if context.machine.is_cpu_only:
        return "declared CPU-only"
    if context.is_windows:
        return "Windows: not checked"
    return None


GPU_CHECKS = (
    Check("gpu_tool", "GPU tool", _check_tool, ("shell",), not_without_gpus, has_own_limit=True),
    Check("driver", "driver", _check_driver, ("gpu_tool",), not_without_gpus),
    Check("persistence", "persistence", _check_persistence, ("driver",), not_without_gpus),
)
