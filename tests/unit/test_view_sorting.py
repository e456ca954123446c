"""Order of the fleet's table: every column, both directions, and nothing that moves under the cursor."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, make_card, make_copy, make_fleet, make_offline, make_pending, make_snapshot
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.view.columns import COLUMNS
from fleettui.view.sorting import (
    IDLE_S,
    MACHINE_SORTING,
    SORTS,
    SortOrder,
    keep_order,
    may_reorder,
    next_sort,
    sort_machines,
    sort_named,
)
from sample_fleet import sample_fleet

FLEET = sample_fleet()


def names(order: SortOrder, *machines: MachineSnapshot) -> list[str]:
    return [item.name for item in sort_machines(machines or FLEET.machines, order, NOW)]


def test_every_column_can_be_sorted_by_and_every_sort_has_a_column() -> None:
    keys = [column.key for column in COLUMNS if not column.sorts_as]
    assert [sort.key for sort in SORTS[: len(keys)]] == keys
    assert {sort.column for sort in SORTS} == set(keys)
    assert len({sort.title for sort in SORTS}) == len(SORTS)


def test_a_drawn_column_sorts_by_the_figures_it_is_drawn_from() -> None:
    assert MACHINE_SORTING.choose(SortOrder(), "trend") == SortOrder("gpu", True)
    assert next_sort(SortOrder("gpu", True), ["gpu", "trend", "models"]).column == "models"


def test_names_sort_naturally() -> None:
    machines = [make_snapshot(name) for name in ("gpu10", "gpu2", "Gpu1")]
    assert names(SortOrder(), *machines) == ["Gpu1", "gpu2", "gpu10"]
    assert names(SortOrder("machine", True), *machines) == ["gpu10", "gpu2", "Gpu1"]


def test_health_sorts_by_severity() -> None:
    found = names(SortOrder("health"))
    health = {item.name: item.health for item in FLEET.machines}
    assert [health[name] for name in found] == sorted(
        health.values(), key=["unhealthy", "offline", "degraded", "unknown", "healthy"].index
    )


@pytest.mark.parametrize(
    ("key", "first"),
    [("vram", "spark"), ("vram_used", "dora"), ("vram_percent", "dora"), ("gpu", "ada"), ("temp", "ada"),
     ("power", "dora"), ("models", "dora"), ("ram", "spark"), ("age", "pve52")],
)  # fmt: skip
def test_the_largest_comes_first_where_a_column_starts_that_way(key: str, first: str) -> None:
    order = MACHINE_SORTING.choose(SortOrder(), key)
    assert order.is_descending
    assert names(order)[0] == first


@pytest.mark.parametrize("sort", SORTS, ids=lambda sort: sort.key)
def test_unknown_comes_last_in_both_directions_and_equals_keep_their_natural_order(sort: object) -> None:
    key: str = sort.key  # type: ignore[attr-defined]
    up, down = names(SortOrder(key)), names(SortOrder(key, True))
    assert sorted(up) == sorted(down) == sorted(item.name for item in FLEET.machines)
    if key in {"machine", "health", "note"}:
        return
    silent = ["zoe"] if key == "age" else ["gina", "kiosk", "pve52", "zoe"]
    same = next((k for k in range(len(up)) if up[k:] == down[k:]), len(up))
    assert set(silent) <= set(up[same:])
    assert [name for name in up if name in silent] == silent


def test_a_real_zero_is_no_unknown_and_old_values_are() -> None:
    idle = make_snapshot("idle")
    busy = make_snapshot("busy", cards=[make_card(utilisation_percent=90)])
    blind = make_snapshot("blind", cards=[make_card(utilisation_percent=Unknown("[N/A]"))])
    gone = replace(make_snapshot("gone", cards=[make_card(utilisation_percent=99)]), health="offline")
    machines = (idle, busy, blind, gone)
    assert names(SortOrder("gpu"), *machines) == ["idle", "busy", "blind", "gone"]
    assert names(SortOrder("gpu", True), *machines) == ["busy", "idle", "blind", "gone"]


def test_equals_stay_in_natural_order_in_both_directions() -> None:
    machines = [make_snapshot(f"m{number}", loaded=[make_copy()]) for number in (10, 2, 1)]
    for is_descending in (False, True):
        assert names(SortOrder("models", is_descending), *machines) == ["m1", "m2", "m10"]


def test_an_unknown_sort_is_the_order_of_names() -> None:
    assert names(SortOrder("xyzzy", True)) == names(SortOrder())
    assert sort_named("xyzzy") is None
    assert MACHINE_SORTING.choose(SortOrder("gpu"), "xyzzy") == SortOrder("gpu")


def test_choosing_again_turns_the_order() -> None:
    order = MACHINE_SORTING.choose(SortOrder(), "cpu")
    assert order == SortOrder("cpu", True)
    assert MACHINE_SORTING.choose(order, "cpu") == SortOrder("cpu", False)


def test_next_and_previous_column_among_those_shown() -> None:
    shown = ("machine", "health", "vram")
    assert next_sort(SortOrder(), shown) == SortOrder("health", False)
    assert next_sort(SortOrder("health"), shown) == SortOrder("vram", True)
    assert next_sort(SortOrder("vram_used", True), shown) == SortOrder("machine")
    assert next_sort(SortOrder(), shown, -1) == SortOrder("vram", True)
    assert next_sort(SortOrder("disk"), shown) == SortOrder("machine")
    assert next_sort(SortOrder("disk"), shown, -1) == SortOrder("vram", True)
    assert next_sort(SortOrder("gpu", True), ()) == SortOrder("gpu", True)
    assert next_sort(SortOrder("gpu", False), ("gpu",)) == SortOrder("gpu", False)


def test_rows_move_only_when_asked_without_a_cursor_or_in_quiet() -> None:
    assert may_reorder(is_asked=True, has_cursor=True, idle_s=0)
    assert may_reorder(is_asked=False, has_cursor=False, idle_s=0)
    assert may_reorder(is_asked=False, has_cursor=True, idle_s=IDLE_S)
    assert not may_reorder(is_asked=False, has_cursor=True, idle_s=IDLE_S - 0.1)


def test_what_was_there_stays() -> None:
    assert keep_order("abcd", "dcba", "b") == tuple("abcd")
    assert keep_order("abcd", "dba", "b") == tuple("abd"), "gone is gone"
    assert keep_order("abcd", "dcba", None) == tuple("dcba"), "nothing to keep still for"
    assert keep_order("abcd", "dca", "b") == tuple("dca"), "the row under the cursor is gone"
    assert keep_order((), "ba", "a") == tuple("ba")


def test_new_rows_come_below_the_cursor() -> None:
    assert keep_order("bd", "abcde", "b") == ("b", "c", "d", "e", "a")
    assert keep_order("bd", "bcd", "d") == ("b", "d", "c")


NAMES = st.lists(st.sampled_from("abcdefghij"), unique=True)


@given(NAMES, NAMES, st.sampled_from("abcdefghij"))
def test_nothing_moves_under_any_cursor(previous: list[str], wanted: list[str], cursor: str) -> None:
    found = keep_order(previous, wanted, cursor)
    assert sorted(found) == sorted(wanted)
    if cursor in previous and cursor in wanted:
        kept = [name for name in previous if name in wanted]
        assert [name for name in found if name in kept] == kept
        assert found[: kept.index(cursor) + 1] == tuple(kept[: kept.index(cursor) + 1])
    else:
        assert found == tuple(wanted)


def test_rows_use_the_same_order() -> None:
    from fleettui.view.rows import sorted_machines

    fleet = make_fleet(make_offline(), make_pending(), make_snapshot("ada"), make_snapshot("bora", gpus=1))
    found = [item.name for item in sorted_machines(fleet, NOW, "vram", is_descending=True)]
    assert found == ["ada", "bora", "kiosk", "pve52"]
