"""Trends in the fleet's table: from the real history, read only for what is on the screen and is new."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fleet_driver import dashboard
from tui_fleet import NOW, FakeService, card, fleet, machine, moved, rack

from fleettui.fleet.history import FleetHistory
from fleettui.model.snapshot import MachineSnapshot


class CountingHistory(FleetHistory):
    """Knows how often it was read, and of whom."""

    def __init__(self) -> None:
        super().__init__(10.0, 2.0)
        self.reads: list[str] = []

    def read(self, machine: str, *args: Any, **more: Any) -> Any:
        self.reads.append(machine)
        return super().read(machine, *args, **more)


def record(history: FleetHistory, service: FakeService, busy: list[tuple[int, ...]]) -> None:
    """Five minutes of every machine, with these utilisations of its cards one after another."""
    count = 150
    for number in range(count):
        back = 2.0 * (count - 1 - number)
        values = busy[number * len(busy) // count]
        machines = [as_of(item, back, values) for item in service.snapshot.machines]
        history.record(replace(service.snapshot, taken_at=NOW - back, machines=tuple(machines)))


def as_of(item: MachineSnapshot, back: float, busy: tuple[int, ...]) -> MachineSnapshot:
    assert item.gpu is not None
    cards = tuple(
        replace(each, utilisation_percent=value) for each, value in zip(item.gpu.cards, busy, strict=False)
    )
    sources = {
        name: replace(status, read_at=None if status.read_at is None else status.read_at - back)
        for name, status in item.sources.items()
    }
    return replace(item, gpu=replace(item.gpu, cards=cards), sources=sources)


async def test_a_card_shows_its_own_trend_and_a_machine_the_mean() -> None:
    cards = (card(0, "NVIDIA L40S", 46068, 8000, 99), card(1, "NVIDIA L40S", 46068, 8000, 0))
    service = FakeService(fleet((machine("ada", *cards),)))
    service.history = CountingHistory()
    record(service.history, service, [(0, 0), (99, 0)])
    async with dashboard(service, (160, 30)) as driver:
        start, end = driver.header.index("trend"), driver.header.index("models") - 2
        shown = [driver.row(key)[start:end] for key in ("ada", "ada/gpu/0", "ada/gpu/1")]
        half = len(shown[0]) // 2
        assert [text[0] for text in shown] == ["▁", "▁", "▁"]
        assert [text[-1] for text in shown] == ["▄", "▇", "▁"]
        assert set(shown[1][half + 1 :]) == {"▇"}
        assert set(shown[2]) == {"▁"}


async def test_without_a_history_there_is_no_column() -> None:
    async with dashboard(FakeService(fleet(rack(3))), (160, 30)) as driver:
        assert "trend" not in driver.header


async def test_only_new_samples_of_machines_in_sight_are_read() -> None:
    service = FakeService(fleet(rack(100)))
    history = service.history = CountingHistory()
    async with dashboard(service, (160, 20)) as driver:
        await driver.settle()
        history.reads.clear()
        await driver.settle()
        assert history.reads == [], "nothing is new"
        seen, unseen = service.snapshot.machines[2], service.snapshot.machines[90]
        await driver.publish(moved(seen, 1), moved(unseen, 1))
        assert history.reads == [seen.name]
        history.reads.clear()
        await driver.press("G")
        await driver.settle()
        assert unseen.name in history.reads
