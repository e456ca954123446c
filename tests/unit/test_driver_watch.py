"""Drivers of the fleet: compared when one changed, noted on the machines that differ."""

from __future__ import annotations

from dataclasses import replace

from builders import make_card
from fleettui.fleet.driver_watch import DriverWatch
from fleettui.model.gpu import GpuCondition, GpuReading


def reading(driver: str, cuda: str | None = None) -> GpuReading:
    condition = None if cuda is None else GpuCondition(cuda=cuda)
    return GpuReading((make_card(driver=driver),), condition=condition)


def texts(watch: DriverWatch) -> dict[str, list[str]]:
    return {name: [note.text for note in notes] for name, notes in watch.changed_notes().items()}


def test_notes_come_go_and_are_told_once() -> None:
    watch = DriverWatch()
    for name in ("ada", "bora", "cleo"):
        watch.look_at(name, reading("580.95.05"))
    assert texts(watch) == {}
    watch.look_at("dora", reading("535.161.08"))
    assert texts(watch) == {"dora": ["driver 535.161.08 here, 580.95.05 on 3 of 4 machines"]}
    watch.look_at("dora", reading("535.161.08"))
    assert texts(watch) == {}
    watch.look_at("dora", reading("580.95.05"))
    assert texts(watch) == {"dora": []}


def test_another_majority_moves_the_notes() -> None:
    watch = DriverWatch()
    for name, driver in (("ada", "1"), ("bora", "1"), ("cleo", "2")):
        watch.look_at(name, reading(driver))
    assert list(texts(watch)) == ["cleo"]
    watch.look_at("bora", reading("2"))
    assert texts(watch) == {"cleo": [], "ada": ["driver 1 here, 2 on 2 of 3 machines"]}


def test_a_machine_that_lost_its_cards_keeps_its_driver_and_one_that_is_gone_does_not() -> None:
    watch = DriverWatch()
    for name, driver in (("ada", "1"), ("bora", "1"), ("cleo", "2")):
        watch.look_at(name, reading(driver))
    texts(watch)
    watch.look_at("bora", GpuReading())
    watch.look_at("ada", None)
    assert texts(watch) == {}
    watch.forget("bora")
    assert texts(watch) == {"cleo": []}
    watch.forget("bora")
    assert texts(watch) == {}


def test_what_did_not_change_is_not_looked_at_again() -> None:
    watch = DriverWatch()
    first = reading("1", "13.0")
    watch.look_at("ada", first)
    assert watch.changed_notes() == {}
    busy = replace(first, cards=(replace(first.cards[0], utilisation_percent=97),))
    watch.look_at("ada", busy)
    assert not watch._is_news
