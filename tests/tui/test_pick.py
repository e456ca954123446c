"""The picker by keys and mouse, on a source that shows what the test wants."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from textual.pilot import Pilot
from tui_fleet import NOW, Clock, card, fleet, machine, model, rack, sample_machines

from fleettui.model.machine import EngineEndpoint
from fleettui.model.readings import EngineReading, LoadedModel
from fleettui.model.route import EXIT_NO_DATA, EXIT_UNKNOWN_MODEL, RouteQuery
from fleettui.model.snapshot import FleetSnapshot, LinkStatus, MachineSnapshot, MaintenanceFlag
from fleettui.tui.pick.app import PickApp
from fleettui.tui.pick.line import PickInput
from fleettui.tui.pick.question import PickQuestion
from fleettui.tui.port import Look
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.view.cells import text_of, width_of


class FakeSource:
    """A test publishes."""

    def __init__(self, snapshot: FleetSnapshot | None = None, *, is_settled: bool = True) -> None:
        self.snapshot = snapshot or fleet()
        self.is_settled = is_settled
        self.polls = 0
        self._subscribers: list[Callable[[FleetSnapshot], None]] = []

    def subscribe(self, subscriber: Callable[[FleetSnapshot], None]) -> Callable[[], None]:
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def poll_now(self) -> None:
        self.polls += 1

    def publish(self, *machines: MachineSnapshot) -> None:
        self.snapshot = replace(self.snapshot, seq=self.snapshot.seq + 1, machines=machines)
        for subscriber in self._subscribers:
            subscriber(self.snapshot)


class Driver:
    """The picker under test, with words for what one looks at."""

    def __init__(self, app: PickApp, source: FakeSource, pilot: Pilot[None]) -> None:
        self.app, self.source, self.pilot = app, source, pilot

    @property
    def keys(self) -> list[str]:
        """Of the lines that the cursor can be on."""
        return [line.key for line in self.app.view.lines if getattr(line, "is_stop", True)]

    @property
    def current(self) -> str | None:
        line = self.app.view.cursor_line
        return None if line is None else line.key

    @property
    def picked(self) -> str | None:
        answer = self.app.picked.answer
        return None if answer is None else answer.address

    def line(self, key: str) -> str:
        return next(text_of(line.cells) for line in self.app.view.lines if line.key == key)

    def text(self, widget_id: str) -> str:
        return self.app.query_one(f"#{widget_id}", CellBlock).text

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        self.app.query_one(PickInput).value = text
        await self.pilot.pause()

    async def publish(self, *machines: MachineSnapshot) -> None:
        self.source.publish(*machines)
        await self.settle()

    async def settle(self) -> None:
        await self.pilot.pause()
        if self.app.is_running:
            self.app.painter.paint_now()
            await self.pilot.pause()


@asynccontextmanager
async def picker(
    source: FakeSource | None = None,
    model_name: str | None = None,
    size: tuple[int, int] = (80, 24),
    look: Look | None = None,
    form: str = "address",
) -> AsyncIterator[Driver]:
    source = source or FakeSource()
    query = None if model_name is None else RouteQuery(model_name)
    app = PickApp(source, PickQuestion(query, form), look, clock=Clock())
    async with app.run_test(size=size) as pilot:
        driver = Driver(app, source, pilot)
        await driver.settle()
        yield driver


def server(name: str, free_gib: int, *, is_loaded: bool = False) -> MachineSnapshot:
    """One card of 48 GiB with so much free, `llama3.1:70b` on its disk."""
    copies = (model("llama3.1:70b", 40.0),) if is_loaded else ()
    made = machine(name, card(0, "NVIDIA L40S", 49_152, 49_152 - 400 - free_gib * 1024, 3), models=copies)
    installed = tuple(replace(item, size_bytes=4 << 30) for item in made.engines[0].installed)  # type: ignore[union-attr]
    return replace(made, engines=(replace(made.engines[0], installed=installed),))


def asked(name: str) -> MachineSnapshot:
    """Declared, and not heard yet."""
    return MachineSnapshot(machine(name).machine, link=LinkStatus("connecting"))


# -- what stands there ------------------------------------------------------------------------------


async def test_without_a_model_every_machine_that_takes_requests_can_be_picked() -> None:
    async with picker() as driver:
        assert driver.keys == ["ada", "app-host", "bora", "dora", "hopper", "spark", "cleo", "kiosk", "pve52"]
        assert "6 of 9 machines can be picked" in driver.text("title")
        assert "6.0 of 48.0" in driver.line("ada")
        assert "llama3.1:70b 39.6" in driver.line("ada")
        assert 'maintenance "fan swap" by mia' in driver.line("cleo")
        assert driver.text("detail").strip() == "ada.example.net:11434 · also installed: phi3:mini"
        await driver.press("enter")
    assert driver.picked == "ada.example.net:11434"


async def test_with_a_model_the_ranking_is_that_of_route() -> None:
    from fleettui.decide.routing import decide_route

    async with picker(model_name="llama3.1:70b") as driver:
        decision = decide_route(fleet(), RouteQuery("llama3.1:70b"), NOW)
        names = [item.machine for item in decision.candidates] + [item.machine for item in decision.rejected]
        assert driver.keys == names
        assert driver.current == decision.candidates[0].machine == "ada"
        assert driver.line("ada").split()[:5] == ["1", "ada", "0", "ready", "now"]
        assert "5.3 on GPU 1" in driver.line("ada")
        assert "resident, 100 % GPU" in driver.line("ada")
        assert "resident, 100 % GPU, ctx 8192" in driver.text("detail")
        assert "offline: no answer" in driver.line("pve52")
        await driver.press("down", "enter")
    assert driver.picked == decision.candidates[1].address


async def test_the_form_of_the_answer_is_told_before_it_is_printed() -> None:
    async with picker(form="env") as driver:
        assert "export OLLAMA_HOST=ada.example.net:11434" in driver.text("detail")


async def test_other_weights_under_the_same_name_are_told() -> None:
    def with_digest(name: str, digest: str) -> MachineSnapshot:
        made = server(name, 20)
        installed = tuple(replace(item, digest=digest) for item in made.installed)
        return replace(made, engines=(replace(made.engines[0], installed=installed),))

    source = FakeSource(fleet((with_digest("ada", "a" * 64), with_digest("bora", "b" * 64))))
    async with picker(source, "llama3.1:70b") as driver:
        assert "differs between machines: aaaaaaaaaaaa on ada" in " ".join(driver.text("notes").split())


async def test_before_anything_is_known_it_says_what_is_asked() -> None:
    async with picker(FakeSource(FleetSnapshot(0, NOW, 2.0)), "llama3.1:70b") as driver:
        assert driver.text("title") == " pick llama3.1:70b"
        assert driver.keys == []
        await driver.press("enter", "down", "x")
        assert driver.app.is_running


async def test_a_machine_with_two_engines_has_two_lines() -> None:
    base = machine("bora")
    ends = (EngineEndpoint("ollama", 11434), EngineEndpoint("ollama", 11500))
    both = (
        EngineReading("ollama", 11434, "ok", loaded=(LoadedModel("qwen3:8b", "ollama"),)),
        EngineReading("ollama", 11500, "ok", loaded=(LoadedModel("phi3:mini", "ollama"),)),
    )
    two = replace(base, machine=replace(base.machine, engines=ends), engines=both)
    async with picker(FakeSource(fleet((machine("ada"), two)))) as driver:
        assert driver.keys == ["ada", "bora:11434", "bora:11500"]
        assert "qwen3:8b" in driver.line("bora:11434")
        assert "qwen3:8b" not in driver.line("bora:11500")
        await driver.press("down", "down", "enter")
    assert driver.picked == "bora.example.net:11500"


# -- leaving ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["escape", "ctrl+c", "ctrl+g", "ctrl+q"])
async def test_left_without_a_choice(key: str) -> None:
    async with picker() as driver:
        await driver.press(key)
        assert not driver.app.is_running
    assert driver.picked is None
    assert driver.app.picked.failure is None


async def test_enter_on_a_machine_that_cannot_be_picked_says_why() -> None:
    async with picker() as driver:
        await driver.press("pagedown", "enter")
        assert driver.current == "pve52"
        assert driver.app.is_running
        assert driver.text("detail").strip().startswith("pve52 · cannot be picked: offline: no answer")
        await driver.press("pageup", "enter")
    assert driver.picked == "ada.example.net:11434"


async def test_two_clicks_pick_and_keys_stay_with_the_line() -> None:
    async with picker() as driver:
        await driver.pilot.click("#choices", offset=(10, 3))
        await driver.pilot.pause()
        assert driver.current == "bora"
        await driver.press("a", "d")
        assert driver.app.query_one(PickInput).value == "ad"
        assert driver.keys == ["ada"]
        await driver.pilot.click("#choices", offset=(10, 1), times=2)
        await driver.pilot.pause()
    assert driver.picked == "ada.example.net:11434"


async def test_an_unknown_model_ends_it_at_once_with_the_nearest_names() -> None:
    async with picker(FakeSource(fleet((machine("ada"),))), model_name="llama3.1:71b") as driver:
        assert not driver.app.is_running
    failure = driver.app.picked.failure
    assert failure is not None
    assert failure.exit_code == EXIT_UNKNOWN_MODEL


@pytest.mark.parametrize("name", [None, "llama3.1:70b"])
async def test_nobody_answered_ends_it_once_nobody_is_waited_for(name: str | None) -> None:
    pve52, kiosk = (item for item in sample_machines() if item.name in ("pve52", "kiosk"))
    source = FakeSource(fleet((asked("ada"), pve52, kiosk)), is_settled=False)
    async with picker(source, name) as driver:
        assert driver.app.is_running
        assert "asking 1" in driver.text("title")
        gone = replace(asked("ada"), link=LinkStatus("failed", error="refused"))
        await driver.publish(gone, pve52, kiosk)
        assert not driver.app.is_running
    failure = driver.app.picked.failure
    assert failure is not None
    assert failure.exit_code == EXIT_NO_DATA


async def test_machines_that_all_go_later_do_not_end_it() -> None:
    async with picker(FakeSource(fleet((machine("ada"),)))) as driver:
        await driver.publish(
            replace(machine("ada"), health="offline", link=LinkStatus("failed", error="reset"))
        )
        assert driver.app.is_running
        assert "cannot be picked: offline: reset" in driver.text("detail")


async def test_nobody_eligible_stays_open_for_the_day_one_is() -> None:
    flag = MaintenanceFlag("fan swap", "mia", NOW - 60)
    async with picker(FakeSource(fleet((replace(server("ada", 8), maintenance=flag),)))) as driver:
        assert "0 of 1 machine can be picked" in driver.text("title")
        await driver.press("enter")
        assert driver.app.is_running
        await driver.publish(server("ada", 8))
        await driver.press("enter")
    assert driver.picked == "ada.example.net:11434"


# -- filling in -------------------------------------------------------------------------------------


async def test_rows_fill_in_and_the_best_stays_under_the_cursor_until_all_have_answered() -> None:
    source = FakeSource(fleet((asked("ada"), asked("bora"), asked("cleo"))), is_settled=False)
    async with picker(source, "llama3.1:70b") as driver:
        assert driver.keys == ["ada", "bora", "cleo"]
        assert "asking…" in driver.line("ada")
        await driver.publish(asked("ada"), asked("bora"), server("cleo", 20))
        assert (driver.keys, driver.current) == (["cleo", "ada", "bora"], "cleo")
        await driver.publish(asked("ada"), server("bora", 30), server("cleo", 20))
        assert (driver.keys, driver.current) == (["bora", "cleo", "ada"], "bora")
        source.is_settled = True
        await driver.publish(server("ada", 10), server("bora", 30), server("cleo", 20))
        assert (driver.keys, driver.current) == (["bora", "cleo", "ada"], "bora")
        assert "asking" not in driver.text("title")


async def test_once_settled_lines_keep_their_places_and_the_rank_tells_the_best() -> None:
    source = FakeSource(fleet((server("ada", 30), server("bora", 20), server("cleo", 10))))
    async with picker(source, "llama3.1:70b") as driver:
        await driver.publish(server("ada", 5), server("bora", 20), server("cleo", 40))
        assert driver.keys == ["ada", "bora", "cleo"]
        assert [driver.line(key).split()[0] for key in driver.keys] == ["3", "2", "1"]
        await driver.press("enter")
    assert driver.picked == "ada.example.net:11434"


async def test_ctrl_r_asks_again_and_puts_the_best_on_top_with_the_cursor_on_its_machine() -> None:
    source = FakeSource(fleet((server("ada", 30), server("bora", 20), server("cleo", 10))))
    async with picker(source, "llama3.1:70b") as driver:
        await driver.press("down")
        await driver.publish(server("ada", 5), server("bora", 20), server("cleo", 40))
        await driver.press("ctrl+r")
        assert driver.keys == ["cleo", "bora", "ada"]
        assert (driver.current, source.polls) == ("bora", 1)


async def test_who_types_while_it_fills_still_gets_the_best() -> None:
    source = FakeSource(fleet((asked("ada"), asked("bora"), server("cleo", 10))), is_settled=False)
    async with picker(source, "llama3.1:70b") as driver:
        await driver.press("a")
        assert (driver.keys, driver.current) == (["cleo", "ada", "bora"], "cleo")
        await driver.publish(server("ada", 40), server("bora", 20), server("cleo", 10))
        assert (driver.keys, driver.current) == (["ada", "bora", "cleo"], "ada")


@pytest.mark.parametrize("way", ["key", "click"])
async def test_once_the_cursor_was_moved_lines_keep_their_places_while_it_fills(way: str) -> None:
    source = FakeSource(fleet((asked("ada"), server("bora", 20), server("cleo", 10))), is_settled=False)
    async with picker(source, "llama3.1:70b") as driver:
        if way == "key":
            await driver.press("down")
        else:
            await driver.pilot.click("#choices", offset=(10, 2))
            await driver.pilot.pause()
        await driver.publish(server("ada", 40), server("bora", 20), server("cleo", 10))
        assert driver.keys == ["bora", "cleo", "ada"]
        assert driver.current == "cleo"
        flag = MaintenanceFlag("fan swap", "mia", NOW - 60)
        await driver.publish(
            server("ada", 40), server("bora", 20), replace(server("cleo", 10), maintenance=flag)
        )
        assert driver.keys == ["bora", "cleo", "ada"]
        await driver.press("enter")
        assert driver.app.is_running
        assert "cannot be picked: maintenance" in driver.text("detail")


# -- typing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("ada", ["ada"]),
        ("A", ["ada", "app-host", "bora", "dora", "hopper", "spark", "cleo", "kiosk", "pve52"]),
        ("qwen", ["bora"]),
        ("host phi", ["app-host"]),
        ("hp", ["hopper"]),
        ("p52", ["pve52"]),
        ("free>100", ["hopper"]),
        ("health=degraded", ["bora"]),
        ("!tag:lab", []),
        ("phi3", ["app-host"]),
    ],
)
async def test_what_is_typed_narrows_the_list(typed: str, wanted: list[str]) -> None:
    async with picker() as driver:
        await driver.type(typed)
        assert driver.keys == wanted
        if typed != "A":
            assert f"{len(wanted)} shown" in driver.text("title")


async def test_names_of_installed_models_do_where_nothing_else_matches() -> None:
    async with picker(FakeSource(fleet((server("ada", 8), server("bora", 8))))) as driver:
        await driver.type("mini")
        assert driver.keys == ["ada", "bora"]


async def test_each_change_puts_the_cursor_on_the_first_that_can_be_picked() -> None:
    async with picker() as driver:
        await driver.press("down", "down", "down", "h", "o")
        assert driver.keys == ["app-host", "hopper"]
        assert driver.current == "app-host"
        await driver.press("ctrl+u", "down", "c", "l", "enter")
        assert driver.keys == ["cleo"]
        assert driver.app.is_running


async def test_every_letter_is_typed_and_leaves_nothing() -> None:
    async with picker() as driver:
        await driver.press(*"qjkgGx:/?+-12r")
        assert driver.app.query_one(PickInput).value == "qjkgGx:/?+-12r"
        assert driver.app.is_running


async def test_a_line_that_cannot_be_read_says_so_and_hides_nothing() -> None:
    async with picker() as driver:
        await driver.type("free>")
        assert "a value is missing after `free>`" in driver.text("detail")
        assert len(driver.keys) == 9
        await driver.type("free>x")
        assert "free takes a number" in driver.text("detail")
        await driver.type("free>1")
        assert "ada.example.net:11434" in driver.text("detail")


async def test_nothing_matches() -> None:
    async with picker() as driver:
        await driver.type("zzz")
        assert driver.keys == []
        assert "no machine matches" in driver.text("detail")
        await driver.press("enter")
        assert driver.app.is_running
        await driver.press("ctrl+u")
        assert driver.current == "ada"


# -- sizes, signs, many -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [None, "llama3.1:70b"])
@pytest.mark.parametrize("size", [(40, 12), (200, 60), (20, 6), (1, 1)])
async def test_no_size_breaks_it(size: tuple[int, int], name: str | None) -> None:
    async with picker(model_name=name, size=size) as driver:
        width = driver.app.view.size.width
        assert all(width_of(line.cells) == width for line in driver.app.view.lines if width > 20)
        await driver.pilot.resize_terminal(80, 24)
        await driver.settle()
        assert "ada" in driver.line("ada")
        await driver.press("enter")
    assert driver.picked == "ada.example.net:11434"


async def test_at_40_columns_name_tier_and_free_vram_stay_and_the_reason_is_below() -> None:
    async with picker(model_name="llama3.1:70b", size=(40, 12)) as driver:
        assert driver.line("ada").split() == ["1", "ada", "0", "ready", "5.3", "on", "GPU", "1"]
        await driver.press("down", "down", "down", "down")
        assert "CPU only" in driver.text("detail")


async def test_ascii_signs_reach_every_part() -> None:
    async with picker(look=Look(glyphs="ascii"), model_name="llama3.1:70b") as driver:
        parts = [driver.text("title"), driver.text("detail"), driver.text("footer")]
        parts += [text_of(line.cells) for line in driver.app.view.lines]
        assert all(part.isascii() for part in parts), parts


async def test_three_hundred_machines() -> None:
    async with picker(FakeSource(fleet(rack(300)))) as driver:
        await driver.press("pagedown", "pagedown")
        assert driver.current == f"gpu-{2 * (driver.app.view.page_height - 1):02}"
        await driver.type("gpu-299")
        await driver.press("enter")
    assert driver.picked == "gpu-299.example.net:11434"


async def test_the_footer_has_the_keys_and_hostile_names_stay_on_their_line() -> None:
    hostile = machine("a\x1b[2Jb\nc")
    async with picker(FakeSource(fleet((hostile,)))) as driver:
        assert driver.text("footer").split("  ") == [" Enter pick", "Esc leave", "Ctrl+R ask again"]
        assert text_of(driver.app.view.lines[0].cells).isprintable()


async def test_keys_of_the_settings_hold_here_too() -> None:
    async with picker(look=Look(keys={"pick_leave": "f10"})) as driver:
        await driver.press("escape")
        assert driver.app.is_running
        await driver.press("f10")
        assert not driver.app.is_running
