"""Maintenance in the dashboard, on real flags in a state file: one key, a reason and an end, undo."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from tui_fleet import NOW, Clock, FakeService, card, fleet, machine

from fleettui.config.machine_folder import MachineFiles
from fleettui.fleet.flags import FlagBook
from fleettui.fleet.maintenance import FlagOperations, set_maintenance
from fleettui.fleet.record import MachineRecord
from fleettui.model.snapshot import MaintenanceFlag
from fleettui.tui.app import FleetApp
from fleettui.tui.port import Look
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.fleet_table import FleetTable
from fleettui.tui.widgets.prompt import Prompt
from fleettui.view.cells import text_of

NAMES = ("ada", "bora", "cleo")


class Rig:
    """The dashboard on a fleet whose flags are real."""

    def __init__(self, app: FleetApp, service: FakeService, book: FlagBook, pilot: Pilot[None]) -> None:
        self.app, self.service, self.book, self.pilot = app, service, book, pilot

    @property
    def flags(self) -> dict[str, MaintenanceFlag]:
        """As another process reads them."""
        book = FlagBook(self.book.state_dir, self.book.machines_dir)
        book.refresh()
        return dict(book.maintenance)

    @property
    def told(self) -> str:
        """The newest toast."""
        return [item.message for item in self.app._notifications][-1]

    @property
    def rows(self) -> str:
        return "\n".join(text_of(row.cells) for row in self.app.screen.query_one(FleetTable).lines)

    def text(self, widget_id: str) -> str:
        return self.app.screen.query_one(f"#{widget_id}", CellBlock).text

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()
        self.app.painter.paint_now()
        await self.pilot.pause()


@asynccontextmanager
async def dashboard(folder: Path, look: Look | None = None) -> AsyncIterator[Rig]:
    machines = {name: machine(name, card(0, "Tesla T4", 15360, 2, 0)) for name in NAMES}
    service = FakeService(fleet(tuple(machines.values())))
    records = {name: MachineRecord(item.machine) for name, item in machines.items()}
    book = FlagBook(str(folder / "state"), "machines")

    def note_change(name: str) -> None:
        shown = service.snapshot.find(name)
        assert shown is not None
        service.publish(replace(shown, maintenance=records[name].maintenance, seq=shown.seq + 1))

    files = MachineFiles(machines=tuple(item.machine for item in machines.values()))
    service.flags = FlagOperations(book, lambda: files, records.get, note_change, lambda: NOW)
    app = FleetApp(service, look, clock=Clock())
    async with app.run_test(size=(160, 40)) as pilot:
        rig = Rig(app, service, book, pilot)
        await rig.press()
        yield rig
    book.close()


async def test_one_key_sets_it_and_the_same_key_ends_it(tmp_path: Path) -> None:
    async with dashboard(tmp_path) as rig:
        await rig.press("m")
        assert list(rig.flags) == ["ada"]
        assert "not routed from now on, nothing is unloaded" in rig.told
        assert rig.told.endswith("u undoes")
        assert "maintenance" in rig.rows.splitlines()[0], "the chip comes with the next snapshot"
        await rig.press("m")
        assert rig.flags == {}
        assert rig.told.startswith("ada: out of maintenance; it was: maintenance by ")


async def test_two_quick_presses_are_on_and_off(tmp_path: Path) -> None:
    """The second one goes by the flag, not by the row that shows the last snapshot."""
    async with dashboard(tmp_path) as rig:
        rig.app.action_maintenance()
        rig.app.action_maintenance()
        await rig.press()
        assert rig.flags == {}


async def test_u_undoes_what_was_done_last(tmp_path: Path) -> None:
    async with dashboard(tmp_path) as rig:
        assert "undo" not in {offer.id for offer in offers(rig)}
        await rig.press("m", "u")
        assert rig.flags == {}
        assert rig.told.startswith("Undone: ada: out of maintenance")
        assert "undo" not in {offer.id for offer in offers(rig)}
        await rig.press("M", *"fan swap", "enter")
        before = rig.flags["ada"]
        await rig.press("m")
        assert rig.flags == {}
        await rig.press("u")
        assert rig.flags["ada"] == before, "with its reason, and since when it was"


async def test_undo_leaves_what_somebody_else_changed(tmp_path: Path) -> None:
    async with dashboard(tmp_path) as rig:
        await rig.press("m")
        other = FlagBook(rig.book.state_dir, rig.book.machines_dir)
        set_maintenance(other, NAMES, ["ada"], is_on=True, now=NOW, reason="mine now", by="mia")
        await rig.press("u")
        assert rig.flags["ada"].reason == "mine now"
        assert "nothing is undone" in rig.told


async def test_a_reason_and_an_end_are_asked_for(tmp_path: Path) -> None:
    async with dashboard(tmp_path) as rig:
        await rig.press("j", "j", "M")
        assert "maintenance of bora" in rig.text("prompt-label")
        await rig.press(*"fan swap until 2h")
        assert '"fan swap", until ' in rig.text("prompt-hint")
        assert "2h from now" in rig.text("prompt-hint")
        await rig.press("enter")
        assert (rig.flags["bora"].reason, rig.flags["bora"].until) == ("fan swap", NOW + 7200)
        assert '"fan swap"' in rig.rows


async def test_what_cannot_be_read_is_told_while_one_types(tmp_path: Path) -> None:
    async with dashboard(tmp_path) as rig:
        await rig.press("M", *"fan swap until noon", "enter")
        assert "'noon' is no time" in rig.text("prompt-hint")
        assert rig.app.screen.query_one(Prompt).question is not None
        assert rig.flags == {}
        await rig.press("escape")
        assert rig.flags == {}


async def test_no_reason_is_fine(tmp_path: Path) -> None:
    async with dashboard(tmp_path) as rig:
        await rig.press("M", "enter")
        assert rig.flags["ada"].reason is None


async def test_tagged_machines_change_together(tmp_path: Path) -> None:
    async with dashboard(tmp_path) as rig:
        await rig.press("m")
        for name in ("ada", "bora", "cleo"):
            assert rig.app.screen.query_one(FleetTable).move_to(name)
            await rig.press("space")
        await rig.press("m")
        assert set(rig.flags) == set(NAMES), "a mixed group goes into maintenance as a whole"
        assert rig.told.startswith("2 machines now in maintenance: not routed from now on")
        assert "1 was in maintenance already" in rig.told
        await rig.press("m")
        assert rig.flags == {}
        assert rig.told.startswith("3 machines out of maintenance")
        await rig.press("u")
        assert set(rig.flags) == set(NAMES)
        await rig.press("M", *"reboot", "enter")
        assert {flag.reason for flag in rig.flags.values()} == {"reboot"}


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("maintenance", (None, None)),
        ("maintenance on", (None, None)),
        ("maintenance on fan swap until 2h", ("fan swap", NOW + 7200)),
        ("maintenance fan swap", ("fan swap", None)),
    ],
)
async def test_by_its_name(tmp_path: Path, typed: str, expected: tuple[str | None, float | None]) -> None:
    async with dashboard(tmp_path) as rig:
        await rig.press("colon", *typed, "enter")
        assert (rig.flags["ada"].reason, rig.flags["ada"].until) == expected
        await rig.press("colon", *"maintenance off", "enter")
        assert rig.flags == {}
        await rig.press("colon", *"maintenance off", "enter")
        assert "not in maintenance; unchanged" in rig.told
        await rig.press("colon", *"undo", "enter")
        assert list(rig.flags) == ["ada"], "what changed nothing is nothing to undo"


@pytest.mark.parametrize(
    ("typed", "flagged", "reason"),
    [
        ("maintenance bora", ["bora"], None),
        ("maintenance bora cleo fan swap", ["bora", "cleo"], "fan swap"),
        ("maintenance on cleo fan swap", ["cleo"], "fan swap"),
        ("maintenance cleo on fan swap", ["cleo"], "fan swap"),
        ("maintenance fan swap of bora", ["ada"], "fan swap of bora"),
    ],
)
async def test_of_the_machines_that_are_named(
    tmp_path: Path, typed: str, flagged: list[str], reason: str | None
) -> None:
    """The cursor is on ada."""
    async with dashboard(tmp_path) as rig:
        await rig.press("colon", *typed, "enter")
        assert {name: flag.reason for name, flag in rig.flags.items()} == dict.fromkeys(flagged, reason)
        await rig.press("colon", *f"maintenance off {' '.join(flagged)}", "enter")
        assert rig.flags == {}


@pytest.mark.parametrize("typed", ["maintenance on until noon", "maintenance off fan swap"])
async def test_what_makes_no_sense_changes_nothing(tmp_path: Path, typed: str) -> None:
    async with dashboard(tmp_path) as rig:
        await rig.press("colon", *typed, "enter")
        assert rig.flags == {}
        assert rig.told


async def test_by_palette_and_by_mouse(tmp_path: Path) -> None:
    async with dashboard(tmp_path) as rig:
        footer = rig.text("footer")
        await rig.pilot.click("#footer", offset=(footer.index("m maintenance"), 0))
        await rig.press()
        assert list(rig.flags) == ["ada"]
        await rig.press("ctrl+p", *"undo")
        await rig.press("enter")
        assert rig.flags == {}
        await rig.press("ctrl+p", *"maintenance with")
        await rig.press("enter")
        await rig.press(*"dust", "enter")
        assert rig.flags["ada"].reason == "dust"


async def test_on_the_machine_screen_it_is_about_that_machine(tmp_path: Path) -> None:
    async with dashboard(tmp_path) as rig:
        rig.app.open_machine("cleo")
        await rig.press()
        await rig.press("m")
        assert list(rig.flags) == ["cleo"]


async def test_a_state_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("not a folder")
    async with dashboard(tmp_path) as rig:
        await rig.press("m")
        assert "no flag was changed" in rig.told
        rig.service.flags = None
        await rig.press("m")
        assert "state folder" in rig.told


async def test_readonly_knows_nothing_of_it(tmp_path: Path) -> None:
    async with dashboard(tmp_path, Look(is_readonly=True)) as rig:
        await rig.press("m", "M", "u")
        assert rig.flags == {}
        assert rig.app.screen.query_one(Prompt).question is None
        assert "maintenance" not in rig.text("footer")


def offers(rig: Rig):  # type: ignore[no-untyped-def]
    from fleettui.tui.offers import actions_now

    return [offer.action for offer in actions_now(rig.app.screen)]
