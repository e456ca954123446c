"""The Route screen by keys and mouse, with a real desk over a state folder."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from action_rig import typed
from test_pick import server
from textual.pilot import Pilot
from tui_fleet import NOW, Clock, FakeService, fleet, machine, moved, sample_machines

from fleettui.decide.knowledge import NOTHING_KNOWN, RouteKnowledge
from fleettui.fleet.route_desk import RouteDesk, RouteDeskError
from fleettui.fleet.warm_up import WarmedUp
from fleettui.model.catalog import Catalog, CatalogModel
from fleettui.model.lease import Lease
from fleettui.model.readings import LoadedModel
from fleettui.model.route import RouteCandidate
from fleettui.model.snapshot import MachineSnapshot, MaintenanceFlag
from fleettui.store.database import Store
from fleettui.store.load_rates import record_load_rate
from fleettui.tui.app import FleetApp
from fleettui.tui.memory import Memory
from fleettui.tui.port import Look
from fleettui.tui.screens.route.screen import RouteScreen
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.view.cells import text_of, width_of

LLAMA = "llama3.1:70b"


class FakeDesk:
    """A test decides what is leased and loaded."""

    def __init__(self) -> None:
        self.leased: list[tuple[str, str]] = []
        self.loads: list[tuple[str, int | None]] = []
        self.knowledge = NOTHING_KNOWN
        self.error: str | None = None
        self.refusal: str | None = None
        self.note: Callable[[str], None] = lambda text: None
        self.loaded: asyncio.Future[WarmedUp] = asyncio.get_running_loop().create_future()

    def knowledge_of(self, model: str) -> RouteKnowledge:
        return self.knowledge

    async def take_lease(self, candidate: RouteCandidate, canonical: str) -> Lease:
        if self.refusal is not None:
            raise RouteDeskError(self.refusal)
        self.leased.append((candidate.machine, canonical))
        until = NOW + 10.0
        return Lease(
            "b0", candidate.machine, candidate.port, candidate.engine, canonical, "resident", NOW, until
        )

    async def warm_up(
        self, candidate: RouteCandidate, context: int | None, note: Callable[[str], None]
    ) -> WarmedUp:
        self.loads.append((candidate.machine, context))
        self.note = note
        return await asyncio.shield(self.loaded)


class Driver:
    """The dashboard under test, with words for what one looks at."""

    def __init__(self, app: FleetApp, service: FakeService, pilot: Pilot[None], desk: FakeDesk) -> None:
        self.app, self.service, self.pilot, self.desk = app, service, pilot, desk

    @property
    def screen(self) -> RouteScreen:
        assert isinstance(self.app.screen, RouteScreen)
        return self.app.screen

    @property
    def lines(self) -> list[str]:
        return [text_of(line.cells).rstrip() for line in self.screen.ranking_list.lines]

    @property
    def keys(self) -> list[str]:
        """Machines, or models, from top to bottom."""
        return [line.machine for line in self.screen.ranking_list.lines if line.is_stop]

    @property
    def current(self) -> str | None:
        row = self.screen.current_row
        return None if row is None else row.machine

    @property
    def toasts(self) -> str:
        return "\n".join(toast.message for toast in self.app._notifications)

    def line(self, name: str) -> str:
        return next(line for line in self.lines if f" {name} " in f"{line} ")

    def text(self, name: str) -> str:
        return self.screen.query_one(f"#{name}", CellBlock).text

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
        await self.settle()

    async def settle(self) -> None:
        await self.pilot.pause()
        self.app.painter.paint_now()
        await self.pilot.pause()

    async def publish(self, *machines: MachineSnapshot) -> None:
        self.service.publish(*machines)
        await self.settle()

    async def route(self, model: str = LLAMA) -> None:
        """From the Fleet screen to the ranking of a model."""
        await self.press("3", *typed(f":model {model}"), "enter")


@asynccontextmanager
async def dashboard(
    machines: Sequence[MachineSnapshot] | None = None,
    size: tuple[int, int] = (120, 40),
    look: Look | None = None,
    memory: Memory | None = None,
    has_desk: bool = True,
    **more: Any,
) -> AsyncIterator[Driver]:
    service = FakeService(fleet(None if machines is None else tuple(machines), **more))
    desk = FakeDesk()
    service.routing = desk if has_desk else None  # type: ignore[assignment]
    app = FleetApp(service, look, Clock(), memory)
    async with app.run_test(size=size, notifications=True) as pilot:
        driver = Driver(app, service, pilot, desk)
        await driver.settle()
        yield driver


# -- the model --------------------------------------------------------------------------------------


async def test_what_is_typed_shows_the_models_that_match_and_enter_takes_the_one_under_the_cursor() -> None:
    async with dashboard() as driver:
        await driver.press("3", "slash")
        assert driver.keys[:2] == [LLAMA, "phi3:mini"]
        await driver.press(*typed("70"))
        assert driver.keys == [LLAMA]
        await driver.press("ctrl+u", *typed("m"), "down")
        assert (driver.keys[0], driver.current) == ("mixtral:8x22b", driver.keys[1])
        await driver.press("up", "enter")
        assert driver.text("title").startswith(" Route  mixtral:8x22b   1 eligible of 9")


async def test_tab_completes_over_loaded_installed_declared_and_catalog_names() -> None:
    named = CatalogModel("yi-large", names=(("ollama", ("yi:34b",)),))
    async with dashboard(catalog=Catalog((named,))) as driver:
        await driver.press("3", "slash", *typed("yi:"), "tab")
        assert driver.app.screen.focused is not None
        assert driver.app.screen.focused.value == "yi:34b"  # type: ignore[attr-defined]
        assert driver.lines == ["   yi:34b" + " " * 3 + "in the catalog"]
        await driver.press("escape")
        assert "yi-large" in driver.keys


async def test_a_name_that_nobody_knows_shows_the_nearest_and_enter_takes_one_of_them() -> None:
    async with dashboard([machine("ada"), machine("bora")]) as driver:
        await driver.press("3", "slash", *typed("llama3.1:71b"))
        assert "no model has that name" in driver.text("prompt-hint")
        await driver.press("enter")
        assert "No machine knows llama3.1:71b; did you mean:" in driver.text("notes")
        assert driver.keys[0] == LLAMA
        await driver.press("g", "enter")
        assert driver.text("title").startswith(f" Route  {LLAMA}")


async def test_without_a_model_the_list_is_of_models() -> None:
    async with dashboard() as driver:
        await driver.press("3")
        assert "/ to type a name, or choose one of these" in driver.text("detail")
        assert driver.current == LLAMA
        assert "loaded on 1  installed on 7  declared by 9 files" in driver.line(LLAMA)
        await driver.press("j", "enter")
        assert driver.text("title").startswith(" Route  phi3:mini")


# -- the ranking ------------------------------------------------------------------------------------


async def test_the_ranking_is_that_of_route_and_every_other_machine_has_all_its_reasons() -> None:
    from fleettui.decide.routing import decide_route
    from fleettui.model.route import RouteQuery

    flag = MaintenanceFlag("fan swap", "mia", NOW - 7200)
    full = replace(server("zoe", 1), maintenance=flag)
    async with dashboard([*sample_machines(), full]) as driver:
        await driver.press("3", *typed(f":model {LLAMA}"), "enter", *typed("v60"), "enter")
        query = RouteQuery(LLAMA, min_free_vram_mib=60 * 1024)
        decision = decide_route(driver.service.snapshot, query, NOW)
        assert driver.keys == [
            *(item.machine for item in decision.candidates),
            *(item.machine for item in decision.rejected),
        ]
        assert f"{len(decision.candidates)} eligible of 10 · data 1.0 s old" in driver.text("title")
        text = " ".join(" ".join(driver.lines).split())
        for rejected in decision.rejected:
            assert " ".join(rejected.text.split()) in text
        zoe = next(item for item in decision.rejected if item.machine == "zoe")
        assert {"maintenance", "free_vram"} <= set(zoe.codes)


async def test_each_line_has_rank_tier_word_seconds_and_free_vram_of_the_card() -> None:
    async with dashboard(size=(160, 40)) as driver:
        await driver.route()
        assert driver.line("ada").split()[:5] == ["1", "ada", "0", "ready", "now"]
        assert "5.3 on GPU 1" in driver.line("ada")
        assert "assumed" in driver.line("spark")
        assert driver.text("detail").strip().startswith("ada.example.net:11434 · resident, 100 % GPU")


async def test_a_new_snapshot_makes_it_anew_only_where_something_changed_and_only_when_shown() -> None:
    async with dashboard() as driver:
        await driver.route()
        screen = driver.screen
        before = screen.ranking.decided
        await driver.settle()
        assert screen.ranking.decided == before
        await driver.publish(moved(driver.service.snapshot.machines[0], 3))
        assert screen.ranking.decided == before + 1
        await driver.press("1")
        await driver.publish(moved(driver.service.snapshot.machines[0], 4))
        assert screen.ranking.decided == before + 1
        await driver.press("3")
        assert screen.ranking.decided == before + 2


async def test_lines_stay_under_the_cursor_and_take_new_places_on_demand() -> None:
    async with dashboard([server("ada", 30), server("bora", 20), server("cleo", 10)]) as driver:
        await driver.route()
        assert driver.keys == ["ada", "bora", "cleo"]
        await driver.press("j")
        await driver.publish(server("cleo", 40))
        assert (driver.keys, driver.current) == (["ada", "bora", "cleo"], "bora")
        assert driver.line("cleo").split()[0] == "1"
        await driver.press("r")
        assert (driver.keys, driver.current) == (["cleo", "ada", "bora"], "bora")


async def test_who_has_not_moved_the_cursor_has_the_best_under_it_once_the_lines_move() -> None:
    async with dashboard([server("ada", 30), server("bora", 20)]) as driver:
        await driver.route()
        await driver.publish(server("bora", 40))
        await driver.press("r")
        assert driver.keys == ["bora", "ada"]
        assert driver.current == "bora"


async def test_the_cursor_goes_from_machine_to_machine_over_all_their_lines() -> None:
    async with dashboard(size=(60, 40)) as driver:
        await driver.route()
        view = driver.screen.ranking_list
        seen = [driver.current]
        for _ in range(len(driver.keys) - 1):
            await driver.press("j")
            seen.append(driver.current)
        assert seen == driver.keys
        pve52 = [index for index, line in enumerate(view.lines) if line.machine == "pve52"]
        assert len(pve52) > 1
        assert all(view.backdrop_of(index) is not None for index in pve52)
        await driver.press("k", "k")
        assert driver.current == driver.keys[-3]
        await driver.pilot.click(view, offset=(20, pve52[-1] + 1 - view.scroll_offset.y))
        await driver.settle()
        assert driver.current == "pve52"


# -- options ----------------------------------------------------------------------------------------


async def test_options_change_the_question_are_shown_and_are_remembered() -> None:
    memory = Memory()
    async with dashboard(memory=memory, size=(140, 40)) as driver:
        await driver.route()
        await driver.press(*typed("c32k"), "enter", *typed("v24"), "enter", "L", "b", "P")
        query = driver.screen.query_now
        assert (query.context, query.min_free_vram_mib) == (32768, 24 * 1024)
        assert query.require_loaded
        assert query.avoid_busy
        assert query.allow_pull
        assert "c ● context 32768   v ● 24.0 GiB free   L ● loaded only" in driver.text("options")
        await driver.press("L")
        assert "L ○ loaded only" in driver.text("options")
    async with dashboard(memory=memory) as driver:
        await driver.press("3")
        assert driver.screen.query_now == replace_loaded(query)
        assert driver.text("title").startswith(f" Route  {LLAMA}")


def replace_loaded(query: Any) -> Any:
    from fleettui.model.record import replace as replace_record

    return replace_record(query, require_loaded=False)


async def test_an_option_that_cannot_be_read_says_what_is_meant_and_nothing_drops_it() -> None:
    async with dashboard() as driver:
        await driver.route()
        await driver.press(*typed("cmuch"), "enter")
        assert "'much' is not a number of tokens: write 32768 or 32k" in driver.text("prompt-hint")
        await driver.press("ctrl+u", *typed("8192"), "enter")
        assert driver.screen.query_now.context == 8192
        await driver.press("c", "ctrl+u", "enter", *typed(":min-free-vram 4000MiB"), "enter")
        assert driver.screen.query_now.context is None
        assert driver.screen.query_now.min_free_vram_mib == 4000


async def test_options_are_clicked() -> None:
    async with dashboard() as driver:
        await driver.route()
        at = driver.text("options").index("avoid busy") + 2
        await driver.pilot.click("#options", offset=(at, 0))
        await driver.settle()
        assert driver.screen.query_now.avoid_busy


# -- leases -----------------------------------------------------------------------------------------


async def test_enter_leases_copies_and_says_until_when() -> None:
    async with dashboard() as driver:
        await driver.route()
        await driver.press("enter")
        await driver.app.workers.wait_for_complete()
        assert driver.desk.leased == [("ada", LLAMA)]
        assert driver.app.clipboard == "ada.example.net:11434"
        assert "ada.example.net:11434 of ada" in driver.toasts
        assert "leased until 02:40:10 UTC (10 s)" in driver.toasts


async def test_y_copies_without_a_lease() -> None:
    async with dashboard() as driver:
        await driver.route()
        await driver.press("j", "y")
        assert driver.desk.leased == []
        assert driver.app.clipboard == f"{driver.current}.example.net:11434"


@pytest.mark.parametrize(
    ("look", "has_desk", "why"),
    [(Look(is_readonly=True), True, "--readonly changes nothing"), (None, False, "there is none")],
)
async def test_where_nothing_is_leased_enter_copies_and_says_why(
    look: Look | None, has_desk: bool, why: str
) -> None:
    async with dashboard(look=look, has_desk=has_desk) as driver:
        await driver.route()
        await driver.press("enter")
        assert driver.desk.leased == []
        assert driver.app.clipboard == "ada.example.net:11434"
        assert why in driver.toasts


async def test_a_lease_that_cannot_be_written_is_told() -> None:
    async with dashboard() as driver:
        driver.desk.refusal = "state.db: disk full"
        await driver.route()
        await driver.press("enter")
        await driver.app.workers.wait_for_complete()
        assert driver.app.clipboard == "ada.example.net:11434"
        assert "not leased: state.db: disk full" in driver.toasts


async def test_enter_on_a_machine_that_is_out_opens_its_page_and_i_opens_any() -> None:
    async with dashboard() as driver:
        await driver.route()
        await driver.press("G")
        assert driver.current == "pve52"
        await driver.press("enter")
        assert driver.app.screen.machine_name == "pve52"  # type: ignore[attr-defined]
        await driver.press("escape", "g", "i")
        assert driver.app.screen.machine_name == "ada"  # type: ignore[attr-defined]
        assert driver.desk.leased == []


async def test_a_lease_is_seen_by_who_asks_through_the_state_folder(tmp_path: Path) -> None:
    async with dashboard([server("ada", 30), server("bora", 20)]) as driver:
        clock = Clock()
        service = driver.service
        desk = RouteDesk(lambda: service.snapshot, str(tmp_path), "machines", clock)
        service.routing = desk
        await driver.route()
        clock.now = time.time()  # leases are dated by the clock of the store
        await driver.press("enter")
        await driver.app.workers.wait_for_complete()
        other = RouteDesk(lambda: service.snapshot, str(tmp_path), "machines", clock)
        other.knowledge_of(LLAMA)
        assert other._reading is not None
        await other._reading
        assert [lease.machine for lease in other.knowledge_of(LLAMA).leases] == ["ada"]
        assert desk.knowledge_of(LLAMA).leases == other.knowledge_of(LLAMA).leases


# -- warm-up ----------------------------------------------------------------------------------------


def warmed(name: str) -> WarmedUp:
    return WarmedUp(name, LoadedModel(LLAMA, "ollama", vram_bytes=40 << 30, context=8192), 24.0)


async def test_w_asks_first_loads_with_progress_and_says_what_became_of_it() -> None:
    async with dashboard([server("ada", 30), server("bora", 20)]) as driver:
        await driver.route()
        await driver.press("w")
        assert driver.app.screen.query_one("#prompt-label", CellBlock).text == f" load {LLAMA} on ada?"
        assert "evicts nothing; ready in ~5 s" in driver.text("prompt-hint")
        await driver.press("escape")
        assert driver.desk.loads == []
        await driver.press("w", "enter")
        assert driver.desk.loads == [("ada", None)]
        driver.desk.note(f"loading {LLAMA} on ada: 12 of ~27 s")
        await driver.settle()
        assert "12 of ~27 s" in driver.text("title")
        await driver.press("1", "3", "w")
        assert driver.desk.loads == [("ada", None)], "one at a time"
        driver.desk.loaded.set_result(warmed("ada"))
        await driver.app.workers.wait_for_complete()
        await driver.settle()
        assert f"{LLAMA} is loaded on ada: 40.0 GiB of VRAM, ctx 8192, 24 s" in driver.toasts
        assert "loading" not in driver.text("title")


async def test_esc_stops_the_waiting_and_not_the_load() -> None:
    async with dashboard([server("ada", 30)]) as driver:
        await driver.route()
        await driver.press("w", "enter", "escape")
        assert "ada goes on loading" in driver.toasts
        assert not driver.desk.loaded.cancelled()
        assert isinstance(driver.app.screen, RouteScreen), "it stays on the screen"


async def test_a_load_that_fails_is_told() -> None:
    async with dashboard([server("ada", 30)]) as driver:
        await driver.route()
        await driver.press("w", "enter")
        driver.desk.loaded.set_exception(RouteDeskError("ada: out of memory"))
        await driver.app.workers.wait_for_complete()
        assert "ada: out of memory" in driver.toasts


async def test_a_copy_with_another_context_can_be_loaded_anew() -> None:
    async with dashboard([server("ada", 30, is_loaded=True)]) as driver:
        await driver.route()
        await driver.press("w")
        assert not driver.app.screen.query_one("#prompt").display, "it is ready"
        await driver.press(*typed(":context 64k"), "enter", "w")
        assert "reload for 65536" in driver.text("prompt-hint")
        await driver.press("enter")
        assert driver.desk.loads == [("ada", 65536)]


async def test_what_is_resident_cannot_be_warmed_nor_anything_with_readonly() -> None:
    async with dashboard() as driver:
        await driver.route()
        assert driver.current == "ada"
        await driver.press("w")
        assert not driver.app.screen.query_one("#prompt").display
    async with dashboard(look=Look(is_readonly=True)) as driver:
        await driver.route()
        await driver.press("j", "w")
        assert not driver.app.screen.query_one("#prompt").display


# -- from elsewhere ---------------------------------------------------------------------------------


async def test_t_on_a_machine_asks_for_the_model_and_marks_the_machine() -> None:
    async with dashboard() as driver:
        driver.app.screen.table.move_to("bora")  # type: ignore[attr-defined]
        await driver.press("t")
        assert driver.keys[0] == "qwen2.5:32b", "its own models first"
        await driver.press(*typed("llama"), "enter")
        assert driver.line("bora").startswith("▌")
        assert driver.current == "ada", "Enter sends to the best one, wherever one came from"
        await driver.press("escape")
        assert type(driver.app.screen).__name__ == "FleetScreen"


async def test_t_on_a_copy_and_on_a_model_routes_it_at_once() -> None:
    async with dashboard(size=(140, 50)) as driver:
        await driver.press("2")
        await driver.press("g", "t")
        assert driver.text("title").startswith(" Route  mixtral:8x22b")
        await driver.press("escape")
        assert type(driver.app.screen).__name__ == "ModelsScreen"
        await driver.press("1", "g")
        table = driver.app.screen.table  # type: ignore[attr-defined]
        at = next(index for index, row in enumerate(table.lines) if row.kind == "model")
        table.move_cursor(at)
        await driver.press("t")
        assert driver.text("title").startswith(f" Route  {LLAMA}")
        assert driver.current == "ada"


async def test_t_on_the_page_of_a_machine_and_back() -> None:
    async with dashboard() as driver:
        await driver.press("g", "enter", "tab", "t", *typed("phi"), "enter")
        assert driver.text("title").startswith(" Route  phi3:mini")
        await driver.press("escape")
        assert driver.app.screen.machine_name == "ada"  # type: ignore[attr-defined]


async def test_route_takes_a_model_by_name() -> None:
    async with dashboard() as driver:
        await driver.press(*typed(":route phi3:mini"), "enter")
        assert driver.text("title").startswith(" Route  phi3:mini")


# -- sizes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(40, 12), (20, 6), (1, 1), (200, 60)])
async def test_no_size_breaks_it(size: tuple[int, int]) -> None:
    async with dashboard(size=size) as driver:
        await driver.app.action_route(LLAMA)
        await driver.settle()
        width = driver.screen.ranking_list.size.width
        assert all(width_of(line.cells) == width for line in driver.screen.ranking_list.lines if width > 20)
        await driver.pilot.resize_terminal(100, 30)
        await driver.settle()
        assert driver.line("ada").split()[:4] == ["1", "ada", "0", "ready"]


async def test_ascii_signs_reach_every_part() -> None:
    async with dashboard(look=Look(glyphs="ascii")) as driver:
        await driver.route()
        parts = [driver.text(name) for name in ("title", "options", "detail", "footer")] + driver.lines
        assert all(part.isascii() for part in parts), parts


async def test_on_the_route_screen_t_and_route_ask_anew() -> None:
    async with dashboard() as driver:
        await driver.route()
        await driver.press("j")
        here = driver.current
        await driver.press("t", *typed("phi"), "enter")
        assert driver.text("title").startswith(" Route  phi3:mini")
        assert driver.line(str(here)).startswith("▌")
        await driver.press(*typed(f":route {LLAMA}"), "enter")
        assert driver.text("title").startswith(f" Route  {LLAMA}")
        assert not any(line.startswith("▌") for line in driver.lines)


async def test_what_cannot_be_read_is_told_and_the_ranking_stands_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"no database, but long enough to be taken for one" * 90)
    async with dashboard() as driver:
        driver.service.routing = RouteDesk(lambda: driver.service.snapshot, str(tmp_path), "machines")
        await driver.route()
        reading = driver.service.routing._reading
        assert reading is not None
        await reading
        await driver.settle()
        assert "leases and measured figures are not known: " in " ".join(driver.text("notes").split())
        assert driver.line("ada").split()[:4] == ["1", "ada", "0", "ready"]
        await driver.press("enter")
        await driver.app.workers.wait_for_complete()
        assert "not leased: " in driver.toasts


async def test_figures_of_our_own_loads_reach_the_ranking_once_they_are_read(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        record_load_rate(store, "machines", "ada", 2.0e9, NOW)
    async with dashboard([server("ada", 30)], size=(140, 40)) as driver:
        driver.service.routing = RouteDesk(lambda: driver.service.snapshot, str(tmp_path), "machines")
        await driver.route()
        reading = driver.service.routing._reading
        assert reading is not None
        await reading
        await driver.settle()
        assert "measured" in driver.line("ada")
        assert "2.0 GB/s measured" in driver.text("detail")


async def test_who_is_busy_is_asked_at_a_price_only_while_that_decides_here() -> None:
    class Poller:
        is_wanted = False

        def want_busy(self, is_wanted: bool) -> None:
            self.is_wanted = is_wanted

    async with dashboard() as driver:
        poller = Poller()
        driver.service.pollers = (poller,)  # type: ignore[assignment]
        await driver.route()
        assert not poller.is_wanted
        driver.screen.action_toggle_idle()
        assert poller.is_wanted
        await driver.press("1")
        assert not poller.is_wanted
        await driver.press("3")
        assert poller.is_wanted
        driver.screen.action_toggle_idle()
        assert not poller.is_wanted
