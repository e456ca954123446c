"""The witness himself: he sees a model that was nowhere, and is not misled by when he looked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from arena import SMALL, wait_until
from observer import Absence, Generation, Observer, Sightings, _common

from fleettui.demo.launcher import DemoFleet


@pytest.fixture(scope="module")
def two() -> Iterator[DemoFleet]:
    with DemoFleet(machines=2, is_calm=True, speed=50, arguments=["--at", "0"]) as running:
        yield running


def looks(*shown: str) -> list[Absence]:
    """One machine looked at once a second; what is shown at each look."""
    seen = Sightings()
    for at, letter in enumerate(shown):
        seen.take(float(at), frozenset("m" if letter == "m" else ""), ["m"])
    return seen.spells["m"]


@pytest.mark.parametrize(
    ("first", "second", "gap_s"),
    [
        ("mmmm", "----", None),
        ("mm--", "--mm", None),
        ("mm--", "---m", 0.0),
        ("m---", "---m", 1.0),
        ("----", "----", 3.0),
        ("-mm-", "m--m", None),
    ],
)
def test_only_what_lies_between_looks_counts(first: str, second: str, gap_s: float | None) -> None:
    assert _common([looks(*first), looks(*second)]) == gap_s


def prepare(fleet: DemoFleet) -> None:
    for name in ("ada", "bora"):
        fleet.command(f"reset {name}")
    fleet.command(f"load ada {SMALL} -1")
    fleet.command("advance 30")


def has_left_ada(observer: Observer) -> bool:
    seen = observer.seen["ada"]
    return seen.looks >= 5 and SMALL not in seen.present


def test_a_model_that_moves_was_never_gone(two: DemoFleet) -> None:
    prepare(two)
    with Observer(two, ["ada", "bora"], [SMALL]) as observer:
        two.command(f"load bora {SMALL} -1")
        two.command("advance 30")
        wait_until(lambda: SMALL in observer.seen["bora"].present, "it is seen on bora")
        two.command(f"unload ada {SMALL}")
        wait_until(lambda: has_left_ada(observer), "it is not seen on ada any more")
    observer.assert_never_without()


def test_a_model_that_was_nowhere_is_noticed(two: DemoFleet) -> None:
    prepare(two)
    with Observer(two, ["ada", "bora"], [SMALL]) as observer:
        wait_until(lambda: observer.seen["ada"].looks >= 3, "it looked")
        two.command(f"unload ada {SMALL}")
        looked = observer.seen["ada"].looks
        wait_until(lambda: observer.seen["ada"].looks >= looked + 5, "it looked again")
    with pytest.raises(AssertionError, match="was nowhere for"):
        observer.assert_never_without()


def test_a_copy_that_still_loads_is_none(two: DemoFleet) -> None:
    """It is listed, and answers nobody yet."""
    prepare(two)
    two.command(f"fault bora stall {SMALL}")
    with Observer(two, ["ada", "bora"], [SMALL]) as observer:
        two.command(f"load bora {SMALL} -1")
        wait_until(lambda: SMALL in observer.seen["bora"].present, "it is seen on bora")
        two.command(f"unload ada {SMALL}")
        wait_until(lambda: has_left_ada(observer), "it is not seen on ada any more")
    with pytest.raises(AssertionError, match="was ready nowhere"):
        observer.assert_never_without()


def test_a_generation_that_breaks_off_is_noticed(two: DemoFleet) -> None:
    prepare(two)
    whole = Generation(two, "ada", SMALL, 60)
    whole.assert_ended_well()
    two.command("pace ada 1")
    broken = Generation(two, "ada", SMALL, 4000)
    two.command("engine ada dead")
    with pytest.raises(AssertionError):
        broken.assert_ended_well()
