"""The log of one machine over an open link: its last minutes, or on with what comes."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from fleettui.fleet.loop_feed import LoopFeed
from fleettui.fleet.poller import MachinePoller
from fleettui.model.log import DEFAULT_SINCE_S, LogLine
from fleettui.net.link import Link
from fleettui.probes.frames import Frame, Section, request_line
from fleettui.probes.log_stream import LogStream
from fleettui.probes.loops import loop_command
from fleettui.probes.loops_logs import JOURNAL_LIMIT_S
from fleettui.probes.machine_logs import (
    LogText,
    judge_complaints,
    log_section,
    parse_dmesg,
    parse_log,
    parse_log_files,
)
from fleettui.probes.windows import NOT_SUPPORTED, is_windows_server

ANSWER_S = JOURNAL_LIMIT_S + 12.0
"""For one question: looking up units has limits of its own."""
BEGIN_S = 10.0
MAX_WAITING = 10_000
"""Lines kept for a reader that is slower than the machine writes."""
_NOTHING = Section(127, b"")
RIGHTS_HINT = "let it: sudo usermod -aG systemd-journal USER there (or group adm); counts from the next login"

LogSource = Literal["journal", "dmesg and files"]


class LogUnavailable(Exception):
    """There is no log to show. `text`: why; `hint`: what to do next, may be empty."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.hint = hint


@dataclass(frozen=True, slots=True)
class LogWords:
    """What the reader can do, as it is called where the log is shown."""

    ask_less: str = "ask for less with --since or --unit"
    without_following: str = "without --follow"


@dataclass(frozen=True, slots=True)
class LogQuery:
    """What is wanted of a log."""

    since_s: int = DEFAULT_SINCE_S
    unit: str | None = None
    """A unit, or `kernel`; None: kernel, engines and NVIDIA's services. Checked by probes' `is_unit`."""
    words: LogWords = LogWords()


@dataclass(frozen=True, slots=True)
class MachineLog:
    """What was found, oldest first."""

    lines: tuple[LogLine, ...]
    source: LogSource = "journal"
    notes: tuple[str, ...] = field(default=())
    """What the reader should know: rights that are missing, lines left out."""


def open_link_of(pollers: Iterable[MachinePoller], name: str) -> Link:
    """The connection that a running service has to a machine: `open_link_of(service.pollers, "ada")`.

    Raises LogUnavailable while there is none.
    """
    poller = next((poller for poller in pollers if poller.record.machine.name == name), None)
    link = poller.open_link if poller is not None else None
    if link is None:
        raise LogUnavailable("not connected", "the log is shown once the machine answers")
    return link


async def read_log(link: Link, query: LogQuery, clock: Callable[[], float] = time.time) -> MachineLog:
    """The last `since_s` seconds. Raises LogUnavailable, and LinkError where no command can be started."""
    _refuse_windows(link)
    channel = _Questions()
    await channel.open(link)
    try:
        answer = await channel.ask(log_section("log", query.since_s, query.unit))
        found = answer.get("log", _NOTHING)
        log = parse_log(found.payload, found.exit_code)
        if log.state == "readable":
            return MachineLog(log.lines, notes=_cut_note(log, query.words))
        return await _read_instead(channel, log, query, clock)
    finally:
        channel.close()


async def _read_instead(
    channel: _Questions, log: LogText, query: LogQuery, clock: Callable[[], float]
) -> MachineLog:
    """What this account may see where it sees no journal: the kernel's buffer, log files."""
    reason = _reason(log.state, log.complaint)
    hint = RIGHTS_HINT if log.state == "no_permission" else ""
    if log.state == "failed" or query.unit not in (None, "kernel"):
        raise LogUnavailable(reason, hint)
    wanted = ("dmesg",) if query.unit == "kernel" else ("dmesg", "logfiles")
    answer = await channel.ask(*wanted)
    kernel = parse_dmesg(answer.get("dmesg", _NOTHING).payload, clock(), query.since_s)
    files, closed = parse_log_files(answer.get("logfiles", _NOTHING).payload)
    lines = (*log.lines, *kernel.lines, *files.lines)
    is_kernel_shown = kernel.state == "readable"
    if not lines and not is_kernel_shown:
        what = f"{reason}, nor dmesg ({kernel.complaint})" if kernel.complaint else reason
        raise LogUnavailable(what, hint)
    notes = [f"{reason}; shown is what dmesg and log files tell" + (f"; {hint}" if hint else "")]
    if files.lines:
        notes.append("lines of files have no time here and may be older")
    if closed:
        notes.append(f"may not be read: {', '.join(closed)}")
    return MachineLog(lines, "dmesg and files", tuple(notes))


async def follow_log(
    link: Link, query: LogQuery, on_note: Callable[[str], None] = lambda note: None
) -> AsyncGenerator[LogLine, None]:
    """The last `since_s` seconds, and on with what comes until the reader stops or the connection ends.

    Close the iterator (`aclosing`) to end it: nothing stays on the machine. Raises as `read_log`; `on_note`
    gets what the reader should know.
    """
    _refuse_windows(link)
    tail = _Tail(query)
    await tail.open(link)
    try:
        async for line in tail.lines(on_note):
            yield line
    finally:
        tail.close()


class _Questions:
    """One logs loop, asked one question after another."""

    def __init__(self) -> None:
        self._feed = LoopFeed("logs", self._answered, self._ended)
        self._answer: asyncio.Future[Frame] | None = None

    async def open(self, link: Link) -> None:
        await self._feed.open(link)

    async def ask(self, *sections: str) -> dict[str, Section]:
        """The sections' answers. Raises LogUnavailable."""
        self._answer = asyncio.get_running_loop().create_future()
        if not self._feed.ask(sections):
            raise LogUnavailable("the session ended")
        try:
            async with asyncio.timeout(ANSWER_S):
                return dict((await self._answer).sections)
        except TimeoutError:
            noise = f"; it said {self._feed.noise[:100]!r}" if self._feed.noise else ""
            raise LogUnavailable(
                f"no answer within {ANSWER_S:g} s{noise}", "is the machine overloaded?"
            ) from None

    def close(self) -> None:
        self._feed.close()

    def _answered(self, frame: Frame) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(frame)

    def _ended(self, text: str) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(LogUnavailable(f"the session {self._feed.describe_end(text)}"))


class _Tail:
    """One logs loop that follows."""

    def __init__(self, query: LogQuery) -> None:
        self._query = query
        token = secrets.token_hex(8)
        self._command = loop_command("logs", token)
        self._stream = LogStream(token)
        self._waiting: deque[LogLine] = deque()
        self._dropped = 0
        self._has_news = asyncio.Event()
        self._ended_by: str | None = None
        self._close: Callable[[], None] = lambda: None

    async def open(self, link: Link) -> None:
        channel = await link.open_loop(self._command, self._receive, self._end)
        self._close = channel.close
        section = log_section("follow", self._query.since_s, self._query.unit)
        channel.write(request_line(1, (section,)))

    def close(self) -> None:
        self._close()

    async def lines(self, on_note: Callable[[str], None]) -> AsyncGenerator[LogLine, None]:
        """Lines as they come. Raises LogUnavailable when there are no more."""
        try:
            async with asyncio.timeout(BEGIN_S):
                while not self._stream.has_begun and self._ended_by is None:
                    await self._news()
        except TimeoutError:
            said = f"; it said {self._stream.noise[:100]!r}" if self._stream.noise else ""
            raise LogUnavailable(f"no answer within {BEGIN_S:g} s{said}") from None
        has_warned = False
        while True:
            while self._waiting:
                yield self._waiting.popleft()
            if self._dropped:
                on_note(f"{self._dropped} lines left out: they came faster than they could be shown")
                self._dropped = 0
            state, complaint = judge_complaints(self._stream.complaints, 0)
            if state == "no_permission" and not has_warned:
                has_warned = True
                on_note(f"{_reason(state, complaint)}; {RIGHTS_HINT}")
            if self._ended_by is not None or self._stream.exit_code is not None:
                raise self._why_it_ended()
            await self._news()

    async def _news(self) -> None:
        await self._has_news.wait()
        self._has_news.clear()

    def _why_it_ended(self) -> LogUnavailable:
        code = self._stream.exit_code
        if code is None:
            noise = f"; it said {self._stream.noise[:100]!r}" if self._stream.noise else ""
            return LogUnavailable(f"the session {self._ended_by}{noise}")
        state, complaint = judge_complaints(self._stream.complaints, code)
        if state == "readable":
            return LogUnavailable("journalctl ended by itself", "was the journal restarted? run it again")
        hint = RIGHTS_HINT if state == "no_permission" else ""
        if state in ("no_tool", "no_journal"):
            hint = f"{self._query.words.without_following} the kernel's buffer and log files are shown"
        return LogUnavailable(_reason(state, complaint), hint)

    def _receive(self, data: bytes) -> None:
        self._waiting.extend(self._stream.receive_data(data))
        while len(self._waiting) > MAX_WAITING:
            self._waiting.popleft()
            self._dropped += 1
        self._has_news.set()

    def _end(self, text: str) -> None:
        self._ended_by = text
        self._has_news.set()


def _refuse_windows(link: Link) -> None:
    if is_windows_server(link.server_version):
        raise LogUnavailable(f"{NOT_SUPPORTED}: it has no journal", "see its Event Viewer")


def _cut_note(log: LogText, words: LogWords) -> tuple[str, ...]:
    notes = (log.complaint,) if log.complaint else ()
    return (*notes, f"older lines are left out: {words.ask_less}") if log.is_cut else notes


def _reason(state: str, complaint: str) -> str:
    return {
        "no_permission": "this account may not read the system's journal",
        "no_tool": "there is no journalctl",
        "no_journal": "no journal is kept",
    }.get(state, complaint)
