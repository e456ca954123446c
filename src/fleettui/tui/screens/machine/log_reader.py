"""Reads the log of one machine over the connection that its poller holds; a pane shows what is there."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import Literal

from fleettui.fleet.machine_log import LogQuery, LogUnavailable, follow_log, open_link_of, read_log
from fleettui.model.log import LogLine
from fleettui.net.errors import LinkError
from fleettui.net.link import Link
from fleettui.tui.port import FleetPort

log = logging.getLogger(__name__)

State = Literal["idle", "reading", "read", "following", "failed"]

MOST_LINES = 5_000
"""Kept of a log that is followed."""
_SLACK = 500


class LogReader:
    """What was read so far. `read` and `follow` run in a worker that is cancelled when nobody looks."""

    def __init__(self, service: FleetPort, name: str, on_news: Callable[[], None]) -> None:
        self._service = service
        self._name = name
        self._on_news = on_news
        self.state: State = "idle"
        self.lines: list[LogLine] = []
        """Oldest first."""
        self.dropped = 0
        """Lines that were there before the first."""
        self.notes: tuple[str, ...] = ()
        """What the reader should know: rights that are missing, lines left out."""
        self.source = ""
        """Where the lines are from."""
        self.problem = ""
        """Why there is no log, or no more of it."""
        self.hint = ""
        """What to do about that."""
        self.reading = 0
        """How often it was begun."""

    async def read(self, query: LogQuery) -> None:
        """What was written in that time."""
        self._begin("reading")
        try:
            found = await read_log(self._open_link(), query)
        except (LogUnavailable, LinkError) as error:
            self.fail(error)
            return
        self.lines, self.source = list(found.lines), found.source
        self.notes = found.notes
        self.state = "read"
        self._on_news()

    async def follow(self, query: LogQuery) -> None:
        """What was written in that time and what comes, until this is cancelled or the connection ends."""
        self._begin("following")
        self.source = "journal"
        try:
            link = self._open_link()
            async with aclosing(follow_log(link, query, self._note)) as lines:
                async for line in lines:
                    self._take(line)
        except (LogUnavailable, LinkError) as error:
            self.fail(error)

    def _open_link(self) -> Link:
        """Raises LogUnavailable."""
        if self._service.origin:
            hint = f"where machine files are: fleettui logs {self._name}"
            raise LogUnavailable("a server does not hand out logs", hint)
        return open_link_of(self._service.pollers, self._name)

    def stop(self) -> None:
        """The worker was cancelled: what is there stays."""
        if self.state in ("reading", "following"):
            self.state = "read" if self.lines else "idle"

    def _begin(self, state: State) -> None:
        self.state, self.problem, self.hint, self.notes = state, "", "", ()
        self.lines, self.dropped = [], 0
        self.reading += 1
        self._on_news()

    def _take(self, line: LogLine) -> None:
        self.lines.append(line)
        if len(self.lines) > MOST_LINES + _SLACK:
            gone = len(self.lines) - MOST_LINES
            del self.lines[:gone]
            self.dropped += gone
        self._on_news()

    def _note(self, text: str) -> None:
        self.notes = (*self.notes[-2:], text)
        self._on_news()

    def fail(self, error: BaseException) -> None:
        """There is no log, or no more of it."""
        self.state, self.hint = "failed", ""
        if isinstance(error, LogUnavailable):
            self.problem, self.hint = error.text, error.hint
        elif isinstance(error, LinkError):
            self.problem = error.text
        else:
            log.error("the log of %s could not be read", self._name, exc_info=error)
            self.problem = f"{type(error).__name__}: {error}"
            self.hint = "fleettui.log in the state folder says where"
        self._on_news()
