"""Polling where the timing decides: a machine removed, sessions refused, another pace; on a scripted link."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fleettui.fleet.engine_feed import EngineFeed
from fleettui.fleet.engine_record import EngineRecord
from fleettui.fleet.poller import MachinePoller
from fleettui.fleet.record import MachineRecord
from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.model.machine import EngineEndpoint, Machine
from fleettui.model.snapshot import FleetSnapshot
from fleettui.net.direct_http import DirectHttp
from fleettui.net.errors import HttpFailure, LinkError
from fleettui.net.link import HttpAnswer
from fleettui.probes.frames import Section, encode_frame, parse_request
from fleettui.probes.loops import parse_loop_command

LIMIT_S = 10.0
PAYLOADS = {"stat": b"cpu  10 0 10 80 0 0 0 0 0 0\n"}


class ScriptedLoop:
    """Answers each question at once with empty sections, while `is_answering`."""

    def __init__(self, link: ScriptedLink, command: str, on_data: Callable[[bytes], None]) -> None:
        parsed = parse_loop_command(command)
        assert parsed is not None
        self.kind, self.token = parsed
        self.link, self.on_data, self.is_open = link, on_data, True

    def write(self, data: bytes) -> None:
        request = parse_request(data.rstrip(b"\n"))
        assert request is not None
        self.link.questions.append((self.kind, *request))
        self.last = request
        if self.link.is_answering:
            self.answer(*request)

    def answer_last(self) -> None:
        self.answer(*self.last)

    def answer(self, seq: int, sections: tuple[str, ...]) -> None:
        frame = {name.partition(":")[0]: Section(1, self.link.payloads.get(name, b"")) for name in sections}
        self.on_data(encode_frame(self.token, seq, frame))

    def close(self) -> None:
        self.is_open = False


class ScriptedLink:
    """A machine as the pollers see it."""

    address: str | None = "scripted"
    server_version: str | None = None

    def __init__(self) -> None:
        self.questions: list[tuple[Any, ...]] = []
        self.loops: list[ScriptedLoop] = []
        self.is_answering = True
        self.refuses_sessions = False
        self.gets: list[str] = []
        self.payloads = PAYLOADS

    async def open(self, on_lost: Callable[[LinkError], None]) -> None: ...

    async def open_loop(self, command: str, on_data: Callable[[bytes], None], on_end: object) -> ScriptedLoop:
        if self.refuses_sessions:
            raise LinkError("session", "no sessions here")
        self.loops.append(ScriptedLoop(self, command, on_data))
        return self.loops[-1]

    async def get(self, port: int, path: str, **_: object) -> HttpAnswer:
        self.gets.append(path)
        raise HttpFailure("refused", "nothing listens")

    def start_get(self, port: int, path: str, on_answer: object, timeout_s: float) -> bool:
        return False

    def count_streams(self, port: int) -> int:
        return 0

    async def close(self) -> None: ...


class ScriptedConnector:
    """Hands the one link out."""

    def __init__(self, link: ScriptedLink) -> None:
        self.link = link

    def link_for(self, machine: Machine) -> ScriptedLink:
        return self.link

    async def read_stamp(self) -> None: ...

    def forget_failures(self) -> None: ...

    def set_silence(self, silence_s: float) -> None: ...

    def close(self) -> None: ...


@asynccontextmanager
async def running(
    folder: Path, link: ScriptedLink, interval_s: float, clock: Callable[[], float] = time.time
) -> AsyncIterator[FleetService]:
    for name in ("ada", "bora"):
        (folder / f"{name}.yaml").write_text(
            f"name: {name}\nrole: r\nhardware: {{}}\nnetwork: {{hostname: {name}}}\nmodels: []\nssh: local\n"
        )
    service = FleetService(
        FleetSettings(str(folder), interval_s),
        ScriptedConnector(link),  # type: ignore[arg-type]
        clock=clock,
    )
    await service.start()
    try:
        yield service
    finally:
        await service.stop()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not condition():  # noqa: ASYNC110 (what is waited for has no event)
            await asyncio.sleep(0.01)


async def test_an_answer_just_after_a_machine_was_removed_stops_no_news(tmp_path: Path) -> None:
    link = ScriptedLink()
    async with running(tmp_path, link, 0.2) as service:
        await until(lambda: len(link.loops) == 4)
        ada = service.pollers[0]
        service._remove("ada")
        service._publisher.order = ("bora",)
        ada._on_change()  # what a frame that was already on its way does
        seq = service.snapshot.seq
        service.set_interval(0.5)
        await until(lambda: service.snapshot.seq > seq)
        assert [machine.name for machine in service.snapshot.machines] == ["bora"]


async def test_a_machine_that_cannot_be_judged_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = ScriptedLink()
    async with running(tmp_path, link, 0.2) as service:
        await until(lambda: len(link.loops) == 4)

        def fail(*_: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(service.pollers[0].record, "freeze", fail)
        seq = service.snapshot.seq
        await until(lambda: service.snapshot.seq > seq + 2)
        assert [machine.name for machine in service.snapshot.machines] == ["ada", "bora"]


async def test_logins_without_a_session_are_tried_less_and_less_often(tmp_path: Path) -> None:
    link = ScriptedLink()
    link.refuses_sessions = True
    async with running(tmp_path, link, 0.05) as service:
        record = service.pollers[0].record
        await until(lambda: record.link.next_try_at and record.link.next_try_at - time.time() > 0.15)
        assert record.link.stage == "session"


async def test_a_shorter_interval_holds_at_once(tmp_path: Path) -> None:
    link = ScriptedLink()
    async with running(tmp_path, link, 60.0) as service:
        await until(lambda: len(link.loops) == 4)
        await asyncio.sleep(0.8)  # the second sample, half a second after the first
        asked = len(link.questions)
        service.set_interval(0.5)
        await until(lambda: len(link.questions) > asked)


async def test_a_paused_fleet_asks_nothing_also_when_it_connects_again(tmp_path: Path) -> None:
    link = ScriptedLink()
    async with running(tmp_path, link, 0.2) as service:
        await until(lambda: len(link.loops) == 4 and link.gets)
        service.set_paused(True)
        await asyncio.sleep(0.8)  # the second sample of the rates, half a second after the first
        asked, fetched = len(link.questions), len(link.gets)
        for poller in service.pollers:
            poller._link_lost(LinkError("lost", "closed by the machine"))
        await until(lambda: len(link.loops) == 8)
        await asyncio.sleep(0.6)
        assert (len(link.questions), len(link.gets)) == (asked, fetched)
        service.set_paused(False)
        await until(lambda: len(link.questions) > asked)


async def test_a_login_alone_is_not_an_answer(tmp_path: Path) -> None:
    link = ScriptedLink()
    link.is_answering = False
    async with running(tmp_path, link, 0.2) as service:
        await until(lambda: len(link.loops) == 4 and len(link.questions) == 4)
        snapshot = service.final_snapshot()
        assert [machine.link.state for machine in snapshot.machines] == ["up", "up"]
        assert [machine.last_seen for machine in snapshot.machines] == [None, None]


async def test_after_a_sleep_of_this_computer_all_are_tried_at_once(tmp_path: Path) -> None:
    link = ScriptedLink()
    link.refuses_sessions = True
    async with running(tmp_path, link, 20.0) as service:
        pollers = service.pollers
        await until(lambda: all(poller.record.link.state == "failed" for poller in pollers))
        link.refuses_sessions = False
        service._wake_up()
        await until(lambda: all(poller.record.link.state == "up" for poller in pollers))
        asked = len(link.questions)
        service._wake_up()
        await until(lambda: len(link.questions) >= asked + 4)


async def test_hours_of_sleep_make_no_machine_silent(tmp_path: Path) -> None:
    """The wall clock is eight hours ahead when the next snapshot is made; then the machine is asked."""
    link = ScriptedLink()
    ahead_s = 0.0
    async with running(tmp_path, link, 0.3, lambda: time.time() + ahead_s) as service:
        await until(lambda: all(machine.cpu for machine in service.snapshot.machines))
        link.is_answering = False
        asked = len(link.questions)
        await until(lambda: len(link.questions) >= asked + 4)
        ahead_s = 8 * 3600.0
        health = {machine.health for machine in service.final_snapshot().machines}
        assert "offline" not in health
        service._wake_up()
        link.is_answering = True
        for loop in link.loops:
            loop.answer_last()
        asked = len(link.questions)
        await until(lambda: len(link.questions) >= asked + 8)
        assert all(machine.link.state == "up" for machine in service.final_snapshot().machines)


async def test_a_machine_without_proc_is_online_and_shows_its_engines(tmp_path: Path) -> None:
    """macOS, BSD: the loop runs and every file it reads is missing."""
    link = ScriptedLink()
    link.payloads = {"uname": b"Darwin 23.5.0 arm64\n"}
    async with running(tmp_path, link, 0.2) as service:
        await until(
            lambda: all(machine.last_seen and machine.engines for machine in service.snapshot.machines)
        )
        asked = len(link.questions)
        await until(lambda: len(link.questions) > asked + 8)
        for machine in service.final_snapshot().machines:
            assert (machine.link.state, machine.health) == ("up", "degraded")
            assert machine.engines[0].state == "down"
            assert machine.cpu is None or machine.cpu.load is not None


async def test_where_no_way_is_left_the_open_port_is_tried_again() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    answers: list[HttpAnswer | HttpFailure] = []

    class NoForwarding(ScriptedLink):
        async def get(self, port: int, path: str, **_: object) -> HttpAnswer:
            raise HttpFailure("forbidden", "no forwarding")

    async def no_tool(port: int, path: str) -> HttpAnswer:
        raise HttpFailure("forbidden", "neither curl nor wget")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        writer.close()

    endpoint = EngineEndpoint("ollama", port)
    direct = DirectHttp()
    feed = EngineFeed(
        "127.0.0.1",
        EngineRecord(endpoint, [endpoint]),
        lambda _e, path, answer, _way: answers.append(answer),
        no_tool,
        direct,
    )
    link = NoForwarding()
    feed.ask(link, time.time())
    await until(lambda: not feed.is_waiting)
    assert all(isinstance(answer, HttpFailure) for answer in answers)
    await until(lambda: not feed._asked)
    answers.clear()
    server = await asyncio.start_server(serve, "127.0.0.1", port)
    async with server:
        feed.ask(link, time.time())
        await until(lambda: not feed.is_waiting and answers)
    feed.close()
    await direct.close()
    assert isinstance(answers[-1], HttpAnswer)
    assert answers[-1].status == 200


@pytest.mark.parametrize("turns", range(6))
async def test_a_poke_just_before_the_end_does_not_keep_a_poller_alive(turns: int) -> None:
    link = ScriptedLink()
    link.refuses_sessions = True
    links: list[ScriptedLink] = []

    def next_link(machine: Machine) -> ScriptedLink:
        links.append(link)
        return link

    record = MachineRecord(Machine("ada", "gpu-host", "ada.lan"))
    poller = MachinePoller(record, next_link, time.time, lambda: None, 60.0)
    poller.start()
    task = poller._task
    assert task is not None
    async with asyncio.timeout(LIMIT_S):
        while record.link.state != "failed":  # noqa: ASYNC110 - a scripted link fails within a few turns
            await asyncio.sleep(0)
        for _ in range(5):
            await asyncio.sleep(0)  # until it waits
        tried = len(links)
        poller.poke()
        for _ in range(turns):
            await asyncio.sleep(0)
        await poller.close()
    assert task.cancelled()
    assert len(links) <= tried + 1


async def test_a_kept_channel_that_fails_at_once_is_asked_by_another_and_then_again() -> None:
    answers: list[object] = []

    class Broken(ScriptedLink):
        """Its kept channel ends in the moment of writing; a fresh one answers."""

        def start_get(self, port: int, path: str, on_answer: Any, timeout_s: float) -> bool:
            on_answer(HttpFailure("lost", "closed"))
            return True

        async def get(self, port: int, path: str, **_: object) -> HttpAnswer:
            return HttpAnswer(200, (), b'{"models":[]}', time.time())

    async def no_tool(port: int, path: str) -> HttpAnswer:
        raise HttpFailure("forbidden", "neither curl nor wget")

    endpoint = EngineEndpoint("ollama", 11434)
    feed = EngineFeed(
        "127.0.0.1",
        EngineRecord(endpoint, [endpoint]),
        lambda _e, path, answer, _way: answers.append(path),
        no_tool,
        DirectHttp(),
    )
    for count in (1, 2):
        assert feed.ask(Broken(), time.time())
        await until(lambda: not feed.is_waiting)
        assert answers.count("/api/ps") == count
    feed.close()


class NotingKeeper:
    """Remembers what it was given to store."""

    error = None

    def __init__(self) -> None:
        self.kept: list[FleetSnapshot | None] = []

    def keep(self, fleet: FleetSnapshot) -> None:
        self.kept.append(fleet)

    async def close(self, last: FleetSnapshot | None = None) -> None:
        self.kept.append(last)


async def test_a_pause_is_in_the_snapshots_and_ends_with_new_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = ScriptedLink()
    moment = [1_000.0]
    async with running(tmp_path, link, 0.2, lambda: moment[0]) as service:
        await until(lambda: len(link.loops) == 4 and service.snapshot.machines[1].last_seen)
        keeper = NotingKeeper()
        monkeypatch.setattr(service, "_keeper", keeper)
        await until(lambda: keeper.kept)
        moment[0] = 2_000.0
        service.set_paused(True)
        await until(lambda: service.snapshot.paused_at == 2_000.0)
        assert service.snapshot.judged_at(9_000.0) == 2_000.0
        kept = len(keeper.kept)
        moment[0] = 9_000.0
        asked = len(link.questions)
        service.set_paused(False)
        assert len(link.questions) > asked, "everybody is asked at once"
        await until(lambda: service.snapshot.paused_at is None)
        assert all((machine.last_seen or 0) == 9_000.0 for machine in service.snapshot.machines)
        await until(lambda: len(keeper.kept) > kept)
        stored = [fleet for fleet in keeper.kept[kept:] if fleet is not None]
        assert all(machine.last_seen == 9_000.0 for fleet in stored for machine in fleet.machines)
        service.set_paused(True)
    assert keeper.kept[-1] is None, "what was read before a pause is not stored as new at the end"
