"""A dashboard on a running server: what it shows, what it does when the server is killed and comes back."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from served import Served

from builders import NOW, make_snapshot
from fleettui.cli.folders import Folders
from fleettui.cli.serving import make_service
from fleettui.demo.launcher import DemoFleet
from fleettui.fleet.attached.events import ServedEvents
from fleettui.fleet.attached.fleet import AttachedFleet
from fleettui.fleet.attached.messages import MessageReader, ServedFleet
from fleettui.fleet.service import FleetService
from fleettui.model.event import Event
from fleettui.model.record import replace
from fleettui.model.server_place import ServerAccess, read_server_place
from fleettui.net.server_client import ServerError
from fleettui.serve.stream_form import AttachForm
from fleettui.view.origin import ASKING_HERE, SERVER_AWAY, VIA_SERVER
from sample_fleet import sample_fleet

PATIENCE_S = 60.0
PLACE = read_server_place("http://127.0.0.1:3038")


@pytest.fixture(scope="module")
def own_fleet() -> Iterator[DemoFleet]:
    """Machines that may be stopped."""
    with DemoFleet(machines=3, seed=7, is_frozen=True) as fleet:
        yield fleet


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


@asynccontextmanager
async def attached_to(
    served: Served, make_own: Callable[[], FleetService] | None = None
) -> AsyncIterator[AttachedFleet]:
    access = ServerAccess(read_server_place(f"http://127.0.0.1:{served.port}"))
    fleet = AttachedFleet(access, make_own, patience_s=0.5)
    await fleet.start()
    try:
        yield fleet
    finally:
        await fleet.stop()


async def test_killed_and_started_anew_under_an_attached_dashboard(
    own_fleet: DemoFleet, tmp_path: Path
) -> None:
    folders = Folders(str(own_fleet.machines_dir), str(tmp_path / "state"), 0.5)
    options = own_fleet.environment, "--interval", "0.5"
    made: list[FleetService] = []

    def make_own() -> FleetService:
        made.append(make_service(folders, "dashboard"))
        return made[-1]

    with Served(tmp_path / "first", *options) as first:
        async with attached_to(first, make_own) as fleet:
            await until(lambda: len(fleet.snapshot.machines) == 3 and fleet.origin == VIA_SERVER)
            await until(lambda: all(item.last_seen is not None for item in fleet.snapshot.machines))
            seen_at = fleet.snapshot.taken_at
            await until(lambda: fleet.snapshot.taken_at > seen_at)  # machines that change are followed
            names = [item.name for item in fleet.snapshot.machines]
            assert fleet.interval_s == 0.5
            assert made == []
            assert "nothing is changed through it" in fleet.notices[0]

            first.process.send_signal(signal.SIGKILL)
            await until(lambda: fleet.origin != VIA_SERVER)
            assert [item.name for item in fleet.snapshot.machines] == names  # nothing is lost
            await until(lambda: fleet.origin == ASKING_HERE)
            await until(
                lambda: any("cannot be reached" in text or "has ended" in text for text in fleet.notices)
            )
            await until(lambda: fleet.snapshot.interval_s == 0.5 and made[0].first_round.is_over)
            killed_at = time.time()
            await until(lambda: all((item.last_seen or 0) > killed_at for item in fleet.snapshot.machines))

            with Served(tmp_path / "second", *options, listen=f"127.0.0.1:{first.port}"):
                await until(lambda: fleet.origin == VIA_SERVER)
                await until(lambda: made[0].pollers == ())  # asking here ends a little later
                at = fleet.snapshot.taken_at
                await until(lambda: fleet.snapshot.taken_at > at)
                assert [item.name for item in fleet.snapshot.machines] == names
            assert len(made) == 1


async def test_events_come_along_and_go_on(own_fleet: DemoFleet, tmp_path: Path) -> None:
    """Without machine files here nobody is asked in the server's place."""
    with Served(tmp_path / "log", own_fleet.environment, "--interval", "0.5") as served:
        async with attached_to(served) as fleet:
            await until(lambda: len(fleet.snapshot.machines) == 3)
            await until(lambda: all(item.last_seen is not None for item in fleet.snapshot.machines))
            name = fleet.snapshot.machines[1].name
            told: list[Event] = []
            fleet.events.subscribe(told.extend)
            own_fleet.command(f"stop {name}")
            try:
                await until(lambda: any(event.kind == "offline" for event in told))
            finally:
                own_fleet.command(f"start {name}")
            async with attached_to(served) as later:
                await until(lambda: any(event.kind == "offline" for event in later.events.events))
            assert await fleet.profiles.read() == {}
            assert fleet.profiles.error is None
            served.process.kill()
            await until(lambda: fleet.origin == SERVER_AWAY)
            await until(lambda: "there are no machine files here" in fleet.notices[0])


async def test_a_server_of_another_sort_is_told(tmp_path: Path) -> None:
    server = await asyncio.start_server(
        lambda reader, writer: writer.write(b"HTTP/1.1 200 OK\r\n\r\nevent: snapshot\ndata: x\n\n"),
        "127.0.0.1",
        0,
    )
    async with server:
        place = read_server_place(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        fleet = AttachedFleet(ServerAccess(place), None)
        await fleet.start()
        await until(lambda: "is no fleettui server" in fleet.notices[0])
        await fleet.stop()
    assert fleet.snapshot.machines == ()


async def test_the_words_of_a_server_that_refuses_are_shown() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b'HTTP/1.1 401 Unauthorized\r\n\r\n{"error": {"code": "token", ')
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.write(b'"what": "reading is \\u001b[2Jrefused"}}')
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        place = read_server_place(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        fleet = AttachedFleet(ServerAccess(place), None)
        await fleet.start()
        await until(lambda: f"{place.text} refuses: reading is refused; tried again" in fleet.notices[0])
        await fleet.stop()


# -- messages --------------------------------------------------------------------------------------------


class FakeService:
    notices = ("mind the gap",)

    def __init__(self, *events: Event) -> None:
        self.events = ServedEvents()
        self.events.take(events)


EVENT = Event(NOW, "ada", "loaded", "good", "x is loaded")


def framed(kind: str, body: bytes) -> bytes:
    return b"id: 1-2-3\nevent: %b\ndata: %b\n\n" % (kind.encode(), body)


def test_a_fleet_is_told_by_its_messages_in_any_pieces() -> None:
    fleet = sample_fleet()
    service = FakeService(EVENT)
    form = AttachForm(service)  # type: ignore[arg-type]
    whole = form.whole(fleet, NOW)
    service.notices = ("the gap is closed",)
    changed = replace(fleet.machines[0], health="degraded", seq=99)
    later = replace(fleet, taken_at=NOW + 2, machines=(changed, *fleet.machines[2:]))
    gone = [fleet.machines[1].name]
    stream = (
        b"retry: 2000\n\n: nothing new\n\n"
        + framed("snapshot", whole)
        + framed("event", form.event(replace(EVENT, count=2, last_at=NOW + 1)))
        + framed("machines", form.changes(later, [changed], gone, NOW))
    )
    for step in (1, 7, len(stream)):
        reader, told = MessageReader(PLACE), ServedFleet(PLACE)
        fleets, events, notices = [], ServedEvents(), []
        for start in range(0, len(stream), step):
            for message in reader.receive(stream[start : start + step]):
                told.take(message)
                events.take(told.events)
                fleets.append(told.fleet)
                notices.append(told.notices)
        assert fleets == [fleet, fleet, later]
        assert notices == [("mind the gap",), ("mind the gap",), ("the gap is closed",)]
        assert events.events == (replace(EVENT, count=2, last_at=NOW + 1),)


@pytest.mark.parametrize(
    "data",
    [
        framed("snapshot", b"fleettui 1 0\ndata: x"), framed("snapshot", b"x"), framed("machines", b"[1]"),
        framed("machines", b"[1, 2, null, [], []]"), framed("event", b"[]"), framed("event", b"{"),
    ],
)  # fmt: skip
def test_messages_of_another_form_are_refused(data: bytes) -> None:
    told = ServedFleet(PLACE)
    (message,) = MessageReader(PLACE).receive(data)
    with pytest.raises(ServerError):
        told.take(message)
    assert told.fleet is None


def test_a_machine_that_was_never_told_is_refused() -> None:
    fleet, form = sample_fleet(), AttachForm(FakeService())  # type: ignore[arg-type]
    told, reader = ServedFleet(PLACE), MessageReader(PLACE)
    told.take(reader.receive(framed("snapshot", form.whole(fleet, NOW)))[0])
    more = replace(fleet, machines=(*fleet.machines, make_snapshot("zz")))
    with pytest.raises(ServerError):
        told.take(reader.receive(framed("machines", form.changes(more, [], [], NOW)))[0])
