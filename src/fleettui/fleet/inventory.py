"""Profiles of many machines, side by side: one login each, by what was decided about its host key."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from fleettui.fleet.loop_feed import LoopFeed
from fleettui.fleet.windows_feed import WindowsGpuFeed
from fleettui.model.machine import Machine
from fleettui.model.profile import Profile, ProfileGap
from fleettui.model.unknown import Unknown
from fleettui.net.connector import Connector
from fleettui.net.errors import LinkError
from fleettui.net.link import Link
from fleettui.probes.clean import clean_text
from fleettui.probes.frames import Frame, Section
from fleettui.probes.loops import LoopKind
from fleettui.probes.loops_gpu import TOOL_LIMIT_S
from fleettui.probes.nvidia_problems import HUNG_EXIT
from fleettui.probes.profile import (
    FACTS_SECTIONS,
    SPARE_DISKS_SECTION,
    CardsAnswer,
    make_profile,
    parse_cards,
    profile_section,
)
from fleettui.probes.windows import is_windows_server

FACTS_LIMIT_S = 15.0
"""Beyond what the tools of one question may take on the machine."""
CARDS_LIMIT_S = TOOL_LIMIT_S + 5.0
SPARE_S = 0.3
"""Questions end so much before the machine's time is over: what was read by then counts."""
PATIENCE_S = 3.0
AGAIN_S = 0.7
"""A call of somebody's poller on a Windows machine is over by then; one that is still there hangs."""
_NOTHING = Section(127, b"")


@dataclass(frozen=True, slots=True)
class Collected:
    """What came of one machine."""

    name: str
    profile: Profile | None = None
    """None: nothing could be read of it."""
    gaps: tuple[ProfileGap, ...] = ()
    """Parts that could not be read."""
    error: str = ""
    """Why there is no profile, and what to do."""


OnCollected = Callable[[Collected], None]


class _NoAnswer(Exception):
    """A loop did not answer; the text says why."""


async def collect_profiles(
    machines: Sequence[Machine],
    connector: Connector,
    link_for: Callable[[Machine], Link],
    on_collected: OnCollected,
    deadline_s: float,
    clock: Callable[[], float] = time.time,
) -> tuple[Collected, ...]:
    """Ask all of them at once; `on_collected` gets each as it is done. A machine that has not answered by
    `deadline_s` is told as such. Cancelled, it closes every connection at once."""
    await connector.warm()

    async def collect(machine: Machine) -> Collected:
        try:
            async with asyncio.timeout(deadline_s):
                until = time.monotonic() + deadline_s - SPARE_S
                found = await _collect(machine, link_for(machine), clock, until)
        except TimeoutError:
            text = f"no answer within {deadline_s:g} s; give it more time: --deadline"
            found = Collected(machine.name, error=text)
        except LinkError as error:
            found = Collected(machine.name, error=error.text)
        on_collected(found)
        return found

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(collect(machine)) for machine in machines]
        return tuple(task.result() for task in tasks)
    finally:
        connector.close()


async def _collect(machine: Machine, link: Link, clock: Callable[[], float], until: float) -> Collected:
    lost: list[LinkError] = []
    try:
        await link.open(lost.append)
        is_windows = is_windows_server(link.server_version)
        cards, (facts, silence) = await asyncio.gather(
            _ask_windows_cards(link, until) if is_windows else _ask_cards(link, machine, until),
            _no_facts() if is_windows else _ask_facts(link, until),
        )
    finally:
        await link.close()
    if lost:
        raise lost[0]
    profile, gaps = make_profile(machine.name, cards, facts, float(int(clock())))
    if is_windows:  # nobody tells the rest there, so it is not missing
        gaps = tuple(gap for gap in gaps if gap.part == "gpus")
    elif silence:
        gaps = tuple(gap if gap.part == "gpus" else ProfileGap(gap.part, silence) for gap in gaps)
    parts = (profile.gpus, profile.memory_kb, profile.cpu.threads, profile.disks)
    if all(isinstance(part, Unknown) for part in parts):
        reasons = dict.fromkeys(gap.reason for gap in gaps)
        return Collected(
            machine.name, error=f"{'; '.join(reasons)}; see: fleettui machines doctor {machine.name}"
        )
    return Collected(machine.name, profile, gaps)


async def _read_cards(ask: Callable[[str], Awaitable[Section]]) -> CardsAnswer:
    """What nvidia-smi says; once more without what an old driver refuses."""
    refused: tuple[str, ...] = ()
    while True:
        section = await ask(profile_section(refused))
        cards = parse_cards(section.payload, section.exit_code, refused)
        if not set(cards.refused) - set(refused):
            return cards
        refused = tuple(dict.fromkeys((*refused, *cards.refused)))


async def _ask_cards(link: Link, machine: Machine, until: float) -> CardsAnswer:
    """Cards that sleep are woken."""
    loop = _Loop("gpu", link)
    before = ("wake",) if machine.nvidia_smi.path is None else (f"tool:{machine.nvidia_smi.path}", "wake")

    async def ask(question: str) -> Section:
        answer = await loop.ask((*before, question), _limit_s(CARDS_LIMIT_S, until))
        return answer.get("gpu", _NOTHING)

    try:
        return await _read_cards(ask)
    except _NoAnswer as error:
        return CardsAnswer(Unknown(f"nvidia-smi: {error}"))
    except LinkError as error:
        return CardsAnswer(Unknown(error.text))
    finally:
        loop.close()


async def _ask_facts(link: Link, until: float) -> tuple[dict[str, Section], str]:
    """Sections of the facts loop, and why some are missing; disks again in a form that an old lsblk knows."""
    loop = _Loop("facts", link)
    facts: dict[str, Section] = {}
    try:
        facts = await loop.ask(FACTS_SECTIONS, _limit_s(FACTS_LIMIT_S, until))
        if not facts.get("drives", _NOTHING).payload.lstrip().startswith(b"{"):
            facts |= await loop.ask((SPARE_DISKS_SECTION,), _limit_s(FACTS_LIMIT_S, until))
    except (_NoAnswer, LinkError) as error:
        return facts, str(error)
    finally:
        loop.close()
    return facts, ""


async def _no_facts() -> tuple[dict[str, Section], str]:
    return {}, ""


async def _ask_windows_cards(link: Link, until: float) -> CardsAnswer:
    answers: asyncio.Queue[Frame] = asyncio.Queue()
    feed = WindowsGpuFeed(answers.put_nowait, may_hang=True)
    await feed.open(link)
    limit_s = _limit_s(CARDS_LIMIT_S, until)
    patience = time.monotonic() + _limit_s(PATIENCE_S, until)

    async def ask(question: str) -> Section:
        while True:
            feed.ask((question,))
            async with asyncio.timeout(limit_s):
                section = (await answers.get()).sections.get("gpu", _NOTHING)
            if section.exit_code != HUNG_EXIT or time.monotonic() >= patience:
                return section
            await asyncio.sleep(AGAIN_S)

    try:
        return await _read_cards(ask)
    except LinkError as error:
        return CardsAnswer(Unknown(str(error)))
    except TimeoutError:
        return CardsAnswer(Unknown(f"nvidia-smi.exe did not answer within {limit_s:.0f} s"))
    finally:
        feed.close()


def _limit_s(limit_s: float, until: float) -> float:
    """Seconds for one question, within the machine's time."""
    return max(0.0, min(limit_s, until - time.monotonic()))


class _Loop:
    """One loop of a machine, asked and waited for."""

    def __init__(self, kind: LoopKind, link: Link) -> None:
        self._link = link
        self._waiting: asyncio.Future[Frame] | None = None
        self._feed = LoopFeed(kind, self._take, self._end)

    async def ask(self, sections: Sequence[str], limit_s: float) -> dict[str, Section]:
        """Its answer. Raises _NoAnswer, and LinkError where the loop cannot be started."""
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(limit_s):
                if not self._feed.is_open:
                    await self._feed.open(self._link)
                self._feed.ask(sections)
                return (await self._waiting).sections
        except TimeoutError:
            raise _NoAnswer(f"no answer within {limit_s:.0f} s") from None

    def close(self) -> None:
        self._feed.close()

    def _take(self, frame: Frame) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(frame)

    def _end(self, text: str) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(_NoAnswer(clean_text(self._feed.describe_end(text), 200)))
