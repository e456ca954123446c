"""`/api/stream`: the fleet from its first message on, resume, slow readers, many readers."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from served import Served, Stream

from builders import NOW, make_fleet, make_snapshot
from fleettui.demo.launcher import DemoFleet
from fleettui.model.event import Event
from fleettui.model.record import replace
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.serve import stream_hub
from fleettui.serve.stream_hub import StreamHub


@pytest.fixture(scope="module")
def own_fleet() -> Iterator[DemoFleet]:
    """Machines that may be stopped."""
    with DemoFleet(machines=3, seed=7, is_frozen=True) as fleet:
        yield fleet


@pytest.fixture
def lively(own_fleet: DemoFleet, tmp_path: Path) -> Iterator[Served]:
    with Served(tmp_path / "stderr", own_fleet.environment, "--interval", "0.5") as served:
        served.json("/api/route", model="llama3.1:70b")
        yield served


def test_a_stream_begins_with_the_fleet_and_goes_on_with_what_changes(
    lively: Served, own_fleet: DemoFleet
) -> None:
    stream = Stream(lively)
    first = stream.read()
    assert first is not None
    assert first.kind == "snapshot"
    assert first.json.keys() == lively.json("/api/infrastructure").keys()
    names = [machine["name"] for machine in first.json["machines"]]
    assert len(names) == 3

    changed = stream.until("machines")
    assert changed.id != first.id
    assert {machine["name"] for machine in changed.json["machines"]} <= set(names)
    assert changed.json["machines"][0].keys() == first.json["machines"][0].keys()
    assert changed.json["gone"] == []

    own_fleet.command(f"stop {names[1]}")
    try:
        event = stream.until("event")
        while event.json["kind"] != "offline":
            event = stream.until("event")
        assert event.json["machine"] == names[1]
    finally:
        own_fleet.command(f"start {names[1]}")
        stream.close()


def test_a_file_that_comes_is_told_and_one_that_goes_too(lively: Served, own_fleet: DemoFleet) -> None:
    stream = Stream(lively)
    stream.until("snapshot")
    path = own_fleet.machines_dir / "newcomer.yaml"
    path.write_text(
        "name: newcomer\nrole: spare\nhardware: {}\nnetwork: {hostname: 127.0.0.1}\nmodels: []\n"
        "ssh: {host: 127.0.0.1, port: 9}\n"
    )
    try:
        while "newcomer" not in {item["name"] for item in stream.until("machines").json["machines"]}:
            pass
    finally:
        path.unlink()
    while "newcomer" not in stream.until("machines").json["gone"]:
        pass
    stream.close()


def test_a_reader_that_comes_back_gets_what_it_missed(lively: Served) -> None:
    stream = Stream(lively)
    stream.until("snapshot")
    seen = stream.until("machines")
    stream.close()

    other = Stream(lively)  # goes on meanwhile
    other.until("snapshot")
    other.until("machines")
    missed = other.until("machines")
    other.close()

    back = Stream(lively, seen.id)
    first = back.read()
    assert first is not None
    assert first.kind != "snapshot"
    ids = [first.id]
    while ids[-1] != missed.id:
        message = back.read()
        assert message is not None
        ids.append(message.id)
    back.close()
    numbers = [int(text.split("-")[1]) for text in (seen.id, *ids)]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_after_a_restart_it_starts_over_with_the_events_since(own_fleet: DemoFleet, tmp_path: Path) -> None:
    options = ("--interval", "0.5")
    with Served(tmp_path / "one", own_fleet.environment, *options) as served:
        served.json("/api/route", model="llama3.1:70b")
        stream = Stream(served)
        seen = stream.until("snapshot")
        own_fleet.command("stop bora")
        try:
            event = stream.until("event")
            while event.json["kind"] != "offline":
                event = stream.until("event")
            stream.close()
        finally:
            own_fleet.command("start bora")
    with Served(tmp_path / "two", own_fleet.environment, *options) as served:
        served.json("/api/route", model="llama3.1:70b")
        back = Stream(served, seen.id)
        first = back.read()
        assert first is not None
        assert first.kind == "snapshot"
        assert first.id.split("-")[0] != seen.id.split("-")[0]
        told = back.until("event")
        while (told.json["kind"], told.json["machine"]) != ("offline", "bora"):
            told = back.until("event")
        assert told.json["at"] == event.json["at"]
        back.close()


@pytest.mark.parametrize(
    "last_id", ["", "nonsense", "deadbeef-1-1", "x" * 5000, "00000000-999999999999999-0"]
)
def test_ids_of_nobody_start_over(served: Served, last_id: str) -> None:
    stream = Stream(served, last_id)
    first = stream.read()
    stream.close()
    assert first is not None
    assert first.kind == "snapshot"


def test_a_reader_that_reads_nothing_delays_nobody(lively: Served) -> None:
    with socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.connect(("127.0.0.1", lively.port))
        lazy.sendall(b"GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        stream = Stream(lively)
        for _ in range(4):
            stream.until("machines")
        stream.close()
        assert lively.json("/health")["status"] == "ok"


async def test_200_readers_at_once(served: Served) -> None:
    """150 that stay, 50 that ask for everything again and again; what they cost ends with them."""
    memory = psutil.Process(served.process.pid)

    async def follow() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=1 << 22)
        writer.write(b"GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        count = 0
        while count < 3:
            count += (await reader.readline()).startswith(b"event: ")
        writer.close()
        return count

    async def ask() -> int:
        count = 0
        for _ in range(4):
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            writer.write(b"GET /api/infrastructure HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = await reader.read()
            count += answer.startswith(b"HTTP/1.1 200 ") and len(json.loads(answer.partition(b"\r\n\r\n")[2]))
            writer.close()
        return count

    async with asyncio.timeout(100):
        before = 0
        for turn in range(2):
            told = await asyncio.gather(*(follow() for _ in range(150)), *(ask() for _ in range(50)))
            assert min(told) > 0
            if turn == 0:
                before = memory.memory_info().rss
    grown = memory.memory_info().rss - before
    assert grown < 64 << 20  # the second 200 cost no more than the first
    assert served.json("/health")["status"] == "ok"


# -- the hub alone ---------------------------------------------------------------------------------------


class FakeEvents:
    def __init__(self) -> None:
        self.events: tuple[Event, ...] = ()
        self.subscribers: list[Callable[[Sequence[Event]], None]] = []

    def subscribe(self, subscriber: Callable[[Sequence[Event]], None]) -> Callable[[], None]:
        self.subscribers.append(subscriber)
        return lambda: self.subscribers.remove(subscriber)


class FakeService:
    """What the hub uses of the service."""

    def __init__(self) -> None:
        self.snapshot = make_fleet(make_snapshot("ada"), make_snapshot("bora"))
        self.events = FakeEvents()
        self.subscribers: list[Callable[[FleetSnapshot], None]] = []

    def subscribe(self, subscriber: Callable[[FleetSnapshot], None]) -> Callable[[], None]:
        self.subscribers.append(subscriber)
        return lambda: self.subscribers.remove(subscriber)

    def publish(self, *machines: MachineSnapshot) -> None:
        self.snapshot = replace(self.snapshot, seq=self.snapshot.seq + 1, machines=machines)
        for subscriber in self.subscribers:
            subscriber(self.snapshot)

    def tell(self, *events: Event) -> None:
        self.events.events = (*self.events.events, *events)
        for subscriber in self.events.subscribers:
            subscriber(events)


async def next_kind(stream: AsyncIterator[bytes]) -> tuple[str, str, Any]:
    """(kind, id, document) of the next message."""
    async with asyncio.timeout(30):
        while True:
            data = await anext(stream)
            lines = dict(line.split(": ", 1) for line in data.decode().splitlines() if ": " in line)
            if "event" in lines:
                return lines["event"], lines["id"], json.loads(lines["data"])


async def test_what_a_slow_reader_missed_is_left_out_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_hub, "KEPT_MESSAGES", 8)
    service = FakeService()
    hub = StreamHub(service)  # type: ignore[arg-type]
    slow = hub.read("")
    assert (await next_kind(slow))[0] == "snapshot"
    for number in range(100):
        service.tell(Event(time.time() + number / 1000, "ada", "loaded", "info", f"model {number}"))
    kind, _, document = await next_kind(slow)
    assert kind == "snapshot"
    assert [machine["name"] for machine in document["machines"]] == ["ada", "bora"]
    kind, _, document = await next_kind(slow)  # the events since are told from the timeline
    assert (kind, document["text"]) == ("event", "model 0")
    for number in range(1, 100):
        assert (await next_kind(slow))[2]["text"] == f"model {number}"
    service.tell(Event(time.time() + 1, "ada", "loaded", "info", "the next one"))
    assert (await next_kind(slow))[2]["text"] == "the next one"
    assert len(hub._messages) == 8
    hub.close()
    await slow.aclose()  # type: ignore[attr-defined]
    assert (service.subscribers, service.events.subscribers) == ([], [])


async def test_bytes_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_hub, "KEPT_BYTES", 4096)
    service = FakeService()
    hub = StreamHub(service)  # type: ignore[arg-type]
    stream = hub.read("")
    await next_kind(stream)
    for number in range(100):
        service.tell(Event(NOW + number, "ada", "loaded", "info", "x" * 100))
    assert 1 < len(hub._messages) < 30
    assert hub._bytes == sum(len(message.data) for message in hub._messages) <= 4096
    hub.close()
    await stream.aclose()  # type: ignore[attr-defined]


async def test_only_what_changed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_hub, "PACE_S", 0.0)
    service = FakeService()
    hub = StreamHub(service)  # type: ignore[arg-type]
    stream = hub.read("")
    await next_kind(stream)
    ada, bora = service.snapshot.machines
    later = asyncio.get_running_loop().call_later
    later(0.1, lambda: service.publish(ada, replace(bora, health="degraded")))
    kind, _, document = await next_kind(stream)
    assert (kind, [m["name"] for m in document["machines"]], document["gone"]) == ("machines", ["bora"], [])
    later(0.1, lambda: service.publish(ada))
    kind, _, document = await next_kind(stream)
    assert (kind, document["machines"], document["gone"]) == ("machines", [], ["bora"])
    hub.close()
    with pytest.raises(StopAsyncIteration):
        await next_kind(stream)


async def test_after_the_last_reader_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_hub, "LINGER_S", 0.05)
    service = FakeService()
    hub = StreamHub(service)  # type: ignore[arg-type]
    stream = hub.read("")
    _, first_id, _ = await next_kind(stream)
    await stream.aclose()  # type: ignore[attr-defined]
    async with asyncio.timeout(30):
        while service.subscribers:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    again = hub.read(first_id)
    assert (await next_kind(again))[0] == "snapshot"  # what happened meanwhile is not known
    hub.close()
    await again.aclose()  # type: ignore[attr-defined]
