"""The GPU tool of a Windows machine: the commands that its poller runs, never a second one beside another."""

from __future__ import annotations

import asyncio
import time

from fleettui.fleet.doctor.check import LIMIT_S, Outcome, failed, warned
from fleettui.fleet.doctor.context import Context
from fleettui.fleet.doctor.gpu_answer import GpuAnswer
from fleettui.fleet.doctor.gpu_hints import WINDOWS_HINTS
from fleettui.fleet.windows_feed import WindowsGpuFeed
from fleettui.model.gpu import GpuReading
from fleettui.probes.frames import Frame, Section
from fleettui.probes.nvidia import gpu_section, parse_gpus, query_fields

AGAIN_S = 0.7
"""A call of a poller is over by then; one that is still there hangs, or is somebody's monitor."""
_NOTHING = Section(127, b"")


async def ask_windows(context: Context) -> GpuAnswer:
    """Ask nvidia-smi.exe for the cards once none runs; again without a field that the driver refuses."""
    until = time.monotonic() + LIMIT_S
    answers: asyncio.Queue[Frame] = asyncio.Queue()
    feed = WindowsGpuFeed(answers.put_nowait, may_hang=True)
    await feed.open(context.link)
    refused: frozenset[str] = frozenset()
    asked_at = time.monotonic()
    try:
        async with asyncio.timeout(LIMIT_S):
            while True:
                section = await _ask(feed, answers, gpu_section(refused))
                reading = parse_gpus(section.payload, section.exit_code, query_fields(refused))
                new = refused.union(reading.unsupported_fields)
                if _is_hung(reading) and time.monotonic() + 2 * AGAIN_S < until:
                    await asyncio.sleep(AGAIN_S)
                elif new == refused:
                    return GpuAnswer(feed.place or "", reading, time.monotonic() - asked_at)
                else:
                    refused = new
                asked_at = time.monotonic()
    except TimeoutError:
        if context.login.lost is not None:
            raise context.login.lost from None
        return GpuAnswer(feed.place or "nvidia-smi.exe", took_s=LIMIT_S, is_late=True)
    finally:
        feed.close()


async def _ask(feed: WindowsGpuFeed, answers: asyncio.Queue[Frame], section: str) -> Section:
    feed.ask((section,))
    return (await answers.get()).sections.get("gpu", _NOTHING)


def _is_hung(reading: GpuReading | None) -> bool:
    return reading is not None and reading.problem is not None and reading.problem.code == "hung"


def judge_silence(answer: GpuAnswer) -> Outcome | None:
    """No answer, or no question because one runs; None: it answered.

    Windows tells neither how long a program runs nor whose it is, and ends none with its channel.
    """
    if _is_hung(answer.reading):
        return warned(
            "an nvidia-smi.exe runs there and does not end, so no second one is started",
            "if it is no monitor that you started (nvidia-smi -l), it hangs: restart Windows",
        )
    if answer.is_late:
        what = f"{answer.path} did not answer within {LIMIT_S:g} s"
        return failed(what, WINDOWS_HINTS["late"], answer.took_s)
    return None
