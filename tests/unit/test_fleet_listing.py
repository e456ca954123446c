"""Which machines the Fleet screen shows and where: filtered, sorted, calm, worked out only when needed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, make_card, make_fleet, make_snapshot
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.tui.screens.fleet.listing import MachineListing
from fleettui.tui.screens.fleet.tags import Tags
from fleettui.tui.sort_menu import sort_menu
from fleettui.tui.typed import MOST_KEPT, note_line
from fleettui.view.filter_language import Filter, parse_filter
from fleettui.view.glyphs import UNICODE
from fleettui.view.sorting import IDLE_S, SORTS, SortOrder, order_from

BUSY_S, IDLE = 1.0, IDLE_S + 1


def gpu(name: str, busy: int) -> MachineSnapshot:
    """A machine of one card."""
    return make_snapshot(name, cards=[make_card(0, utilisation_percent=busy)])


def filter_of(text: str) -> Filter:
    wanted = parse_filter(text)
    assert isinstance(wanted, Filter)
    return wanted


def fleet_of(**busy: int) -> FleetSnapshot:
    return make_fleet(*(gpu(name, value) for name, value in busy.items()))


def names(listing: MachineListing) -> list[str]:
    return [item.name for item in listing.shown]


def by_load() -> MachineListing:
    listing = MachineListing()
    listing.set_order(SortOrder("gpu", True))
    return listing


def test_nothing_is_worked_out_twice() -> None:
    listing, fleet = MachineListing(), fleet_of(a=10, b=20)
    listing.set_filter(filter_of("util>5"))
    for _ in range(10):
        listing.arrange(fleet, NOW + 0.05, "a", BUSY_S)
    assert listing.worked == 1
    listing.arrange(fleet, NOW + 0.05, "b", IDLE)
    assert listing.worked == 1, "the cursor may move, the operator may rest"
    listing.arrange(fleet, NOW + 1.05, "b", IDLE)
    assert listing.worked == 2, "a filter may ask for an age"
    listing.arrange(make_fleet(*fleet.machines), NOW + 1.05, "b", IDLE)
    assert listing.worked == 3


def test_without_a_filter_the_clock_asks_nothing() -> None:
    listing, fleet = by_load(), fleet_of(a=10, b=20)
    for second in range(10):
        listing.arrange(fleet, NOW + second, "a", IDLE)
    assert listing.worked == 1


def test_the_filter_counts_what_matches() -> None:
    listing = MachineListing()
    listing.set_filter(filter_of("util>15"))
    listing.arrange(fleet_of(a=10, b=20, c=30), NOW, None, BUSY_S)
    assert (names(listing), listing.matching) == (["b", "c"], 2)


def test_rows_stay_until_one_rests_or_asks() -> None:
    listing = by_load()
    listing.arrange(fleet_of(a=30, b=20, c=10), NOW, "b", BUSY_S)
    turned = fleet_of(a=10, b=20, c=30)
    listing.arrange(turned, NOW, "b", BUSY_S)
    assert names(listing) == ["a", "b", "c"]
    listing.arrange(turned, NOW, "b", IDLE)
    assert names(listing) == ["c", "b", "a"], "the same snapshot, but nobody is at work any more"
    listing.arrange(fleet_of(a=50, b=20, c=30), NOW, "b", BUSY_S)
    listing.ask()
    listing.arrange(fleet_of(a=50, b=20, c=30), NOW, "b", BUSY_S)
    assert names(listing) == ["a", "c", "b"]


def test_a_question_is_answered_once() -> None:
    listing = by_load()
    fleet = fleet_of(a=30, b=20)
    listing.arrange(fleet, NOW, "a", BUSY_S)
    listing.ask()
    listing.arrange(fleet, NOW, "a", BUSY_S)
    listing.arrange(fleet_of(a=1, b=20), NOW, "a", BUSY_S)
    assert names(listing) == ["a", "b"], "the question was before that snapshot"


def test_newer_values_are_shown_in_the_old_places() -> None:
    listing = by_load()
    listing.arrange(fleet_of(a=30, b=20), NOW, "a", BUSY_S)
    newer = fleet_of(a=1, b=20)
    listing.arrange(newer, NOW, "a", BUSY_S)
    assert list(listing.shown) == list(newer.machines)


def test_what_stops_matching_leaves_unless_the_cursor_is_on_it() -> None:
    listing = MachineListing()
    listing.set_filter(filter_of("util<50"))
    listing.arrange(fleet_of(a=1, b=2, c=3), NOW, "b", BUSY_S)
    busy = fleet_of(a=90, b=90, c=3)
    listing.arrange(busy, NOW, "b", BUSY_S)
    assert (names(listing), listing.matching) == (["b", "c"], 1)
    listing.arrange(busy, NOW, "c", BUSY_S)
    assert names(listing) == ["c"], "the cursor went on"


def test_it_leaves_when_one_rests_and_when_it_is_gone() -> None:
    listing = MachineListing()
    listing.set_filter(filter_of("util<50"))
    listing.arrange(fleet_of(a=1, b=2), NOW, "b", BUSY_S)
    busy = fleet_of(a=1, b=90)
    listing.arrange(busy, NOW, "b", BUSY_S)
    assert names(listing) == ["a", "b"]
    listing.arrange(busy, NOW, "b", IDLE)
    assert names(listing) == ["a"]
    listing.arrange(fleet_of(a=1, b=2), NOW, "b", IDLE)
    listing.arrange(fleet_of(a=1), NOW, "b", BUSY_S)
    assert names(listing) == ["a"]


def test_a_filter_that_is_asked_for_hides_the_machine_under_the_cursor_too() -> None:
    listing, fleet = MachineListing(), fleet_of(a=1, b=2)
    listing.arrange(fleet, NOW, "b", BUSY_S)
    listing.set_filter(filter_of("name=a"))
    listing.arrange(fleet, NOW, "b", BUSY_S)
    assert names(listing) == ["a"]


@given(
    st.lists(st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 100), max_size=8), max_size=6),
    st.sampled_from(["", "util>30", "util<50"]),
    st.sampled_from(SORTS).map(lambda sort: sort.key),
)
def test_the_row_under_the_cursor_is_never_pushed_down(
    steps: list[dict[str, int]], text: str, key: str
) -> None:
    listing = MachineListing()
    listing.set_filter(filter_of(text))
    listing.set_order(SortOrder(key, True))
    listing.arrange(fleet_of(a=50, d=50, h=50), NOW, "d", BUSY_S)
    place = names(listing).index("d") if "d" in names(listing) else -1
    for step in steps:
        fleet = fleet_of(**{"d": 50, **step})
        listing.arrange(fleet, NOW, "d", BUSY_S)
        shown = names(listing)
        assert len(set(shown)) == len(shown)
        assert {item.name for item in fleet.machines if listing.filter.matches(item, NOW)} <= set(shown)
        if place >= 0:
            assert shown.index("d") <= place
            place = shown.index("d")
        else:
            break


# Tags


def test_tags_come_and_go() -> None:
    tags = Tags()
    tags.toggle("b")
    tags.toggle("a")
    assert tags.in_order(["a", "b", "c"]) == ("a", "b")
    tags.toggle("b")
    tags.toggle_all(["b", "c"])
    assert tags.names == {"a", "b", "c"}
    tags.toggle_all(["b", "c"])
    assert tags.names == frozenset(), "every tag, hidden ones too"
    tags.toggle_all([])
    assert tags.names == frozenset()


def test_tags_leave_with_their_machine() -> None:
    tags = Tags()
    tags.toggle_all(["a", "b"])
    tags.keep_only(["b", "c"])
    assert tags.names == {"b"}


# Words behind `:sort`


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("vram", SortOrder("vram", True)),
        ("VRAM used", SortOrder("vram_used", True)),
        ("vram_percent asc", SortOrder("vram_percent", False)),
        ("machine desc", SortOrder("machine", True)),
        ("power up", SortOrder("power", False)),
        ("  gpu   descending ", SortOrder("gpu", True)),
        ("age", SortOrder("age", False)),
    ],
)
def test_an_order_by_its_name(text: str, order: SortOrder) -> None:
    assert order_from(text, SortOrder("age", False), SORTS) == order


@pytest.mark.parametrize(
    ("text", "said"),
    [("powr", "did you mean power?"), ("zzz", "there are machine, health"), ("", "there are")],
)
def test_what_is_no_order_is_said(text: str, said: str) -> None:
    problem = order_from(text, SortOrder(), SORTS)
    assert isinstance(problem, str)
    assert said in problem


def test_the_menu_marks_the_present_sort_alone() -> None:
    lines = sort_menu(SORTS, SortOrder("gpu", True), UNICODE)
    assert [line.key for line in lines if "▾" in line.cells[1].text] == ["gpu"]
    assert len({len("".join(cell.text for cell in line.cells)) for line in lines}) == 1


def test_a_line_is_in_the_history_once_and_the_oldest_go() -> None:
    history: list[str] = []
    for number in range(MOST_KEPT + 5):
        note_line(history, f"free>{number}")
    note_line(history, "free>20")
    assert len(history) == MOST_KEPT
    assert history[-1] == "free>20"
    assert history.count("free>20") == 1


def test_a_snapshot_of_the_same_machines_is_another_snapshot() -> None:
    listing, fleet = by_load(), fleet_of(a=1)
    listing.arrange(fleet, NOW, None, IDLE)
    listing.arrange(replace(fleet, seq=fleet.seq + 1), NOW, None, IDLE)
    assert listing.worked == 2
