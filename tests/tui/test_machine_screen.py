"""The Machine screen: live, scrolls, goes to the neighbours, survives that its machine is gone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from textual.pilot import Pilot
from tui_fleet import Clock, FakeService, card, fleet, machine, moved

from fleettui.fleet.profile_book import ProfileBook
from fleettui.model.profile import Profile, ProfileGpu
from fleettui.store.database import Store
from fleettui.store.profiles import save_profiles
from fleettui.tui.app import FleetApp
from fleettui.tui.screens.fleet.screen import FleetScreen
from fleettui.tui.screens.machine.page import TWO_COLUMNS_FROM, page_lines
from fleettui.tui.screens.machine.screen import MachineScreen
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.line_view import LineView
from fleettui.tui.widgets.painting import Line
from fleettui.view.cells import Cell, text_of
from fleettui.view.machine_page import Section


async def settle(pilot: Pilot[None]) -> None:
    await pilot.pause()
    assert isinstance(pilot.app, FleetApp)
    pilot.app.painter.paint_now()
    await pilot.pause()


def page_of(app: FleetApp) -> LineView[Line]:
    """The pane that is shown."""
    assert isinstance(app.screen, MachineScreen)
    pane = app.screen.pane
    assert isinstance(pane, LineView)
    return pane


def text_on(app: FleetApp) -> str:
    """All lines of the pane."""
    return "\n".join(text_of(line.cells) for line in page_of(app).lines)


async def test_it_shows_what_is_known_and_goes_on_living() -> None:
    service = FakeService()
    app = FleetApp(service, clock=Clock())
    async with app.run_test(size=(100, 40)) as pilot:
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, MachineScreen)
        for word in ("RTX 4090", "AMD EPYC", "Ollama 0.12.6", "/dev/nvme0n1p2", "eno1", "machines/ada.yaml"):
            assert word in text_on(app)
        page = page_of(app)
        before, painted = text_on(app), page.painted
        changed = moved(service.snapshot.machines[0], 5)
        service.publish(changed)
        await settle(pilot)
        assert text_on(app) != before
        assert 0 < page.painted - painted <= 4  # two cards, the load; not the page


async def test_it_compares_with_what_was_measured_once(tmp_path: Path) -> None:
    service = FakeService()
    service.profiles = ProfileBook(str(tmp_path), "machines")
    clock = Clock()
    app = FleetApp(service, clock=clock)
    async with app.run_test(size=(100, 40)) as pilot:
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)
        assert "Profile" not in text_on(app)
        name = service.snapshot.machines[0].name
        gpus = (ProfileGpu(0, "NVIDIA GeForce RTX 4090"), ProfileGpu(7, "NVIDIA GeForce RTX 3090"))
        with Store.open(str(tmp_path)) as store:
            save_profiles(store, "machines", [Profile(name, gpus=gpus, collected_at=clock())])
        await service.profiles.read()
        clock.now += 1
        await settle(pilot)
        assert "GPU 7 missing: RTX 3090" in text_on(app)


async def test_brackets_go_round_the_fleet() -> None:
    app = FleetApp(FakeService(), clock=Clock())
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("enter", "right_square_bracket")
        await settle(pilot)
        title = app.screen.query_one("#title", CellBlock)
        assert title.text.startswith(" app-host")
        assert title.text.endswith("2 of 9")
        await pilot.press("left_square_bracket", "left_square_bracket")
        await settle(pilot)
        assert title.text.startswith(" spark")


async def test_it_scrolls_by_lines_pages_and_to_the_ends() -> None:
    app = FleetApp(FakeService(), clock=Clock())
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)
        page = page_of(app)
        await pilot.press("j", "down", "k")
        assert page.scroll_offset.y == 1
        await pilot.press("G")
        assert page.scroll_offset.y == page.max_scroll_y > 0
        await pilot.press("pageup")
        assert page.scroll_offset.y < page.max_scroll_y
        await pilot.press("g")
        assert page.scroll_offset.y == 0


async def test_a_machine_that_is_no_longer_declared_is_said_to_be_gone() -> None:
    service = FakeService(fleet((machine("ada", card(0, "Tesla T4", 15360, 2, 0)), machine("bora"))))
    app = FleetApp(service, clock=Clock())
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("enter")
        service.publish_exactly(service.snapshot.machines[1:])
        await settle(pilot)
        assert "ada is no longer declared" in text_on(app)
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, FleetScreen)


async def test_hostile_names_stay_on_their_line() -> None:
    bad = machine("ada")
    bad = replace(bad, machine=replace(bad.machine, role="\x1b]0;owned\x07\nx", hostname="\x1b[2Jhost"))
    app = FleetApp(FakeService(fleet((bad,))), clock=Clock())
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)
        shown = text_on(app).replace("\n", "") + app.screen.query_one("#title", CellBlock).text
        assert shown.isprintable()


def test_sections_stand_side_by_side_where_there_is_room() -> None:
    sections = [
        Section(name, ((Cell(f"line of {name}"),),) * 3, name in ("three", "four"))
        for name in ("one", "two", "three", "four")
    ]
    narrow = page_lines(sections, TWO_COLUMNS_FROM - 1, "…")
    wide = page_lines(sections, TWO_COLUMNS_FROM, "…")
    assert [text_of(line.cells).strip() for line in narrow if "line" not in text_of(line.cells)] == [
        "one", "", "two", "", "three", "", "four",
    ]  # fmt: skip
    assert len(wide) < len(narrow)
    assert text_of(wide[0].cells).split() == ["one", "three"]
