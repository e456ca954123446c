"""What `/metrics` answers: written in a thread, once for all who ask in the same moment."""

from __future__ import annotations

import asyncio
import gzip
import time
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import (
    CONTENT_TYPE_PLAIN_0_0_4,
    choose_encoder,
    generate_latest,
    gzip_accepted,
)
from prometheus_client.openmetrics import exposition as openmetrics

from fleettui.serve.metrics import engines, gpus, machines, server
from fleettui.serve.metrics.server import ServerFacts
from fleettui.serve.metrics.sheet import Sheet, label, write_openmetrics, write_text
from fleettui.store.database import Store, StoreError
from fleettui.store.leases import load_leases

if TYPE_CHECKING:
    from fleettui.model.lease import Lease
    from fleettui.model.snapshot import FleetSnapshot
    from fleettui.serve.door import Door

METRICS = (*server.METRICS, *machines.METRICS, *gpus.METRICS, *engines.METRICS)
KEPT_S = 1.0
"""Two Prometheus servers that scrape at once get the same answer."""
_END = b"# EOF\n"


class Form(NamedTuple):
    """How an answer is written."""

    is_openmetrics: bool = False
    is_gzip: bool = False

    @property
    def content_type(self) -> str:
        return openmetrics.CONTENT_TYPE_LATEST if self.is_openmetrics else CONTENT_TYPE_PLAIN_0_0_4


def choose_form(accept: str, accept_encoding: str) -> Form:
    """What a reader takes: OpenMetrics where it is named, else the text format."""
    try:
        _, content_type = choose_encoder(accept)
    except TypeError:  # `version=1.x`: the library compares numbers with words
        content_type = ""
    return Form(content_type.startswith("application/openmetrics-text"), gzip_accepted(accept_encoding))


class Exposition:
    """Of one server."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        self._made: dict[Form, tuple[float, asyncio.Task[bytes]]] = {}

    async def read(self, form: Form) -> bytes:
        """The answer; made anew where it is older than `KEPT_S`."""
        made = self._made.get(form)
        if made is None or (made[1].done() and time.monotonic() - made[0] > KEPT_S):
            made = self._made[form] = time.monotonic(), asyncio.create_task(self._make(form))
        return await asyncio.shield(made[1])

    async def _make(self, form: Form) -> bytes:
        door, service = self._door, self._door.service
        fleet = await door.fleet()
        facts = ServerFacts(
            door.is_ready, len(service.notices), door.hub.readers, dict(door.decisions),
            tuple(
                (poller.record.machine.name, loop, spent.sum_s, spent.answers)
                for poller in service.pollers
                for loop, spent in poller.poll_times.items()
            ),
        )  # fmt: skip
        return await asyncio.to_thread(self._write, form, fleet, facts)

    def _write(self, form: Form, fleet: FleetSnapshot, facts: ServerFacts) -> bytes:
        sheet = make_sheet(fleet, facts, self._read_leases(), time.time())
        if form.is_openmetrics:
            encode, _ = choose_encoder(openmetrics.CONTENT_TYPE_LATEST)
            own = encode(self._process).removesuffix(_END)
            body = write_openmetrics(sheet, METRICS).encode() + own + _END
        else:
            body = write_text(sheet, METRICS).encode() + generate_latest(self._process)
        return gzip.compress(body, 1) if form.is_gzip else body

    def _read_leases(self) -> tuple[Lease, ...] | None:
        try:
            store = Store.open_readonly(self._door.state_dir)
            if store is None:
                return ()
            with store:
                return load_leases(store, self._door.machines_dir, time.time())
        except StoreError:
            return None  # told among the notices


def make_sheet(
    fleet: FleetSnapshot, facts: ServerFacts, leases: tuple[Lease, ...] | None, now: float
) -> Sheet:
    """All samples of one moment."""
    sheet = Sheet(METRICS)
    server.write_server(sheet, fleet, facts, leases)
    for snapshot in fleet.machines:
        who = label("machine", snapshot.name)
        machines.write_machine(sheet, snapshot, who, now)
        gpus.write_gpus(sheet, snapshot, who, now)
        engines.write_engines(sheet, snapshot, who, now)
    return sheet
