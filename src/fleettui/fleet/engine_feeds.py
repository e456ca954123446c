"""All engines of one machine, asked together over one connection after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fleettui.fleet.engine_feed import EngineFeed
from fleettui.fleet.engine_record import EngineRecord
from fleettui.fleet.record import MachineRecord
from fleettui.fleet.remote_http import RemoteHttp
from fleettui.fleet.source_record import SourceRecord
from fleettui.model.machine import EngineEndpoint
from fleettui.net.direct_http import DirectHttp
from fleettui.net.errors import HttpFailure
from fleettui.net.link import HttpAnswer, Link
from fleettui.probes.engines import AskedBy
from fleettui.probes.windows import is_windows_server

OnAnswer = Callable[[EngineEndpoint, str, HttpAnswer | HttpFailure, AskedBy], None]


class EngineFeeds:
    """The feeds of a machine's engines, and the machine's own curl, which is the last resort of each."""

    def __init__(
        self,
        record: MachineRecord,
        on_answer: OnAnswer,
        clock: Callable[[], float],
        wants_busy: bool = False,
    ) -> None:
        self._remote_http = RemoteHttp(clock)
        self._direct = DirectHttp()
        self._closing: asyncio.Task[None] | None = None
        self._link: Link | None = None
        self._hostname = record.machine.hostname
        self._on_answer = on_answer
        self._wants_busy = wants_busy
        self._feeds: dict[EngineEndpoint, EngineFeed] = {}
        self._asks: list[tuple[EngineFeed, SourceRecord]] = []
        for engine in record.engines.values():
            self.add(engine)

    def add(self, engine: EngineRecord) -> None:
        """Ask that engine too, from the next tick on."""
        feed = EngineFeed(self._hostname, engine, self._on_answer, self._get_remotely, self._direct)
        feed.want_busy(self._wants_busy)
        self._feeds[engine.endpoint] = feed
        self._asks.append((feed, engine.source))

    def drop(self, endpoint: EngineEndpoint) -> None:
        """Ask it no more."""
        feed = self._feeds.pop(endpoint)
        feed.close()
        self._asks = [item for item in self._asks if item[0] is not feed]

    def ask(self, link: Link, now: float) -> None:
        """Ask each engine what is due."""
        self._link = link
        for feed, source in self._asks:
            feed.ask(link, now)
            source.ask(now)

    def ask_allowed(self, endpoint: EngineEndpoint) -> tuple[str, ...]:
        """Ask one engine at once what its first answers allow; returns the paths."""
        return () if self._link is None else self._feeds[endpoint].ask_allowed(self._link)

    def ask_slow_again(self, endpoint: EngineEndpoint | None = None) -> None:
        """Have everything asked of one engine, or of all, on the next tick."""
        for feed in self._feeds.values():
            if endpoint is None or feed.endpoint == endpoint:
                feed.ask_slow_again()

    def want_busy(self, is_wanted: bool) -> None:
        """Begin or stop to ask who is busy where asking has its price."""
        self._wants_busy = is_wanted
        for feed in self._feeds.values():
            feed.want_busy(is_wanted)

    def close(self) -> None:
        """The connection ends."""
        self._link = None
        self._remote_http.close()
        for feed in self._feeds.values():
            feed.close()
        if self._direct.is_open:
            self._closing = asyncio.ensure_future(self._direct.close())

    async def _get_remotely(self, port: int, path: str) -> HttpAnswer:
        if self._link is None:
            raise HttpFailure("lost", "the connection ended")
        if is_windows_server(self._link.server_version):
            text = "SSH forwarding is refused there and the port is closed from here; allow one of the two"
            raise HttpFailure("forbidden", text)
        return await self._remote_http.get(self._link, port, path)
