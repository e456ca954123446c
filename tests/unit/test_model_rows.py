"""The Models screen as cells: whole outputs, the matrix and the list, expansion, words, order, filter."""

# ruff: noqa: E501 - whole lines of wide tables

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import GIB, NOW, make_copy, make_fleet
from fleettui.model.snapshot import DrainFlag, FleetSnapshot, MaintenanceFlag
from fleettui.model.unknown import Unknown
from fleettui.view.cells import Cell, text_of, width_of
from fleettui.view.filter_language import FilterError
from fleettui.view.glyphs import ASCII, UNICODE
from fleettui.view.matrix_columns import common_prefix, short_names
from fleettui.view.model_filter import ModelFilter, complete_model_filter, filter_cells, parse_model_filter
from fleettui.view.model_layout import ModelLayout, make_model_layout, model_header, prefix_line
from fleettui.view.model_matrix import ModelIndex, ModelLine
from fleettui.view.model_order import (
    DEFAULT_ORDER,
    MODEL_SORTING,
    MODEL_SORTS,
    next_model_sort,
    sort_lines,
)
from fleettui.view.model_rows import (
    ModelRow,
    copy_key,
    count_model_rows,
    is_line_ticking,
    model_rows,
    outline_rows,
)
from fleettui.view.model_summary import legend_cells, models_state, models_summary, no_model
from fleettui.view.model_words import vram_cell
from fleettui.view.sorting import SortOrder, order_from
from fleettui.view.text import cell_width
from model_fleets import crowd, host, mixed_fleet

MATRIX_130 = """
   model               copies     VRAM ▾  on GPU  expires   installed  declared  ada app-host bora dora hopper kiosk pve52
 ▾ llama3.1:70b             2   79.2 GiB   100 %  4m                2       3/4   ●     ✗                 ●            ◌
     2 copies, 39.6 GiB more than one needs
     ● ada                      39.6 GiB   100 %  4m        loaded · ctx 32768 · declared
     ● hopper                   39.6 GiB   100 %  29m       loaded · ctx 32768 · declared · as llama3.1
     ✗ app-host                                             declared, not installed
     ◌ pve52                    39.6 GiB   100 %  4m        loaded · ctx 32768 · declared · as last heard 4m ago
 ▾ mixtral:8x22b            1   74.0 GiB   100 %  56m               1         1                           ●
     ● hopper                   74.0 GiB   100 %  56m       loaded · ctx 32768 · declared
 ▾ qwen2.5:32b              1   16.0 GiB    83 %  pinned            3         1   ·            ◐    ·
     ◐ bora                     16.0 GiB    83 %  pinned    loaded, 3.3 of 19.3 GiB in RAM · ctx 32768 · declared
     · ada                                                  installed, 19.3 GiB on disk
     · dora                                                 installed, 19.0 GiB on disk · same tag, other digest ffffffffffff
 ▾ nomic-embed-text         1    0.6 GiB   100 %  pinned            1             ●
     ● ada                       0.6 GiB   100 %  pinned    loaded · ctx 32768
 ▾ phi3:mini                1    0.0 GiB     CPU  1m                1         2         ○                        ?
     ○ app-host                  0.0 GiB     CPU  1m        loaded, 2.2 of 2.2 GiB in RAM · ctx 32768 · declared
     ? kiosk                                                declared; not known if installed
 ▾ gpt-oss:120b-cloud                                                                   c
     c app-host                                             runs elsewhere (cloud)
 ▾ mistral:7b                                                               0/1                ✗
     ✗ bora                                                 declared, not installed
"""
CLOSED_200 = """
   model               copies     VRAM ▾  on GPU  expires              installed  declared  ada app-host bora dora hopper kiosk pve52  note
 ▸ llama3.1:70b             2   79.2 GiB   100 %  4m ada                       2       3/4   ●     ✗                 ●            ◌    not installed on app-host; 39.6 GiB more than one needs …
 ▸ mixtral:8x22b            1   74.0 GiB   100 %  56m hopper                   1         1                           ●
 ▸ qwen2.5:32b              1   16.0 GiB    83 %  pinned                       3         1   ·            ◐    ·                       another digest on dora
 ▸ nomic-embed-text         1    0.6 GiB   100 %  pinned                       1             ●
 ▸ phi3:mini                1    0.0 GiB     CPU  1m app-host                  1         2         ○                        ?
 ▸ gpt-oss:120b-cloud                                                                              c                                   runs elsewhere (cloud)
 ▸ mistral:7b                                                                          0/1                ✗                            not installed on bora
"""
LIST_80 = """
   model              copies    VRAM ▾ on GPU expires  machines
 ▸ llama3.1:70b            2  79.2 GiB  100 % 4m       ● ada  ● hopper  +2
 ▸ mixtral:8x22b           1  74.0 GiB  100 % 56m      ● hopper
 ▸ qwen2.5:32b             1  16.0 GiB   83 % pinned   ◐ bora  · ada  · dora
 ▸ nomic-embed-text        1   0.6 GiB  100 % pinned   ● ada
 ▸ phi3:mini               1   0.0 GiB    CPU 1m       ○ app-host  ? kiosk
 ▸ gpt-oss:120b-cloud                                  c app-host
 ▸ mistral:7b                                          ✗ bora
"""
NARROW_40 = """
   model                VRAM ▾ expires
 ▾ llama3.1:70b       79.2 GiB 4m
     39.6 GiB more than one needs
     ● ada            39.6 GiB 4m
     ● hopper         39.6 GiB 29m
     ✗ app-host      not installed
     ◌ pve52          39.6 GiB 4m
 ▾ mixtral:8x22b      74.0 GiB 56m
     ● hopper         74.0 GiB 56m
"""


def layout_for(fleet: FleetSnapshot, width: int, lines: tuple[ModelLine, ...] = ()) -> ModelLayout:
    return make_model_layout(width, [item.name for item in fleet.machines], [line.name for line in lines])


def drawn(fleet: FleetSnapshot, width: int, *, is_expanded: bool = False) -> str:
    """Header and rows in the usual order, blanks at the ends of lines left out."""
    lines = ModelIndex().lines_of(fleet, NOW)
    layout = layout_for(fleet, width, lines)
    rows = [model_header(layout, DEFAULT_ORDER.column, is_descending=True)]
    for line in sort_lines(lines, DEFAULT_ORDER):
        rows += [row.cells for row in model_rows(line, NOW, layout, is_expanded=is_expanded)]
    assert {width_of(cells) for cells in rows} == {width}
    return "\n" + "\n".join(text_of(cells).rstrip() for cells in rows) + "\n"


def one_line(fleet: FleetSnapshot, name: str) -> ModelLine:
    return next(line for line in ModelIndex().lines_of(fleet, NOW) if line.name == name)


def rows_of(fleet: FleetSnapshot, name: str, width: int = 130) -> tuple[ModelRow, ...]:
    return model_rows(one_line(fleet, name), NOW, layout_for(fleet, width), is_expanded=True)


def test_the_matrix_with_everything_open() -> None:
    assert drawn(mixed_fleet(), 130, is_expanded=True) == MATRIX_130


def test_a_wide_screen_has_notes_and_says_where_the_first_copy_expires() -> None:
    assert drawn(mixed_fleet(), 200) == CLOSED_200


def test_eighty_columns_name_machines_in_place_of_the_matrix() -> None:
    assert drawn(mixed_fleet(), 80) == LIST_80


def test_forty_columns_keep_model_vram_and_expiry() -> None:
    assert drawn(mixed_fleet(), 40, is_expanded=True).startswith(NARROW_40)


def test_nothing_loaded_leaves_the_figures_empty() -> None:
    fleet = make_fleet(host("ada", models=["llama3.1:70b"]))
    line = one_line(fleet, "llama3.1:70b")
    row = text_of(model_rows(line, NOW, layout_for(fleet, 160, (line,)))[0].cells)
    assert row.split() == ["▸", "llama3.1:70b", "0/1", "✗", "not", "installed", "on", "ada"]


def test_what_is_old_is_dim_and_in_no_figure() -> None:
    fleet = mixed_fleet()
    layout, line = layout_for(fleet, 130), one_line(fleet, "llama3.1:70b")
    (closed,) = model_rows(line, NOW, layout)
    signs = [cell for cell in closed.cells if cell.text in {"●", "◌"}]
    assert signs == [("●", "good"), ("●", "good"), ("◌", "dim")]
    old = next(row for row in rows_of(fleet, "llama3.1:70b") if row.machine == "pve52")
    assert {cell.tone for cell in old.cells if cell.text.strip()} == {"dim"}


def test_a_flag_of_the_machine_stands_on_its_line() -> None:
    flagged = host("ada", make_copy(), maintenance=MaintenanceFlag("fan swap", "mia", NOW - 60))
    draining = host("bora", make_copy(), drain=DrainFlag("running", "kernel", "mia", NOW - 60))
    rows = rows_of(make_fleet(flagged, draining), "llama3.1:70b")
    texts = {row.machine: text_of(row.cells) for row in rows}
    assert "loaded ⚑ maintenance · ctx 32768" in texts["ada"]
    assert "loaded ⚑ drain running · ctx 32768" in texts["bora"]


def test_rows_lead_to_machines() -> None:
    rows = rows_of(mixed_fleet(), "llama3.1:70b")
    assert [(row.kind, row.machine) for row in rows] == [
        ("model", None),
        ("note", None),
        ("copy", "ada"),
        ("copy", "hopper"),
        ("copy", "app-host"),
        ("copy", "pve52"),
    ]
    assert rows[2].key == copy_key("llama3.1:70b", "ada")
    assert len({row.key for row in rows}) == len(rows)


def test_the_number_of_rows_is_known_without_building_them() -> None:
    fleet = mixed_fleet()
    for width in (40, 80, 130, 200):
        layout = layout_for(fleet, width)
        for line in ModelIndex().lines_of(fleet, NOW):
            for is_expanded in (False, True):
                rows = model_rows(line, NOW, layout, is_expanded=is_expanded)
                assert count_model_rows(line, layout, is_expanded=is_expanded) == len(rows)
            assert [row[:4] for row in outline_rows(line, layout)] == [row[:4] for row in rows]


def test_only_a_near_expiry_and_old_copies_move_with_the_clock() -> None:
    fleet = mixed_fleet()
    ticking = [line.name for line in ModelIndex().lines_of(fleet, NOW) if is_line_ticking(line, NOW)]
    assert ticking == ["llama3.1:70b"], "a minute is left of phi3:mini, and no seconds are shown"
    ticking = [line.name for line in ModelIndex().lines_of(fleet, NOW) if is_line_ticking(line, NOW + 1)]
    assert ticking == ["llama3.1:70b", "phi3:mini"]
    far = make_fleet(host("ada", make_copy()))
    assert not is_line_ticking(one_line(far, "llama3.1:70b"), NOW)


def test_vram_that_a_copy_does_not_tell_is_a_dash_or_a_plus() -> None:
    untold = make_copy("phi3:mini", gib=2.2)
    untold = replace(untold, vram_bytes=Unknown("not reported"))
    alone = make_fleet(host("ada", untold))
    assert "1          –       –  4m" in text_of(rows_of(alone, "phi3:mini")[0].cells)
    beside = make_fleet(host("ada", untold), host("bora", make_copy("phi3:mini", gib=2.0)))
    assert "2   2.0+ GiB       –  4m" in text_of(rows_of(beside, "phi3:mini")[0].cells)
    assert "2 copies" in text_of(rows_of(beside, "phi3:mini", 40)[1].cells)
    assert rows_of(beside, "phi3:mini", 80)[1].kind == "copy", "the column says how many"
    assert "2.0+ GiB" in text_of(models_summary(ModelIndex().lines_of(beside, NOW), NOW, 200))


def test_duplicates_with_a_copy_that_tells_nothing_are_a_least() -> None:
    untold = replace(make_copy(), vram_bytes=Unknown("not reported"))
    fleet = make_fleet(host("ada", untold), host("bora", make_copy()), host("cleo", make_copy()))
    note = text_of(rows_of(fleet, "llama3.1:70b", 80)[1].cells).strip()
    assert note == "3 copies, at least 39.6 GiB more than one needs"


def test_two_copies_on_one_machine_are_a_number_in_the_matrix() -> None:
    machine = host("ada", make_copy())
    twice = replace(machine, engines=(machine.engines[0], replace(machine.engines[0], port=11435)))
    fleet = make_fleet(twice, host("bora"))
    rows = rows_of(fleet, "llama3.1:70b")
    assert text_of(rows[0].cells)[layout_for(fleet, 130).machines[0].start :].strip().startswith("2")
    assert [row.key for row in rows[-2:]] == [
        copy_key("llama3.1:70b", "ada", 0),
        copy_key("llama3.1:70b", "ada", 1),
    ]


def test_ascii_has_a_sign_for_every_state() -> None:
    fleet = mixed_fleet()
    layout = make_model_layout(130, [item.name for item in fleet.machines], glyphs=ASCII)
    for line in ModelIndex().lines_of(fleet, NOW):
        for row in model_rows(line, NOW, layout, is_expanded=True):
            assert text_of(row.cells).isascii()
    assert text_of(legend_cells(ASCII, 200)).isascii()


def test_names_from_machines_cannot_move_the_columns() -> None:
    fleet = make_fleet(host("ada", make_copy("日本語\x1b[31m\nモデル:7b")))
    assert {width_of(row.cells) for row in rows_of(fleet, "日本語 [31m モデル:7b")} == {130}


# -- layout -------------------------------------------------------------------------------------------


def test_racks_keep_their_numbers() -> None:
    names = [f"gpu-{number:02}" for number in range(24)]
    assert short_names(names, 2) == [f"{number:02}" for number in range(24)]
    assert short_names(names, 4)[:2] == ["gp00", "gp01"]  # type: ignore[index]
    assert short_names(["ada", "ada-2"], 3) == ["ada", "ad2"]
    assert short_names(["workstation", "workshop"], 4) is None
    layout = make_model_layout(160, names)
    assert [column.title for column in layout.machines][:3] == ["00", "01", "02"]


@pytest.mark.parametrize(
    ("names", "prefix"),
    [
        (["pve-ada", "pve-bora"], "pve-"),
        (["gpu1", "gpu2", "gpu10"], "gpu"),
        (["gpu-17", "gpu-18"], "gpu-"),
        (["lab.a.x", "lab.a.y"], "lab.a."),
        (["rack0-gpu1", "rack1-gpu1"], ""),  # `0-gpu1` is no name
        (["pve", "pve-ada"], ""),
        (["pve-ada"], ""),
        (["ada", "bora"], ""),
        ([], ""),
    ],
)
def test_what_all_names_begin_with(names: list[str], prefix: str) -> None:
    assert common_prefix(names) == prefix


_EIGHT = ("ada", "bora", "cleo", "dora", "emil", "frieda", "gustav", "hopper")


@pytest.mark.parametrize("width", [120, 160, 200])
def test_names_in_the_matrix_are_whole_and_what_they_share_is_said_once(width: int) -> None:
    layout = make_model_layout(width, [f"pve-{name}" for name in _EIGHT])
    assert tuple(column.title for column in layout.machines) == _EIGHT
    start = layout.machines[0].start
    over = text_of(prefix_line((Cell(" filter x"),), layout))
    assert over.startswith(" filter x ")
    assert over[start:].split() == ["pve-", over[start + 5 :].strip()]
    assert set(over[start + 5 :].strip()) == {"─"}
    long = text_of(prefix_line((Cell("x" * 300),), layout))
    assert len(long) == width
    assert long[start - 1 : start + 4] == " pve-"


def test_names_that_share_nothing_are_whole_where_there_is_room() -> None:
    names = ["ada", "app-host", "bora", "workstation"]
    layout = make_model_layout(200, names)
    assert [column.title for column in layout.machines] == names
    assert prefix_line((), layout) == ()


def test_hundreds_of_machines_are_a_list() -> None:
    fleet = make_fleet(*crowd(300, 3))
    layout = layout_for(fleet, 200)
    assert not layout.is_matrix
    (row,) = model_rows(ModelIndex().lines_of(fleet, NOW)[0], NOW, layout)
    assert layout.place_of("machines").title == "machines gpu-…"  # type: ignore[union-attr]
    assert "● 000  ● 002  ● 003" in text_of(row.cells)
    assert "  +" in text_of(row.cells)


@given(
    width=st.integers(1, 320),
    names=st.lists(st.text(min_size=1, max_size=20), max_size=40, unique=True),
    models=st.lists(st.text(max_size=60), max_size=3),
)
def test_every_width_has_a_layout_in_which_nothing_overlaps(
    width: int, names: list[str], models: list[str]
) -> None:
    layout = make_model_layout(width, names, models)
    assert layout.places[0].key == "model"
    spans = [(place.start, place.width) for place in layout.places]
    spans += [(column.start, column.width) for column in layout.machines]
    spans.sort()
    for (start, wide), (following, _) in pairwise(spans):
        assert start + wide < following
    assert all(start + wide <= max(width, 1) for start, wide in spans)
    assert len(layout.machines) in {0, len(names)}
    assert len({column.title for column in layout.machines}) == len(layout.machines)
    assert width_of(model_header(layout, "vram")) == width
    for column in layout.machines:
        assert cell_width(column.title) <= column.width
        assert layout.machine_at(column.start) == column.machine


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160, 200, 300])
def test_a_click_on_the_header_finds_its_column(width: int) -> None:
    layout = make_model_layout(width, ["ada", "bora"])
    for place in layout.places:
        assert layout.column_at(place.start) == place.key
    for column in layout.machines:
        assert layout.column_at(column.start) is None


# -- words --------------------------------------------------------------------------------------------


def test_the_summary_says_what_the_fleet_holds() -> None:
    lines = ModelIndex().lines_of(mixed_fleet(), NOW)
    assert text_of(models_summary(lines, NOW, 200)) == (
        "7 models · 6 copies · 169.8 GiB in VRAM · 1 duplicate, 39.6 GiB · 2 not installed"
        " · next to expire phi3:mini on app-host in 1m"
    )
    assert (
        text_of(models_summary(lines, NOW, 60)) == "7 models · 6 copies · 169.8 GiB in VRAM · 2 not installed"
    )
    assert text_of(models_summary(lines, NOW, 10)) == "6 copies"


def test_the_summary_and_the_rows_count_the_same_seconds() -> None:
    lines = ModelIndex().lines_of(make_fleet(host("ada", make_copy(expires_at=NOW + 40))), NOW)
    layout = layout_for(mixed_fleet(), 80)
    for now in (NOW, NOW + 0.7):
        assert "40s" in text_of(model_rows(lines[0], now, layout)[0].cells)
        assert text_of(models_summary(lines, now, 200)).endswith("in 40s")


def test_the_summary_of_nothing_is_no_vram_of_zero() -> None:
    assert text_of(models_summary((), NOW, 80)) == "0 models · 0 copies"


def test_the_legend_keeps_whole_entries() -> None:
    assert text_of(legend_cells(UNICODE, 30)) == "● on GPU   ◐ partly   ○ in RAM"


# -- order --------------------------------------------------------------------------------------------


def names_by(order: SortOrder) -> list[str]:
    return [line.name for line in sort_lines(ModelIndex().lines_of(mixed_fleet(), NOW), order)]


def test_most_vram_first_then_what_is_not_loaded_by_name() -> None:
    assert names_by(DEFAULT_ORDER) == [
        "llama3.1:70b",
        "mixtral:8x22b",
        "qwen2.5:32b",
        "nomic-embed-text",
        "phi3:mini",
        "gpt-oss:120b-cloud",
        "mistral:7b",
    ]


def test_the_next_to_expire_first_pinned_and_absent_ones_last() -> None:
    soonest = names_by(SortOrder("expiry"))
    assert soonest[:3] == ["phi3:mini", "llama3.1:70b", "mixtral:8x22b"]
    latest = names_by(SortOrder("expiry", True))
    assert latest[:3] == soonest[:3][::-1]
    assert latest[3:] == soonest[3:]


@pytest.mark.parametrize("sort", MODEL_SORTS)
def test_every_sort_orders_every_line(sort: object) -> None:
    key = sort.key  # type: ignore[attr-defined]
    for is_descending in (False, True):
        assert sorted(names_by(SortOrder(key, is_descending))) == sorted(names_by(SortOrder("model")))


def test_a_sort_chosen_again_turns() -> None:
    order = MODEL_SORTING.choose(DEFAULT_ORDER, "expiry")
    assert order == SortOrder("expiry", False)
    assert MODEL_SORTING.choose(order, "expiry") == SortOrder("expiry", True)
    assert MODEL_SORTING.choose(order, "nonsense") == order


def test_moving_the_sort_goes_through_the_shown_columns() -> None:
    shown = ("model", "vram", "expiry")
    order = next_model_sort(SortOrder("vram", True), shown)
    assert order == SortOrder("expiry")
    assert next_model_sort(order, shown) == SortOrder("model")
    assert next_model_sort(SortOrder("model"), shown, -1) == SortOrder("expiry")
    assert next_model_sort(SortOrder("spare", True), shown) == SortOrder("model")


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("expiry", SortOrder("expiry")),
        ("next expiry desc", SortOrder("expiry", True)),
        ("VRAM asc", SortOrder("vram", False)),
        ("vram", DEFAULT_ORDER),
    ],
)
def test_a_sort_by_its_name(text: str, order: SortOrder) -> None:
    assert order_from(text, DEFAULT_ORDER, MODEL_SORTS) == order


def test_a_sort_that_there_is_not_names_those_that_are() -> None:
    assert str(order_from("beauty", DEFAULT_ORDER, MODEL_SORTS)).startswith(
        "nothing is called 'beauty' to sort by; there"
    )


def test_the_line_above_says_what_is_left_out() -> None:
    layout = layout_for(mixed_fleet(), 80)
    assert models_state("", 7, 7, DEFAULT_ORDER, layout) == ()
    shown = text_of(models_state("llama", 1, 7, SortOrder("installed", True), layout)).strip()
    assert shown == "filter llama · 1 of 7 models · by installed on ▾"
    long = models_state("x" * 200, 1, 7, DEFAULT_ORDER, layout)
    assert width_of(long) == 80
    assert text_of(long).rstrip().endswith("1 of 7 models")


def test_an_empty_table_says_why() -> None:
    layout = layout_for(mixed_fleet(), 80)
    texts = [
        text_of(no_model("x", layout, has_models=True, has_machines=True)).strip(),
        text_of(no_model("", layout, has_models=False, has_machines=True)).strip(),
        text_of(no_model("", layout, has_models=False, has_machines=False)).strip(),
    ]
    assert texts == [
        "no model matches x  Esc shows all",
        "no machine has or declares a model, as far as is known",
        "no machine is declared",
    ]


# -- filter -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", 7),
        ("llama", ["llama3.1:70b"]),
        ("LLAMA3.1:70B", ["llama3.1:70b"]),
        ("bora", ["mistral:7b", "qwen2.5:32b"]),
        ("on:bora qwen", ["qwen2.5:32b"]),
        ("model~=a on:ada", ["llama3.1:70b"]),
        ("phi3,mistral", ["mistral:7b", "phi3:mini"]),
        ("is:missing", ["llama3.1:70b", "mistral:7b"]),
        ("is:duplicate", ["llama3.1:70b"]),
        ("is:loaded !is:pinned", ["llama3.1:70b", "mixtral:8x22b", "phi3:mini"]),
        ("is:dup", ["llama3.1:70b"]),
        ("is:offloaded", ["phi3:mini", "qwen2.5:32b"]),
        ("is:drifting", ["qwen2.5:32b"]),
        ("is:cloud,pinned", ["gpt-oss:120b-cloud", "nomic-embed-text", "qwen2.5:32b"]),
        ("!ada !app-host", ["mistral:7b", "mixtral:8x22b"]),
        ("nothing-of-this", []),
    ],
)
def test_filters(text: str, names: list[str] | int) -> None:
    lines = ModelIndex().lines_of(mixed_fleet(), NOW)
    found = parse_model_filter(text)
    assert isinstance(found, ModelFilter)
    chosen = [line.name for line in found.select(lines)]
    assert chosen == names if isinstance(names, list) else len(chosen) == names


@pytest.mark.parametrize(
    ("text", "column", "length", "part"),
    [
        ("llama is:gone", 6, 7, "there is no is:gone: loaded,"),
        ("is:", 0, 3, "say which: loaded,"),
        ("on:", 0, 3, "say a part of a name"),
        ("ada !", 4, 1, "say a part of a name"),
        ("free>24", 0, 7, "free asks for machines; here: words, model:, on: and is:"),
        ("tag:edge", 0, 8, "tag asks for machines"),
    ],
)
def test_a_mistake_is_told_at_its_place(text: str, column: int, length: int, part: str) -> None:
    error = parse_model_filter(text)
    assert isinstance(error, FilterError)
    assert (error.column, error.length) == (column, length)
    assert part in error.text


@pytest.mark.parametrize(
    ("text", "completed"),
    [
        ("", ""),
        ("mix", "mixtral:8x22b"),
        ("llama on:ho", "llama on:hopper"),
        ("!is:dup", "!is:duplicate"),
        ("is:missing,du", "is:missing,duplicate"),
        ("m", "m"),
        ("mi", "mi"),
        ("zzz", "zzz"),
    ],
)
def test_completion_goes_as_far_as_it_is_sure(text: str, completed: str) -> None:
    assert complete_model_filter(text, ModelIndex().lines_of(mixed_fleet(), NOW)) == completed


def test_the_hint_is_calm_while_a_term_is_unfinished() -> None:
    assert filter_cells("llama")[0].tone == "dim"
    assert filter_cells("is:")[0].tone == "dim"
    assert filter_cells("is:nonsense")[0].tone == "warn"


@given(st.text(max_size=40))
def test_any_text_is_read_without_raising(text: str) -> None:
    found = parse_model_filter(text)
    if isinstance(found, ModelFilter):
        complete_model_filter(text, ())
        found.select(ModelIndex().lines_of(make_fleet(host("ada", make_copy(gib=GIB / GIB))), NOW))
    else:
        assert 0 <= found.column <= len(text)


@pytest.mark.parametrize(
    ("gib", "shown"), [(39.6, "39.6 GiB"), (999.9, "999.9 GiB"), (999.97, "1000 GiB"), (2812, "2812 GiB")]
)
def test_the_memory_of_many_copies_fits_its_column(gib: float, shown: str) -> None:
    assert vram_cell(int(gib * GIB)).text == shown
