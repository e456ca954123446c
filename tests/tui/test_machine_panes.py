"""The tabs Logs, Timeline and Raw of the Machine screen: keys, mouse, palette, `:`, sizes."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace

import pytest
from textual.pilot import Pilot
from tui_fleet import NOW, Clock, FakeService, card, fleet, machine, moved

from fleettui.cli.output import encode_json
from fleettui.fleet.machine_log import LogQuery, LogUnavailable, MachineLog
from fleettui.model.event import Event
from fleettui.model.log import LogLine
from fleettui.model.snapshot import MachineSnapshot
from fleettui.net.errors import LinkError
from fleettui.tui.actions import BY_ID
from fleettui.tui.app import FleetApp
from fleettui.tui.offers import actions_now
from fleettui.tui.port import Look
from fleettui.tui.screens.machine import log_reader
from fleettui.tui.screens.machine.log_reader import MOST_LINES
from fleettui.tui.screens.machine.logs import LogsPane
from fleettui.tui.screens.machine.pane import MachinePane
from fleettui.tui.screens.machine.raw import RawPane
from fleettui.tui.screens.machine.screen import MachineScreen
from fleettui.tui.screens.machine.timeline import TimelinePane
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.footer import Footer
from fleettui.tui.widgets.prompt import Prompt
from fleettui.view.cells import text_of
from fleettui.view.document import machine_document

pytestmark = pytest.mark.usefixtures("quick_waiting")

ADA = machine("ada", card(0, "NVIDIA L40S", 46068, 8000, 12))
BORA = machine("bora", card(0, "NVIDIA L40S", 46068, 9000, 12))
XID = LogLine(NOW - 8, "kernel", "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.", "gpu")
KERNEL = LogLine(NOW - 9, "kernel", "eth0: link up", "kernel")
ENGINE = LogLine(NOW - 7, "ollama", "level=INFO loaded", "engine")


async def settle(pilot: Pilot[None]) -> None:
    await pilot.pause()
    assert isinstance(pilot.app, FleetApp)
    pilot.app.painter.paint_now()
    await pilot.pause()


async def until(pilot: Pilot[None], condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await settle(pilot)


async def opened(pilot: Pilot[None], tab: str) -> MachinePane:
    """The tab of ada."""
    await settle(pilot)
    assert isinstance(pilot.app, FleetApp)
    pilot.app.open_machine("ada", tab)
    await settle(pilot)
    assert isinstance(pilot.app.screen, MachineScreen)
    return pilot.app.screen.pane


def service_of(*machines: MachineSnapshot) -> FakeService:
    return FakeService(fleet(machines or (ADA, BORA)))


def block(app: FleetApp, name: str) -> str:
    return app.screen.query_one(f"#{name}", CellBlock).text


# Raw


async def raw(pilot: Pilot[None]) -> RawPane:
    pane = await opened(pilot, "raw")
    assert isinstance(pane, RawPane)
    return pane


async def test_raw_is_what_the_command_line_prints() -> None:
    app = FleetApp(service_of(), clock=Clock())
    async with app.run_test(size=(100, 30)) as pilot:
        pane = await raw(pilot)
        assert pane.text == encode_json(machine_document(ADA, NOW))
        assert "\n".join(line.text for line in pane.view._plain) == pane.text
        await pilot.press("y")
        assert json.loads(app.clipboard) == json.loads(pane.text)


async def test_raw_is_made_with_a_new_snapshot_only_and_only_while_shown() -> None:
    service = service_of()
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(100, 30)) as pilot:
        pane = await raw(pilot)
        assert pane.built == 1
        app.clock.now += 1  # type: ignore[attr-defined]
        await settle(pilot)
        service.publish(moved(BORA, 3))
        await settle(pilot)
        assert pane.built == 1, "a second passed, another machine answered"
        await pilot.press("tab")
        service.publish(moved(ADA, 3))
        await settle(pilot)
        assert pane.built == 1, "nobody looks"
        await pilot.press("shift+tab")
        await settle(pilot)
        assert pane.built == 2


async def test_what_one_reads_in_raw_stays_when_lines_come() -> None:
    service = service_of()
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(100, 24)) as pilot:
        pane = await raw(pilot)
        await pilot.press("slash", *"temperature_c", "enter")
        await settle(pilot)
        assert block(app, "raw-title").startswith(" .telemetry.gpu[0].temperature_c")
        row = pane.view.cursor - pane.view.scroll_offset.y
        service.publish(replace(ADA, machine=replace(ADA.machine, tags=("a", "b", "c", "d")), seq=2))
        await settle(pilot)
        assert block(app, "raw-title").startswith(" .telemetry.gpu[0].temperature_c")
        assert pane.view.cursor - pane.view.scroll_offset.y == row


async def test_raw_is_looked_through() -> None:
    app = FleetApp(service_of(), clock=Clock())
    async with app.run_test(size=(100, 30)) as pilot:
        pane = await raw(pilot)
        await pilot.press("slash", *"GPU")
        await settle(pilot)
        count = len(pane.view.places)
        assert count > 2
        assert pane.view.cursor == pane.view.places[0]
        await pilot.press("enter", "n", "n")
        assert pane.view.cursor == pane.view.places[2]
        await pilot.press("N")
        assert pane.view.cursor == pane.view.places[1]
        assert f"2 of {count}" in block(app, "raw-title")
        marked = [cell for cell in pane.view.lines[pane.view.cursor].cells if cell.tone == "match"]
        assert [cell.text.lower() for cell in marked][:1] == ["gpu"]
        for _ in range(count):
            await pilot.press("n")
        assert pane.view.cursor == pane.view.places[1], "around"
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, MachineScreen), "the first Esc ends the search"
        assert pane.view.needle == ""
        await pilot.press("n")
        await settle(pilot)
        assert app.screen.machine_name == "bora", "n is the next machine again"


async def test_a_search_that_is_cancelled_leaves_all_as_it_was() -> None:
    app = FleetApp(service_of(), clock=Clock())
    async with app.run_test(size=(100, 30)) as pilot:
        pane = await raw(pilot)
        await pilot.press("j", "j", "slash", *"zzzz")
        await settle(pilot)
        assert "not there" in block(app, "prompt-hint")
        await pilot.press("escape")
        await settle(pilot)
        assert (pane.view.cursor, pane.view.needle) == (2, "")


async def test_a_long_value_is_shown_below() -> None:
    words = "a word " * 30 + "end"
    ada = replace(ADA, machine=replace(ADA.machine, document={"note": words, "name": "ada"}))
    app = FleetApp(service_of(ada), clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        await raw(pilot)
        await pilot.press("slash", *"a word", "enter")
        await settle(pilot)
        assert 'end"' in block(app, "raw-detail")
        await pilot.press("g")
        await settle(pilot)
        assert not app.screen.query_one("#raw-detail").display


async def test_the_footer_names_keys_as_they_are_here() -> None:
    app = FleetApp(service_of(), clock=Clock())
    async with app.run_test(size=(200, 30)) as pilot:
        await raw(pilot)
        await pilot.press("slash", *"gpu", "enter")
        await settle(pilot)
        labels = {offer.action.id: offer.label for offer in actions_now(app.screen)}
        assert labels["clear_find"] == BY_ID["clear_find"].label
        assert labels["back"] != labels["clear_find"], "Esc is not two things"
        assert labels["next_machine"] == "]"
        await settle(pilot)
        assert "Esc end find" in app.screen.query_one(Footer).text


# Timeline


def event(age_s: float, name: str) -> Event:
    return Event(NOW - age_s, name, "loaded", "note", f"a model loaded on {name}", {"model": "qwen3:8b"})


async def test_the_timeline_of_one_machine() -> None:
    service = service_of()
    service.events.events = (event(30, "ada"), event(20, "bora"), event(10, "ada"))
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(100, 30)) as pilot:
        pane = await opened(pilot, "timeline")
        assert isinstance(pane, TimelinePane)
        assert len(pane.event_list.lines) == 2
        assert all("bora" not in text_of(row.cells) for row in pane.event_list.lines)
        service.events.add(event(1, "bora"), event(0, "ada"))
        await settle(pilot)
        assert len(pane.event_list.lines) == 3
        await pilot.press("slash", *"kind:back", "enter")
        await settle(pilot)
        assert len(pane.event_list.lines) == 0
        await pilot.press("escape")
        await settle(pilot)
        assert len(pane.event_list.lines) == 3
        await pilot.press("right_square_bracket")
        await settle(pilot)
        assert isinstance(app.screen, MachineScreen)
        assert isinstance(app.screen.pane, TimelinePane)
        assert len(app.screen.pane.event_list.lines) == 2
        service.publish_exactly((ADA,))
        await settle(pilot)
        assert len(app.screen.pane.event_list.lines) == 2, "it happened, though the machine is gone"
    assert service.events._callbacks == []


# Logs


class FakeLog:
    """What a machine's log answers; stands for `read_log` and `follow_log`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lines: tuple[LogLine, ...] = (KERNEL, ENGINE, XID)
        self.notes: tuple[str, ...] = ()
        self.is_cut = False
        self.error: Exception | None = None
        self.reads = 0
        self.followers = 0
        self.coming: asyncio.Queue[LogLine | Exception] = asyncio.Queue()
        monkeypatch.setattr(log_reader, "open_link_of", lambda pollers, name: name)
        monkeypatch.setattr(log_reader, "read_log", self._read)
        monkeypatch.setattr(log_reader, "follow_log", self._follow)

    async def _read(self, link: object, query: LogQuery) -> MachineLog:
        self.reads += 1
        assert query == LogQuery(900, words=query.words)
        if self.error is not None:
            raise self.error
        left_out = (f"older lines are left out: {query.words.ask_less}",) if self.is_cut else ()
        return MachineLog(self.lines, notes=(*self.notes, *left_out))

    async def _follow(
        self, link: object, query: LogQuery, on_note: Callable[[str], None]
    ) -> AsyncGenerator[LogLine, None]:
        self.followers += 1
        try:
            for note in self.notes:
                on_note(note)
            for line in self.lines:
                yield line
            while True:
                item = await self.coming.get()
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.followers -= 1


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> FakeLog:
    return FakeLog(monkeypatch)


async def logs(pilot: Pilot[None]) -> LogsPane:
    pane = await opened(pilot, "logs")
    assert isinstance(pane, LogsPane)
    await settle(pilot)
    return pane


def rows(pane: LogsPane) -> list[str]:
    return [text_of(line.cells).strip() for line in pane.view.lines]


async def test_logs_are_read_once_with_the_gpu_driver_first(log: FakeLog) -> None:
    app = FleetApp(service_of(), clock=Clock())
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        assert log.reads == 0
        await pilot.press("l")
        await settle(pilot)
        assert isinstance(app.screen, MachineScreen)
        pane = app.screen.pane
        assert isinstance(pane, LogsPane)
        await until(pilot, lambda: pane.view.lines)
        assert "GPU driver" in rows(pane)[0]
        assert "Xid" in rows(pane)[1]
        assert "3 lines" in block(app, "log-title")
        await pilot.press("j")
        await settle(pilot)
        assert "fallen off the bus" in block(app, "log-detail")
        app.clock.now += 5  # type: ignore[attr-defined]
        await settle(pilot)
        assert log.reads == 1
        await pilot.press("r")
        await settle(pilot)
        assert log.reads == 2
        assert not app.service.polled, "r is the log's here"  # type: ignore[attr-defined]


async def test_without_lines_of_the_driver_the_newest_is_in_sight(log: FakeLog) -> None:
    log.lines = tuple(replace(KERNEL, text=f"line {number}") for number in range(100))
    app = FleetApp(service_of(), clock=Clock())
    async with app.run_test(size=(100, 30)) as pilot:
        pane = await logs(pilot)
        await until(pilot, lambda: pane.view.lines)
        assert pane.view.cursor == 99
        assert 99 in pane.view.visible_range()


async def test_following_keeps_the_newest_at_the_bottom_until_one_reads(log: FakeLog) -> None:
    log.lines = tuple(replace(KERNEL, text=f"line {number}") for number in range(100))
    app = FleetApp(service_of(), clock=Clock())
    async with app.run_test(size=(100, 30)) as pilot:
        pane = await logs(pilot)
        await pilot.press("f")
        await until(pilot, lambda: len(pane.view.lines) == 100 and log.followers == 1)
        log.coming.put_nowait(XID)
        await until(pilot, lambda: len(pane.view.lines) == 101)
        assert pane.view.cursor == 100
        await pilot.press("k", "k")
        await settle(pilot)
        seen = pane.view.visible_range()
        log.coming.put_nowait(ENGINE)
        await until(pilot, lambda: len(pane.view.lines) == 102)
        assert (pane.view.cursor, pane.view.visible_range()) == (98, seen)
        assert "3 newer" in block(app, "log-title")
        await pilot.press("G")
        log.coming.put_nowait(ENGINE)
        await until(pilot, lambda: len(pane.view.lines) == 103)
        assert pane.view.cursor == 102
        await pilot.press("f")
        await until(pilot, lambda: log.followers == 0 and pane.reader.state == "read")


@pytest.mark.parametrize("way", [("tab",), ("escape",), ("5",), ("right_square_bracket",), ("f",)])
async def test_whoever_leaves_ends_the_following(log: FakeLog, way: tuple[str, ...]) -> None:
    app = FleetApp(service_of(), clock=Clock())
    async with app.run_test(size=(100, 30)) as pilot:
        pane = await logs(pilot)
        await pilot.press("f")
        await until(pilot, lambda: log.followers == 1)
        await pilot.press(*way)
        await until(pilot, lambda: log.followers == 0)
        assert pane.reader.state != "following"


async def test_help_over_it_does_not_end_the_following(log: FakeLog) -> None:
    app = FleetApp(service_of(), clock=Clock())
    async with app.run_test(size=(100, 30)) as pilot:
        pane = await logs(pilot)
        await pilot.press("f")
        await until(pilot, lambda: log.followers == 1)
        await pilot.press("question_mark")
        await settle(pilot)
        log.coming.put_nowait(ENGINE)
        await pilot.press("escape")
        await until(pilot, lambda: len(pane.view.lines) == 4)
        assert log.followers == 1


async def test_a_log_that_may_not_be_read_says_why_and_what_to_do(log: FakeLog) -> None:
    log.error = LogUnavailable(
        "this account may not read the system's journal",
        "let it: sudo usermod -aG systemd-journal USER there",
    )
    app = FleetApp(service_of(), clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        pane = await logs(pilot)
        await until(pilot, lambda: pane.reader.state == "failed")
        await settle(pilot)
        said = block(app, "log-said")
        assert "no log: this account may not read the system's journal" in said
        assert "usermod -aG systemd-journal" in said
        app.clock.now += 5  # type: ignore[attr-defined]
        await settle(pilot)
        assert log.reads == 1, "not again by itself"
        log.error = None
        await pilot.press("r")
        await until(pilot, lambda: pane.view.lines)
        assert block(app, "log-said") == ""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (LinkError("lost", "the connection was closed"), "no log: the connection was closed"),
        (ValueError("a fault of ours"), "ValueError: a fault of ours"),
    ],
)
async def test_any_error_is_told(log: FakeLog, error: Exception, said: str) -> None:
    log.error = error
    app = FleetApp(service_of(), clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        await logs(pilot)
        await until(pilot, lambda: said in block(app, "log-said"))


async def test_a_following_that_ends_keeps_its_lines(log: FakeLog) -> None:
    app = FleetApp(service_of(), clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        pane = await logs(pilot)
        await pilot.press("f")
        await until(pilot, lambda: log.followers == 1 and pane.view.lines)
        log.coming.put_nowait(
            LogUnavailable("there is no journalctl", "without following (f) the kernel's buffer")
        )
        await until(pilot, lambda: "no more: there is no journalctl" in block(app, "log-said"))
        assert "without following (f)" in block(app, "log-said")
        assert len(pane.view.lines) == 3


async def test_a_flood_is_bounded(log: FakeLog) -> None:
    log.lines = tuple(replace(ENGINE, text=f"line {number}") for number in range(3 * MOST_LINES))
    app = FleetApp(service_of(), clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        pane = await logs(pilot)
        await pilot.press("f")
        await until(pilot, lambda: pane.reader.state == "following" and pane.reader.dropped)
        await until(pilot, lambda: 0 < len(pane.view.lines) < 3 * MOST_LINES)
        await until(pilot, lambda: pane.view.lines[-1].key == f"line {3 * MOST_LINES - 1}")
        assert MOST_LINES <= len(pane.view.lines) <= 2 * MOST_LINES
        assert sum(row._cells is not None for row in pane._rows) <= len(pane.view.lines)
        await pilot.press("g")
        before = pane.view.cursor_line
        log.coming.put_nowait(ENGINE)
        await until(pilot, lambda: rows(pane)[-1].endswith("loaded"))
        assert pane.view.cursor_line is before


@pytest.mark.parametrize("trust", ["pending", "rejected", "key_changed"])
async def test_nothing_is_asked_before_approval(log: FakeLog, trust: str) -> None:
    app = FleetApp(service_of(replace(ADA, trust=trust)), clock=Clock())  # type: ignore[arg-type]
    async with app.run_test(size=(80, 24)) as pilot:
        await logs(pilot)
        await pilot.press("r", "f", "r")
        await settle(pilot)
        assert (log.reads, log.followers) == (0, 0)
        assert "nothing is asked" in block(app, "log-said").replace("\n", "")


async def test_offline_machines_are_read_once_they_answer(log: FakeLog) -> None:
    away = replace(ADA, link=replace(ADA.link, state="failed", error="no answer on port 22"))
    service = service_of(away, BORA)
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        pane = await logs(pilot)
        assert log.reads == 0
        assert "not connected: no answer on port 22" in block(app, "log-said")
        service.publish(ADA)
        await until(pilot, lambda: pane.view.lines)
        assert log.reads == 1
        assert block(app, "log-said") == ""
        service.publish_exactly((BORA,))
        await settle(pilot)
        assert "no longer declared" in block(app, "log-said")


async def test_nothing_was_written(log: FakeLog) -> None:
    log.lines, log.is_cut = (), True
    app = FleetApp(service_of(), clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        pane = await logs(pilot)
        await until(pilot, lambda: pane.reader.state == "read")
        await settle(pilot)
        said = block(app, "log-said")
        assert "no line of kernel, engines" in said
        assert "older lines are left out: fleettui logs has --since" in said


# Everywhere


@pytest.mark.parametrize("tab", ["logs", "timeline", "raw"])
@pytest.mark.parametrize("glyphs", ["unicode", "ascii"])
async def test_every_size(log: FakeLog, tab: str, glyphs: str) -> None:
    log.lines += (LogLine(NOW, "a-unit-of-a-long-name@x", "word " * 99, "engine"),) * 99
    service = service_of()
    service.events.events = tuple(event(99 - number, "ada") for number in range(99))
    app = FleetApp(service, Look(glyphs=glyphs), clock=Clock())  # type: ignore[arg-type]
    async with app.run_test(size=(30, 9)) as pilot:
        pane = await opened(pilot, tab)
        for size in ((40, 12), (80, 24), (200, 60)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            assert pane.query_one("#log, #events, #raw").size.height >= 5
            await pilot.press("pagedown", "G", "g", "j")
            await settle(pilot)
            if glyphs == "ascii":
                assert all(block.text.isascii() for block in pane.query(CellBlock))


async def test_by_palette_and_colon(log: FakeLog) -> None:
    app = FleetApp(service_of(), clock=Clock())
    async with app.run_test(size=(120, 30)) as pilot:
        pane = await raw(pilot)
        await pilot.press("colon", *"find uuid", "enter")
        await settle(pilot)
        assert pane.view.needle == "uuid"
        commands = {command.title: command.callback for command in app.get_system_commands(app.screen)}
        commands["Copy json"]()
        await app.workers.wait_for_complete()
        assert app.clipboard == pane.text
        commands["End find"]()
        await app.workers.wait_for_complete()
        assert pane.view.needle == ""
        app.open_machine("ada", "logs")
        await settle(pilot)
        await pilot.press("colon", *"follow", "enter")
        await until(pilot, lambda: log.followers == 1)


async def test_by_mouse(log: FakeLog) -> None:
    app = FleetApp(service_of(), clock=Clock())
    async with app.run_test(size=(100, 30)) as pilot:
        pane = await raw(pilot)
        await pilot.click(pane.view, offset=(10, 4))
        assert pane.view.cursor == 4
        footer = app.screen.query_one(Footer)
        await pilot.click(footer, offset=(footer.text.index("/ find") + 1, 0))
        await settle(pilot)
        assert app.screen.query_one(Prompt).question is not None


def panes_in_memory() -> int:
    gc.collect()
    return sum(isinstance(item, MachinePane) for item in gc.get_objects())


async def test_panes_that_were_closed_are_let_go(log: FakeLog) -> None:
    app = FleetApp(service_of(), clock=Clock())
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        before = panes_in_memory()
        for _ in range(3):
            for tab in ("logs", "timeline", "raw"):
                await opened(pilot, tab)
                await pilot.press("escape")
                await settle(pilot)
        assert panes_in_memory() <= before + 1, "the last one may still be on its way out"
