"""The Plan screen: it follows the fleet, tries what would be if, and works no more than it must."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from action_rig import typed
from textual.pilot import Pilot
from tui_fleet import NOW, Clock, FakeService, card, fleet, machine, model, moved, rack

from fleettui.fleet.route_desk import RouteDesk
from fleettui.model.catalog import Catalog, CatalogModel
from fleettui.model.gpu import ProcessesReading
from fleettui.model.machine import ConfigProblem
from fleettui.model.placement import PlanRole
from fleettui.model.snapshot import MachineSnapshot, MaintenanceFlag
from fleettui.store.database import Store
from fleettui.store.load_rates import record_load_rate
from fleettui.tui.app import FleetApp
from fleettui.tui.screens.plan.screen import PlanScreen
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.view.cells import text_of
from fleettui.view.placement_document import read_plan

pytestmark = pytest.mark.usefixtures("quick_waiting")

ADA = machine(
    "ada",
    card(0, "NVIDIA GeForce RTX 4090", 24564, 2048, 3),
    card(1, "NVIDIA RTX A2000", 12282, 0, 0),
    models=(model("qwen:14b", 9.0),),
)
BORA = machine("bora", card(0, "NVIDIA RTX A6000", 49140, 0, 0))
CATALOG = Catalog(
    (CatalogModel("qwen", vram_gib=9.0, names=(("ollama", ("qwen:14b",)),)),),
    file="catalog/models.yaml",
    roles=(
        PlanRole("main", min_vram_gb=20, prefer="largest", priority=1),
        PlanRole("small", min_vram_gb=10, count=2, priority=2, position=1),
        PlanRole("huge", min_vram_gb=90, priority=3, position=2),
    ),
    roles_file="catalog/roles.yaml",
)
"""main on bora/0, small on ada/1 and ada/0, huge nowhere."""


class Driver:
    """The screen under test."""

    def __init__(self, app: FleetApp, service: FakeService, pilot: Pilot[None]) -> None:
        self.app, self.service, self.pilot = app, service, pilot

    @property
    def screen(self) -> PlanScreen:
        assert isinstance(self.app.screen, PlanScreen)
        return self.app.screen

    @property
    def places(self) -> dict[str, str]:
        assert self.screen.plan is not None
        return {item.label: item.place for item in self.screen.plan.assignments}

    @property
    def text(self) -> str:
        return "\n".join(text_of(line.cells).rstrip() for line in self.screen.plan_list.lines)

    def line(self, key: str) -> str:
        return next(text_of(line.cells) for line in self.screen.plan_list.lines if line.key == key)

    def block(self, name: str) -> str:
        return self.screen.query_one(f"#{name}", CellBlock).text

    @property
    def toasts(self) -> str:
        return "\n".join(f"{toast.title} {toast.message}" for toast in self.app._notifications)

    async def settle(self) -> None:
        await self.pilot.pause()
        self.app.painter.paint_now()
        await self.app.workers.wait_for_complete()
        self.app.painter.paint_now()
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
        await self.settle()

    async def publish(self, *machines: MachineSnapshot) -> None:
        self.service.publish(*machines)
        await self.settle()


@asynccontextmanager
async def dashboard(
    machines: Sequence[MachineSnapshot] = (ADA, BORA), size: tuple[int, int] = (120, 30), **more: Any
) -> AsyncIterator[Driver]:
    service = FakeService(fleet(tuple(machines), **({"catalog": CATALOG} | more)))
    app = FleetApp(service, None, Clock())
    async with app.run_test(size=size, notifications=True) as pilot:
        driver = Driver(app, service, pilot)
        await driver.press("4")
        yield driver


AS_IT_IS = {"main/0": "bora/0", "small/0": "ada/1", "small/1": "ada/0"}


async def test_a_bar_for_each_gpu_with_what_is_planned_beside_what_is_used_now() -> None:
    async with dashboard() as driver:
        assert driver.places == AS_IT_IS
        assert driver.line("bora\n0").split()[:4] == ["bora", "0", "RTX", "A6000"]
        assert "main 20" in driver.line("bora\n0")
        assert "small 10" in driver.line("ada\n1")
        assert " 2.0  qwen" in driver.line("ada\n0"), "what is used now, then what fits"
        assert "3 of 4 copies placed · on GPUs: greedy 3, optimal 3 · 1 role unplaced" in driver.block(
            "title"
        )
        assert "nearest: bora/0 (NVIDIA RTX A6000): 48 GB of the 90 GB" in driver.text
        assert "would fit: with one more GPU of 90 GB or more" in driver.text


async def test_a_poll_changes_what_is_used_and_plans_nothing_anew() -> None:
    async with dashboard() as driver:
        made, built = driver.app.plans.work.made, driver.screen.rows.built
        for step in range(1, 4):
            await driver.publish(moved(ADA, step))
        assert driver.app.plans.work.made == made
        assert driver.screen.rows.built == built + 6, "three times its two GPUs"
        assert f"{(6000 + 3 * 977) / 1024:.1f}" in driver.line("ada\n0")


async def test_a_machine_in_maintenance_drops_out_at_once_and_comes_back() -> None:
    async with dashboard() as driver:
        await driver.publish(replace(BORA, maintenance=MaintenanceFlag("fan", "mia", NOW)))
        assert driver.places == {"main/0": "ada/0", "small/0": "ada/1"}
        assert "⚑ maintenance" in driver.line("bora\n0")
        await driver.publish(BORA)
        assert driver.places == AS_IT_IS


async def test_nothing_is_planned_while_the_screen_is_hidden() -> None:
    async with dashboard() as driver:
        made = driver.app.plans.work.made
        await driver.press("1")
        await driver.publish(replace(BORA, maintenance=MaintenanceFlag("fan", "mia", NOW)))
        assert driver.app.plans.work.made == made
        await driver.press("4")
        assert driver.app.plans.work.made == made + 1
        assert driver.places["main/0"] == "ada/0"


async def test_what_if_takes_machines_and_gpus_out_and_esc_puts_all_back() -> None:
    async with dashboard() as driver:
        await driver.press("g", "space")
        assert driver.places == {"main/0": "bora/0", "small/0": "ada/1"}
        assert "off (what if)" in driver.line("ada\n0")
        assert "what if: without ada/0" in driver.block("options")
        await driver.press("G", "k", "g", "w")
        assert driver.places == {"main/0": "bora/0"}
        assert "without ada/0, without ada" in driver.block("options")
        await driver.press("escape")
        assert driver.places == AS_IT_IS
        assert "what if" not in driver.block("options")


async def test_what_if_puts_a_machine_in_maintenance_and_a_disabled_gpu_back() -> None:
    flagged = replace(BORA, maintenance=MaintenanceFlag("fan", "mia", NOW))
    disabled = replace(ADA, machine=replace(ADA.machine, disabled_gpus=(0,)))
    async with dashboard((disabled, flagged)) as driver:
        assert driver.places == {"small/0": "ada/1"}
        assert "disabled" in driver.line("ada\n0")
        await driver.press("g", "space")
        assert driver.places == {"main/0": "ada/0", "small/0": "ada/1"}
        await driver.press("j", "j", "w")
        assert driver.places == AS_IT_IS
        await driver.publish(BORA)  # the maintenance ends: what was tried is so, and nothing turns around
        assert driver.places == AS_IT_IS


async def test_hardware_that_nobody_knows_cannot_be_switched() -> None:
    unread = replace(machine("dora"), gpu=None, machine=replace(machine("dora").machine, gpus=None))
    async with dashboard((unread, BORA)) as driver:
        assert "its hardware is not known" in driver.line("dora\ncpu")
        driver.screen.plan_list.move_to("dora\ncpu")
        await driver.press("w")
        assert "nothing is known of the hardware of dora" in driver.toasts
        assert not driver.screen.what_if


async def test_changes_from_what_is_loaded_now() -> None:
    on_card_0 = replace(ADA, processes=ProcessesReading(ADA.processes.processes[:1]))  # type: ignore[union-attr]
    async with dashboard((on_card_0, BORA)) as driver:
        await driver.press("D")
        assert "from what is loaded now: keep 1, add 2; 18 GiB to load, about 8s" in driver.text
        await driver.pilot.resize_terminal(60, 24)
        assert "── keep 1, add 2; 18 GiB to load, about 8s" in driver.text
        assert driver.text.count("+ add") == 2
        made = driver.screen.changes._diff
        await driver.publish(moved(on_card_0, 1))
        assert driver.screen.changes._diff is made, "nothing was loaded"
        await driver.press("D")
        assert "huge  1 copy without a place" in driver.text


async def test_changes_take_as_long_as_loads_of_the_machine_did(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        record_load_rate(store, "machines", "ada", 0.1e9, NOW)
    empty = replace(ADA, engines=())
    async with dashboard((empty,)) as driver:
        await driver.press("D")
        assert "9.0 GiB   8s" in driver.line("\nchange small/0 1"), "by 1.5 GB/s"
        desk = driver.service.routing = RouteDesk(lambda: driver.service.snapshot, str(tmp_path), "machines")
        assert desk.load_rates == {}
        assert desk._reading is not None
        await desk._reading
        await driver.publish(moved(empty, 1))
        assert "9.0 GiB   1m" in driver.line("\nchange small/0 1"), "by 0.1 GB/s"


async def test_the_loss_of_each_machine() -> None:
    async with dashboard() as driver:
        assert "N-1: 1 role at risk (ada, bora)" in driver.block("title")
        await driver.press("n")
        assert "ada   ▲ loses small –2" in driver.text
        assert "bora  ▲ loses small –1" in driver.text


async def test_the_optimal_plan_is_remembered() -> None:
    async with dashboard() as driver:
        await driver.press("o")
        assert driver.screen.plan is not None
        assert driver.screen.plan.method == "optimal"
        assert driver.app.memory.part("plan") == {"optimal": True}


@pytest.mark.parametrize("ending", ["json", "yaml", "txt"])
async def test_export_writes_what_is_shown(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"plan.{ending}"
    async with dashboard() as driver:
        await driver.press("g", "w", *typed(":export "), *typed(str(file)), "enter")
        await driver.settle()
        assert str(file) in driver.toasts
        assert "(without ada)" in driver.toasts
        text = file.read_text()
        if ending == "txt":
            assert text.startswith("plan: 1 of 4 copies placed")
            return
        document = json.loads(text) if ending == "json" else yaml.safe_load(text)
        assert read_plan(document) == driver.screen.plan


async def test_export_says_what_is_wrong_and_asks_before_it_writes_over_a_file(tmp_path: Path) -> None:
    there = tmp_path / "plan.json"
    there.write_text("mine")
    async with dashboard() as driver:
        await driver.press(*typed(":export plan.doc"), "enter")
        hint = driver.screen.query_one("#prompt-hint", CellBlock)
        assert "plan.doc has to end in .json, .yaml, .yml or .txt" in hint.text
        await driver.press("escape", *typed(f":export {there}"), "enter")
        assert "is there already: Enter writes over it" in hint.text
        assert there.read_text() == "mine"
        await driver.press("enter")
        await driver.settle()
        assert json.loads(there.read_text())["method"] == "greedy"


async def test_without_roles_it_says_what_to_write() -> None:
    async with dashboard(catalog=replace(CATALOG, roles=(), roles_file="")) as driver:
        assert "there is no roles.yaml beside catalog/models.yaml" in driver.text
        assert driver.block("options") == ""
        await driver.press("e", "w", "n", "D", "o", "space")
        assert driver.toasts == ""
        driver.service.snapshot = replace(driver.service.snapshot, catalog=CATALOG)
        await driver.publish(ADA)
        assert driver.places == AS_IT_IS, "as soon as the file is there"


async def test_mistakes_in_the_roles_are_named() -> None:
    problem = ConfigProblem("catalog/roles.yaml", 3, "roles.a.needs", "is no map", is_of_catalog=True)
    async with dashboard(catalog=replace(CATALOG, roles=()), problems=(problem,)) as driver:
        assert "catalog/roles.yaml:3" in driver.text
        assert "No role is planned until that is right." in driver.text


async def test_a_catalog_that_breaks_is_told_above_the_plan_by_its_last_good_version() -> None:
    lines = range(1, 6)
    broken = [ConfigProblem("catalog/roles.yaml", line, "roles", "odd", is_of_catalog=True) for line in lines]
    async with dashboard() as driver:
        driver.service.snapshot = replace(driver.service.snapshot, problems=tuple(broken))
        await driver.publish(ADA)
        shown = [line.strip() for line in driver.text.splitlines()[:5]]
        assert shown[0] == "catalog/roles.yaml:1: roles: odd"
        assert shown[3:] == [
            "and 2 more: fleettui config validate",
            "This plan is by the last version that was right.",
        ]
        assert driver.places == AS_IT_IS
        await driver.press("D")
        assert driver.text.strip().startswith("catalog/roles.yaml:1: roles: odd")


async def test_models_of_the_kind_of_the_role_are_shown_and_all_are_in_a_document(tmp_path: Path) -> None:
    models = (*CATALOG.models, CatalogModel("voice", "tts", vram_gib=2.0))
    roles = (PlanRole("tts", min_vram_gb=4, prefer="largest"),)
    async with dashboard(catalog=replace(CATALOG, models=models, roles=roles)) as driver:
        assert driver.line("bora\n0").split()[-1] == "voice"
        assert driver.screen.plan is not None
        assert driver.screen.plan.assignments[0].models_fitting == ("qwen", "voice")
        await driver.press(*typed(f":export {tmp_path / 'plan.txt'}"), "enter")
        await driver.settle()
        assert "4 GB  voice\n" in (tmp_path / "plan.txt").read_text()


async def test_many_machines_are_planned_beside_and_every_size_can_be_looked_at() -> None:
    roles = (PlanRole("main", min_vram_gb=20, count=150), PlanRole("cpu", gpu=False, position=1))
    async with dashboard(rack(100), catalog=replace(CATALOG, roles=roles)) as driver:
        await driver.settle()
        assert len(driver.places) == 101
        assert "50" in driver.text
        assert "at risk" in driver.block("title")
        for size in ((40, 12), (20, 5), (60, 16), (200, 60), (80, 24)):
            await driver.pilot.resize_terminal(*size)
            await driver.press("G", "n", "D", "D", "j", "g")
            assert len(driver.places) == 101


async def test_roles_stand_on_the_page_of_their_machine() -> None:
    async with dashboard() as driver:
        await driver.press("g", "enter", "tab")
        screen = "\n".join(strip.text for strip in driver.app.screen._compositor.render_strips())
        assert "Plan roles" in screen
        assert "GPU 1  small/0  10 GiB  fits qwen" in screen
