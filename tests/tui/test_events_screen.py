"""The Events screen: live without moving what one reads, filtered, by keys, mouse, palette and `:`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context

import pytest
from textual.pilot import Pilot
from tui_fleet import NOW, Clock, FakeService, fleet, machine

from fleettui.model.event import Event
from fleettui.tui.app import FleetApp
from fleettui.tui.memory import Memory
from fleettui.tui.port import Look
from fleettui.tui.screens.events.screen import EventsScreen
from fleettui.tui.screens.fleet.screen import FleetScreen
from fleettui.tui.screens.machine.screen import MachineScreen
from fleettui.tui.screens.pending.screen import PendingScreen
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.event_list import EventList
from fleettui.tui.widgets.prompt import Prompt
from fleettui.view.cells import text_of

pytestmark = pytest.mark.usefixtures("quick_waiting")

DAY = 86_400


def event(age_s: float, name: str = "ada", kind: str = "loaded", text: str = "", **more: object) -> Event:
    """Something that happened so long ago."""
    return Event(NOW - age_s, name, kind, "note", text or f"{kind} {age_s:g}", **more)  # type: ignore[arg-type]


def many(count: int) -> tuple[Event, ...]:
    """A second apart, the oldest first."""
    return tuple(
        event(count - number, ("ada", "bora", "cleo")[number % 3], subject=str(number))
        for number in range(count)
    )


async def settle(pilot: Pilot[None]) -> None:
    await pilot.pause()
    assert isinstance(pilot.app, FleetApp)
    pilot.app.painter.paint_now()
    await pilot.pause()


async def opened(pilot: Pilot[None]) -> EventList:
    """Go to the screen."""
    await settle(pilot)
    await pilot.press("5")
    await settle(pilot)
    assert isinstance(pilot.app.screen, EventsScreen)
    return pilot.app.screen.pane.event_list


def service_with(*events: Event) -> FakeService:
    service = FakeService()
    service.events.events = events
    return service


def shown(view: EventList) -> list[str]:
    """The lines on the screen."""
    return [text_of(view.lines[index].cells).rstrip() for index in view.visible_range()]


def title(app: FleetApp) -> str:
    return app.screen.query_one("#event-title", CellBlock).text


def detail(app: FleetApp) -> str:
    return app.screen.query_one("#event-detail", CellBlock).text


async def test_newest_first_and_all_about_the_one_under_the_cursor() -> None:
    words = "no answer " * 14 + "at all"
    service = service_with(event(DAY, by="mia@jump"), event(60, "bora", "offline", words), event(9, "ada"))
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        view = await opened(pilot)
        lines = shown(view)
        assert [line.split()[1] for line in lines if "──" not in line] == ["ada", "bora", "ada"]
        assert lines[2].startswith(" yesterday, ")
        assert "9s ago" in detail(app)
        await pilot.press("j")
        await settle(pilot)
        assert detail(app).replace("\n", "").endswith("at all")
        await pilot.press("j")
        await settle(pilot)
        assert view.cursor == 3, "headings are passed over"
        assert "by mia@jump" in detail(app)
        await pilot.press("k", "k", "k")
        assert view.cursor == 0


async def test_a_long_text_makes_its_own_room_and_the_cursor_stays_in_sight() -> None:
    long = event(1000, "ada", "unseen", "not watched; meanwhile: " + "a thing happened; " * 17)
    service = service_with(long, *many(14))
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        view = await opened(pilot)
        few = detail(app).count("\n")
        await pilot.press("G")
        await settle(pilot)
        assert view.cursor_event is long
        assert detail(app).count("\n") > few
        assert detail(app).split().count("happened;") == 17
        assert view.cursor in view.visible_range()
        await pilot.press("g")
        await settle(pilot)
        assert detail(app).count("\n") == few
        assert view.is_following


async def test_events_of_another_task_are_painted_one_after_the_other() -> None:
    service = service_with(*many(3))
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        view = await opened(pilot)
        loop = asyncio.get_running_loop()
        for number in range(3):
            text = f"fresh {number}"
            # As the service does: its tasks know nothing of the app.
            loop.call_soon(lambda text=text: service.events.add(event(0, text=text)), context=Context())
            async with asyncio.timeout(20):
                while not any(text in line for line in shown(view)):
                    await pilot.pause(0.02)


async def test_new_events_come_live_and_never_move_what_one_reads() -> None:
    service = service_with(*many(100))
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        view = await opened(pilot)
        assert title(app).endswith("following")
        service.events.add(event(0, text="fresh"))
        await settle(pilot)
        assert "fresh" in shown(view)[0]
        assert view.cursor == 0, "it follows"
        await pilot.press("j", "j", "j")
        await settle(pilot)
        before, row = shown(view), view.cursor_line
        service.events.add(event(0, "bora", text="one"), event(0, "bora", text="two", subject="2"))
        await settle(pilot)
        assert shown(view) == before
        assert view.cursor_line is row
        assert "2 newer" in title(app)
        await pilot.press("g")
        await settle(pilot)
        assert "two" in shown(view)[0]
        assert title(app).endswith("following")


async def test_f_holds_the_list_and_follows_again() -> None:
    service = service_with(*many(40))
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        view = await opened(pilot)
        await pilot.press("f")
        before = shown(view)
        service.events.add(event(0, text="fresh"))
        await settle(pilot)
        assert shown(view) == before
        assert "1 newer" in title(app)
        await pilot.press("f")
        await settle(pilot)
        assert "fresh" in shown(view)[0]
        assert view.is_following


async def test_whoever_turns_the_wheel_reads() -> None:
    service = service_with(*many(100))
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        view = await opened(pilot)
        view.scroll_lines(6)
        await settle(pilot)
        before = shown(view)
        service.events.add(event(0, text="fresh"))
        await settle(pilot)
        assert shown(view) == before
        await pilot.press("g")
        await settle(pilot)
        assert "fresh" in shown(view)[0]


async def test_what_happens_again_is_counted_where_it_stands() -> None:
    first = event(30, "bora", "offline", "offline: no answer", subject="x")
    service = service_with(first, event(9))
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        view = await opened(pilot)
        again = Event(
            first.at, "bora", "offline", "note", first.text, {}, subject="x", count=2, last_at=NOW - 1
        )
        service.events.events = (again, service.events.events[1])
        service.events.add()
        await settle(pilot)
        assert shown(view)[1].endswith("×2")


async def test_the_filter_holds_while_one_types() -> None:
    service = service_with(*many(30), event(0, "ada", "maintenance", by="mia@jump"))
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        view = await opened(pilot)
        await pilot.press("slash", *"kind:maint")
        await settle(pilot)
        assert len(view.lines) == 1
        await pilot.press("escape")
        await settle(pilot)
        assert len(view.lines) == 31, "as before"
        await pilot.press("slash", *"bora", "enter")
        await settle(pilot)
        assert "/bora  10 of 31 events" in title(app)
        assert app.screen.current_machine == "bora"  # type: ignore[attr-defined]
        service.events.add(event(0, "ada", text="other"), event(0, "bora", text="mine"))
        await settle(pilot)
        assert "mine" in shown(view)[0]
        await pilot.press("escape")
        await settle(pilot)
        assert len(view.lines) == 33
        await pilot.press("slash", "up")
        await settle(pilot)
        assert "/bora" in title(app), "what was typed before"


async def test_the_next_run_begins_with_the_filter() -> None:
    memory = Memory({"events": {"filter": "kind:zzz", "typed": ["bora", 3]}})
    app = FleetApp(service_with(*many(30)), clock=Clock(), memory=memory)
    async with app.run_test(size=(80, 24)) as pilot:
        view = await opened(pilot)
        assert len(view.lines) == 30, "what cannot be read any more does not count"
        await pilot.press("slash", "up", "enter")
        await settle(pilot)
        assert len(view.lines) == 10
    app = FleetApp(service_with(*many(30)), clock=Clock(), memory=memory)
    async with app.run_test(size=(80, 24)) as pilot:
        view = await opened(pilot)
        assert len(view.lines) == 10
        await pilot.press("escape")
        assert memory.part("events")["filter"] == ""
        assert memory.part("events")["typed"] == ["bora"]


async def test_a_filter_that_cannot_be_read_is_told_and_not_taken() -> None:
    service = service_with(*many(3))
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        view = await opened(pilot)
        await pilot.press("slash", *"kind:zzz")
        await settle(pilot)
        assert "no kind 'zzz'" in app.screen.query_one("#prompt-hint", CellBlock).text
        await pilot.press("enter")
        assert app.screen.query_one(Prompt).question is not None
        await pilot.press("escape")
        await settle(pilot)
        assert len(view.lines) == 3
        await pilot.press("slash", *"nothing-like-it", "enter")
        await settle(pilot)
        assert "no event matches" in detail(app)


async def test_enter_on_a_machine_that_waits_shows_its_key() -> None:
    app = FleetApp(service_with(event(10, "kiosk", "trust")), clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, PendingScreen)


async def test_enter_and_a_double_click_go_to_the_machine() -> None:
    service = service_with(event(20, "gone"), event(10, "bora"), event(5, ""))
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        view = await opened(pilot)
        await pilot.press("enter")
        assert isinstance(app.screen, EventsScreen), "about no machine"
        await pilot.press("j", "enter")
        await settle(pilot)
        assert isinstance(app.screen, MachineScreen)
        assert app.screen.machine_name == "bora"
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, EventsScreen)
        await pilot.press("j", "enter")
        await settle(pilot)
        assert isinstance(app.screen, EventsScreen), "no longer declared"
        assert app.screen.current_machine is None
        await pilot.click(view, offset=(20, 2), times=2)
        await settle(pilot)
        assert isinstance(app.screen, MachineScreen)


@pytest.mark.parametrize("way", ["command", "palette"])
async def test_by_the_names_of_the_actions(way: str) -> None:
    service = service_with(*many(9))
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        if way == "command":
            await pilot.press("colon", *"events", "enter")
        else:
            names = {command.title: command.callback for command in app.get_system_commands(app.screen)}
            names["Events"]()
        await app.workers.wait_for_complete()
        await settle(pilot)
        assert isinstance(app.screen, EventsScreen)
        view = app.screen.pane.event_list
        if way == "command":
            await pilot.press("colon", *"filter kind:loaded bora", "enter")
        else:
            names = {command.title: command.callback for command in app.get_system_commands(app.screen)}
            names["Filter"]()
            await pilot.pause()
            await pilot.press(*"kind:loaded bora", "enter")
        await settle(pilot)
        assert len(view.lines) == 3
        if way == "command":
            await pilot.press("colon", *"follow", "enter")
            await settle(pilot)
            assert not view.is_following
        await pilot.press("1")
        assert isinstance(app.screen, FleetScreen)


async def test_events_that_are_not_kept_are_told() -> None:
    service = service_with(*many(3))
    service.events.error = "events are not stored: the state file is full"
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        assert " events are not stored: the state file is full" in title(app)
        service.events.error = None
        await settle(pilot)
        assert "not stored" not in title(app)


async def test_nothing_happened_yet() -> None:
    app = FleetApp(FakeService(fleet((machine("ada"),))), clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        view = await opened(pilot)
        assert "nothing happened yet" in detail(app)
        await pilot.press("j", "k", "g", "G", "enter", "f", "f", "pagedown")
        await settle(pilot)
        app.service.events.add(event(1))  # type: ignore[attr-defined]
        await settle(pilot)
        assert view.cursor_event is not None


async def test_ten_thousand_events_are_made_as_they_come_into_view() -> None:
    service = service_with(*many(10_000))
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(160, 50)) as pilot:
        view = await opened(pilot)
        made: Callable[[], int] = lambda: sum(row._cells is not None for row in view.lines)  # noqa: E731
        assert made() <= 2 * view.page_height
        await pilot.press("pagedown", "G")
        await settle(pilot)
        assert made() <= 4 * view.page_height
        painted, lines = view.painted, view.lines
        app.clock.now += 1  # type: ignore[attr-defined]
        await settle(pilot)
        assert view.lines is lines, "nothing is built for a second that passes"
        assert view.painted == painted


@pytest.mark.parametrize("glyphs", ["unicode", "ascii"])
async def test_every_size(glyphs: str) -> None:
    long = event(2, "a-machine-of-a-very-long-name", text="word " * 90, by="mia@a-long-host.example.net")
    app = FleetApp(service_with(*many(200), long), Look(glyphs=glyphs), clock=Clock())  # type: ignore[arg-type]
    async with app.run_test(size=(50, 14)) as pilot:
        view = await opened(pilot)
        for size in ((40, 12), (60, 17), (80, 24), (120, 40), (200, 60)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            assert view.page_height >= 5
            await pilot.press("pagedown", "G", "g")
            await settle(pilot)
            if glyphs == "ascii":
                texts = [*shown(view), title(app), detail(app)]
                assert all(text.isascii() for text in texts)
        assert len(view.lines) == 201


async def test_it_hears_no_more_when_it_is_gone() -> None:
    service = service_with(*many(3))
    app = FleetApp(service, clock=Clock())
    async with app.run_test() as pilot:
        await opened(pilot)
    assert service.events._callbacks == []


async def test_an_empty_timeline_says_why_in_as_many_lines_as_it_needs() -> None:
    app = FleetApp(service_with(), clock=Clock())
    async with app.run_test(size=(60, 24)) as pilot:
        await settle(pilot)
        await pilot.press("5")
        await settle(pilot)
        assert " ".join(detail(app).split()).endswith("loads, decisions and edited files stand here")
        assert max(map(len, detail(app).splitlines()[1:])) < 60
