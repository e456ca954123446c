"""`/api/pull` and `/api/delete` of the Ollama stand-in: files that come over the network, with progress."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from typing import Any

from fleettui.demo.clock import DemoClock
from fleettui.demo.engine_requests import read_document
from fleettui.demo.hardware import GIB
from fleettui.demo.machine import SimulatedMachine
from fleettui.demo.models import CATALOG, ModelSpec, file_bytes, full_name
from fleettui.demo.replies import Answer, Reply, StreamedReply, error_reply, json_reply

PULL_BYTES_S = 1.1 * GIB
"""10 GbE to a mirror."""
STEPS = 20
UNKNOWN_TEXT = "pull model manifest: file does not exist"
BROKEN_TEXT = "max retries exceeded: unexpected EOF"


class Pulls:
    """Downloads of one machine. The simulated registry has every model of the catalog but cloud entries."""

    def __init__(self, machine: SimulatedMachine, clock: DemoClock):
        self.machine = machine
        self.clock = clock

    def answer(self, body: bytes) -> Reply | Awaitable[Answer]:
        """Progress in lines, or without `stream` one line at the end."""
        asked = read_document(body)
        name = asked.get("model") or asked.get("name")
        if not isinstance(name, str):
            return error_reply(400, "model is required")
        return self._pull(full_name(name), asked.get("stream") is not False)

    def delete(self, body: bytes) -> Reply:
        """Takes the files away; a copy in memory stays, as in Ollama."""
        asked = read_document(body)
        name = full_name(str(asked.get("model") or asked.get("name") or ""))
        if name not in self.machine.plan.installed:
            return error_reply(404, f"model '{name}' not found")
        self.machine.install(CATALOG[name], is_there=False)
        return Reply(b"")

    async def _pull(self, name: str, is_streamed: bool) -> Answer:
        model = CATALOG.get(name)
        lines = self._lines(None if model is None or model.remote_host else model)
        if is_streamed:
            return StreamedReply(_as_lines(lines))
        last = [line async for line in lines][-1]
        return json_reply(last, 500 if "error" in last else 200)

    async def _lines(self, model: ModelSpec | None) -> AsyncIterator[dict[str, Any]]:
        """What Ollama says, in its order; left early nothing is installed."""
        yield {"status": "pulling manifest"}
        if model is None:
            yield {"error": UNKNOWN_TEXT}
            return
        size, digest = file_bytes(model), f"sha256:{model.blob_digest}"
        layer = {"status": f"pulling {model.blob_digest[:12]}", "digest": digest, "total": size}
        begin = self.clock.now()
        seconds = 0.0 if self.machine.scheduler.is_instant else size / PULL_BYTES_S
        is_broken = self.machine.scheduler.faults.take(model.name, "pull") is not None
        for step in range(1, STEPS + 1):
            while self.clock.now() < begin + seconds * step / STEPS:
                await self.clock.wait_until(begin + seconds * step / STEPS)
            if is_broken and step > STEPS // 2:
                yield {"error": BROKEN_TEXT}
                return
            yield layer | {"completed": size * step // STEPS}
        self.machine.install(model)
        for status in ("verifying sha256 digest", "writing manifest", "success"):
            yield {"status": status}


async def _as_lines(lines: AsyncIterator[dict[str, Any]]) -> AsyncIterator[bytes]:
    async for line in lines:
        yield json_reply(line).body + b"\n"
