"""Engines for tests: a server on a real socket that answers as told, and a poller's feed moved by hand.

server = EngineServer({"/health": b"", "/v1/models": {...}})
poll = Polled(machine_of("vllm", server.port), link)
await poll.tick(1000.0)       # asks what is due at that moment, waits for every answer
poll.reading, server.asked()  # what was read, what it was asked
"""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import socket
import threading
from collections.abc import Callable
from typing import Any

from fleettui.fleet.engine_feeds import EngineFeeds
from fleettui.fleet.record import MachineRecord
from fleettui.model.machine import EngineEndpoint, EngineKind, Machine
from fleettui.model.readings import EngineReading
from fleettui.net.errors import HttpFailure
from fleettui.net.link import HttpAnswer, Link
from fleettui.probes.engines import AskedBy

NOT_FOUND = {"detail": "Not Found"}


class EngineServer:
    """Answers GETs on 127.0.0.1 by path: bytes or JSON; (status, body); a function of the headers."""

    def __init__(self, answers: dict[str, Any], port: int = 0) -> None:
        self.answers = answers
        self.requests: list[tuple[str, dict[str, str]]] = []
        """Path and headers of each, names in lower case."""
        self.connections = 0
        self.hangs: set[str] = set()
        """Paths that get no answer until the server ends or the set is cleared."""
        self._ended = threading.Event()
        self._sockets: list[socket.socket] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def setup(self) -> None:
                outer.connections += 1
                outer._sockets.append(self.request)
                super().setup()

            def do_GET(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.requests.append((self.path, headers))
                while self.path in outer.hangs and not outer._ended.wait(0.02):
                    pass
                status, body = outer._answer(self.path, headers)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.do_GET()

            def log_message(self, *_: object) -> None: ...

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None: ...

        self._server = Server(("127.0.0.1", port), Handler)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def _answer(self, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
        answer = self.answers.get(path, (404, NOT_FOUND))
        if callable(answer):
            answer = answer(headers)
        status, body = answer if isinstance(answer, tuple) else (200, answer)
        return status, body if isinstance(body, bytes) else json.dumps(body).encode()

    def asked(self) -> list[str]:
        """Paths since the last call, in order."""
        paths = [path for path, _ in self.requests]
        self.requests.clear()
        return paths

    def close(self) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        for connection in self._sockets:  # kept ones would still be answered
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()


def machine_of(kind: EngineKind, port: int, host: str = "127.0.0.1", **endpoint: Any) -> Machine:
    """A machine with one engine."""
    engine = EngineEndpoint(kind, port, **endpoint)
    return Machine("ada", "gpu-host", host, port=port, engines=(engine,), config_file="machines/ada.yaml")


class Polled:
    """The engines of one machine, polled over a link at moments that the test chooses."""

    def __init__(self, machine: Machine, link: Link, wants_busy: bool = False) -> None:
        self.record = MachineRecord(machine)
        self.now = 0.0
        self._link = link
        self.feeds = EngineFeeds(self.record, self._take, lambda: self.now, wants_busy)
        self.engine = next(iter(self.record.engines.values()))
        self.feed = self.feeds._feeds[self.engine.endpoint]
        self.failures: list[tuple[str, HttpFailure]] = []

    @property
    def reading(self) -> EngineReading:
        assert self.engine.reading is not None
        return self.engine.reading

    def start(self, now: float) -> None:
        """Ask what is due."""
        self.now = now
        self.feeds.ask(self._link, now)

    async def tick(self, now: float) -> EngineReading:
        """Ask what is due, wait for every answer."""
        self.start(now)
        await self.until(lambda: not self.feed.is_waiting)
        return self.reading

    async def until(self, condition: Callable[[], object], timeout_s: float = 20.0) -> None:
        async with asyncio.timeout(timeout_s):
            while not condition():  # noqa: ASYNC110 - sockets send no event to us
                await asyncio.sleep(0.005)

    def _take(
        self, endpoint: EngineEndpoint, path: str, answer: HttpAnswer | HttpFailure, way: AskedBy
    ) -> None:
        if isinstance(answer, HttpFailure):
            self.failures.append((path, answer))
        if not self.record.engines[endpoint].take(path, answer, way, self.now):
            self.feeds.ask_slow_again(endpoint)

    def close(self) -> None:
        self.feeds.close()
