"""A running `fleettui serve` in a process of its own, and a client that hides nothing."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

SRC = str(Path(__file__).resolve().parents[2] / "src")
START_S = 60.0
Command = Callable[..., Any]
"""The fixture of conftest.py."""


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Served:
    """`with Served(environment, "--interval", "0.5") as served:`; stderr lies in `log`."""

    def __init__(
        self,
        log: Path,
        environment: dict[str, str],
        *arguments: str,
        listen: str = "127.0.0.1:0",
        scheme: str = "http",
    ):
        self.log = log
        self.scheme = scheme
        with log.open("w") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fleettui", "serve", "--listen", listen, *arguments],
                env={**os.environ, **environment, "PYTHONPATH": SRC}, cwd="/",
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stream,
            )  # fmt: skip
        self.port = 0

    def __enter__(self) -> Served:
        deadline = time.monotonic() + START_S
        while " answers for " not in self.log.read_text():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)
        line = next(line for line in self.log.read_text().splitlines() if " answers for " in line)
        self.port = int(line.partition(f"{self.scheme}://")[2].partition(" ")[0].rpartition(":")[2])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.end()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait; the exit code."""
        self.process.send_signal(number)
        try:
            return self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def ask(
        self, path: str, method: str = "GET", headers: dict[str, str] | None = None, **query: str
    ) -> Answer:
        """One request on a connection of its own; the path goes out as it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            target = f"{path}?{urlencode(query)}" if query else path
            connection.request(method, target, headers=headers or {})
            answer = connection.getresponse()
            return Answer(
                answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
            )
        finally:
            connection.close()

    def json(self, path: str, **query: str) -> Any:
        """The document of an answer that must be 200."""
        answer = self.ask(path, **query)
        assert answer.status == 200, answer.body
        return answer.json


@dataclass
class Message:
    """One server-sent event."""

    id: str = ""
    kind: str = ""
    data: str = ""

    @property
    def json(self) -> Any:
        return json.loads(self.data)


class Stream:
    """A reader of `/api/stream`."""

    def __init__(self, served: Served, last_id: str | None = None):
        self.connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
        self.connection.request(
            "GET", "/api/stream", headers={} if last_id is None else {"Last-Event-ID": last_id}
        )
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200
        assert self.answer.getheader("content-type", "").startswith("text/event-stream")

    def read(self) -> Message | None:
        """The next message; None at the end."""
        message = Message()
        while True:
            line = self.answer.readline()
            if not line:
                return None
            field, _, value = line.decode().rstrip("\n").partition(": ")
            if field == "id":
                message.id = value
            elif field == "event":
                message.kind = value
            elif field == "data":
                message.data = value
            elif not field and message.data:
                return message

    def until(self, kind: str) -> Message:
        """The next message of a kind."""
        while True:
            message = self.read()
            assert message is not None
            if message.kind == kind:
                return message

    def close(self) -> None:
        self.connection.close()
