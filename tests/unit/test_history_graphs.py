"""Graphs of a machine's history: a span that fits, now at the right, gaps, scales, and what goes first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, make_card, make_fleet, make_snapshot
from fleettui.fleet.history import FleetHistory, Series, gpu_key
from fleettui.model.gpu import GpuCard, GpuFault, GpuReading
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown
from fleettui.view.cells import Cells, text_of, width_of
from fleettui.view.glyphs import ASCII, UNICODE, Glyphs
from fleettui.view.history_graphs import (
    MB_S,
    PERCENT,
    RAM_GIB,
    Graph,
    graph_lines,
    round_top,
)
from fleettui.view.history_span import choose_span
from fleettui.view.layout import make_layout
from fleettui.view.machine_graphs import Graphs, make_graphs, room_for
from fleettui.view.machine_page import hardware_page

HOUR_S = 3600.0
GAP = Unknown("no sample")


@dataclass
class Samples:
    """A history that a test fills: every sample of an hour, newest last."""

    of: Mapping[str, Sequence[Maybe[float]]] = field(default_factory=dict)
    step_s: float = 2.0
    span_s: float = HOUR_S

    def values(
        self, series: Series, width: int, seconds: float, card: GpuCard | None
    ) -> Sequence[Maybe[float]]:
        share = max(1, -int(-(seconds / self.step_s) // width))
        samples = ([GAP] * (share * width) + list(self.of.get(series, ())))[-share * width :]
        return [mean(samples[at : at + share]) for at in range(0, share * width, share)]

    def sum_up(
        self, series: Series, seconds: float, card: GpuCard | None
    ) -> tuple[Maybe[float], Maybe[float]]:
        samples = list(self.of.get(series, ()))[-int(seconds / self.step_s) :]
        known = [value for value in samples if not isinstance(value, Unknown)]
        return mean(samples), max(known) if known else GAP


def mean(values: Sequence[Maybe[float]]) -> Maybe[float]:
    known = [value for value in values if not isinstance(value, Unknown)]
    return sum(known) / len(known) if known else GAP


def texts(
    graphs: Sequence[Graph], history: Samples, width: int = 76, height: int = 1, glyphs: Glyphs = UNICODE
) -> list[str]:
    return [text_of(line) for line in graph_lines(graphs, history, width, height, glyphs, is_stale=False)]


CPU = Graph("CPU", "cpu", PERCENT, 12.4, top=100.0)


def test_a_whole_hour_with_its_figures() -> None:
    history = Samples({"cpu": [0.0] * 900 + [51.0] * 899 + [99.6]})
    assert texts([CPU], history) == [
        "               now  last 60 min ───────────── now    mean     max      scale",
        "CPU           12 %  ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▂▄▄▄▄▄▄▄▄▄▄▄▄▄▄      26     100      100 %",
    ]


def test_the_span_grows_with_what_there_is() -> None:
    for minutes, text in (
        (1, "last 2 min"),
        (3, "last 5 min"),
        (7, "last 10 min"),
        (12, "last 15 min"),
        (59, "last 60 min"),
    ):
        history = Samples({"cpu": [5.0] * (minutes * 30)})
        assert text in texts([CPU], history, height=1)[0]
    wide = texts([CPU], Samples({"cpu": [5.0]}), width=200, height=2)[0]
    assert "last 10 min" in wide  # 5 minutes have fewer samples than the width has room for


def test_gaps_are_blank_and_zero_is_not() -> None:
    history = Samples({"cpu": [100.0] * 600 + [GAP] * 600 + [0.0] * 600})
    assert texts([CPU], history)[1][20:49] == "▇" * 10 + " " * 9 + "▁" * 10


def test_higher_graphs_have_two_samples_a_column_and_stay_apart() -> None:
    history = Samples({"cpu": [100.0] * 1800, "ram": [float(64 << 20)] * 1800})
    ram = Graph("memory", "ram", RAM_GIB, 64 << 20, top=float(128 << 20))
    lines = texts([CPU, ram], history, height=2)
    assert len(lines) == 5
    assert lines[0].split()[:4] == ["now", "last", "60", "min"]
    assert lines[1].split()[3] == "⢰" + "⣶" * 28  # a line of dots stays free above the highest value
    assert lines[2].strip() == "⢸" + "⣿" * 28
    assert lines[3].split() == ["memory", "64.0", "GiB", "64.0", "64.0", "128", "GiB"]
    assert lines[4].strip() == "⢸" + "⣿" * 28


def test_rates_have_a_round_scale_above_the_peak() -> None:
    net = Graph("net in", "rx", MB_S, 400_000.0)
    line = texts([net], Samples({"cpu": [0.0] * 1800, "rx": [0.0] * 1799 + [13.4e6]}))[1]
    assert line.startswith("net in    0.4 MB/s")
    assert line.endswith("0.0    13.4    20 MB/s")
    assert [round_top(value) for value in (0, 0.3, 1, 1.1, 2, 4.9, 13.4, 51, 1250)] == [
        1, 0.5, 1, 2, 2, 5, 20, 100, 2000,
    ]  # fmt: skip


def test_without_any_sample_there_are_dashes() -> None:
    lines = texts([replace_now(CPU)], Samples())
    assert lines[1].split() == ["CPU", "–", "–", "–", "100", "%"]


def replace_now(graph: Graph) -> Graph:
    return graph._replace(now=Unknown("not read"))


@pytest.mark.parametrize(
    ("width", "words"),
    [(76, ["mean", "max", "scale"]), (62, ["max", "scale"]), (46, ["max"]), (36, [])],
)
def test_figures_go_before_the_graph_does(width: int, words: list[str]) -> None:
    head, line = texts([CPU], Samples({"cpu": [50.0] * 1800}), width=width)
    assert [word for word in ("mean", "max", "scale") if word in head] == words
    assert len(head) == len(line) == width
    assert line.count("▄") >= 12


def test_ascii_signs_alone() -> None:
    history = Samples({"cpu": [0.0, 100.0] * 900})
    for height in (1, 2):
        assert all(line.isascii() for line in texts([CPU], history, height=height, glyphs=ASCII))


@given(
    st.floats(0, 2 * HOUR_S),
    st.sampled_from([60.0, 600.0, HOUR_S, 24 * HOUR_S]),
    st.sampled_from([0.5, 1.0, 2.0, 3.3, 60.0]),
    st.integers(1, 400),
)
def test_a_span_fits_its_room_and_what_is_kept(
    reach_s: float, kept_s: float, step_s: float, room: int
) -> None:
    span = choose_span(reach_s, kept_s, step_s, room)
    assert 1 <= span.length <= room
    assert span.seconds <= max(kept_s, step_s) + span.share * step_s
    assert span.seconds >= min(reach_s, kept_s) * 0.5 - span.share * step_s


def record(*machines: MachineSnapshot) -> FleetHistory:
    history = FleetHistory(60, 2.0)
    history.record(make_fleet(*machines, taken_at=NOW))
    return history


class Window:
    """One machine of a real history."""

    def __init__(self, history: FleetHistory, name: str) -> None:
        self._history, self._name = history, name
        self.step_s, self.span_s = history.step_s, history.span_s

    def values(
        self, series: Series, width: int, seconds: float, card: GpuCard | None
    ) -> Sequence[Maybe[float]]:
        return self._history.read(self._name, series, width, seconds, gpu=card and gpu_key(card))

    def sum_up(
        self, series: Series, seconds: float, card: GpuCard | None
    ) -> tuple[Maybe[float], Maybe[float]]:
        return self._history.sum_up(self._name, series, seconds, gpu=card and gpu_key(card))


def graphs_of(snapshot: MachineSnapshot, width: int = 76, rows: int = 19, *, is_wide: bool = False) -> Graphs:
    cards = len(snapshot.gpu.cards) if snapshot.gpu is not None else 0
    room = room_for(Window(record(snapshot), snapshot.name), rows, cards, is_wide=is_wide)
    return make_graphs(snapshot, NOW, make_layout(width), room)


def names(lines: Sequence[Cells]) -> list[str]:
    return [name for line in lines if (name := text_of(line)[:9].strip())]


def test_a_machine_has_its_own_graphs_and_those_of_each_card() -> None:
    graphs = graphs_of(make_snapshot())
    assert names(graphs.machine) == ["CPU", "memory", "disk", "net in", "net out"]
    assert names(graphs.cards) == ["GPU 0", "VRAM", "GPU 1", "VRAM"]


def test_where_there_is_room_cards_have_temperature_and_power_and_graphs_are_higher() -> None:
    graphs = graphs_of(make_snapshot(), 94, 56, is_wide=True)
    assert names(graphs.cards) == ["GPU 0", "VRAM", "temp", "power", "GPU 1", "VRAM", "temp", "power"]
    assert len(graphs.cards) == 1 + 8 * 4
    assert len(graphs.machine) == 1 + 5 * 3


def test_what_was_never_read_has_no_graph() -> None:
    windows = make_snapshot(cpu=None, memory=None, disks=None, net=None)
    assert (graphs_of(windows).machine, names(graphs_of(windows).cards)[0]) == ([], "GPU 0")
    assert graphs_of(make_snapshot(gpus=0)).cards == []


def test_a_faulty_card_has_no_load_and_keeps_its_line() -> None:
    card = make_card(1, fault=GpuFault("00000000:02:00.0", "lost", "GPU is lost"), utilisation_percent=100)
    lines = graphs_of(make_snapshot(cards=[make_card(0), card])).cards
    assert text_of(lines[3]).split()[:3] == ["GPU", "1", "–"]


def test_unified_memory_is_drawn_against_what_the_machine_has() -> None:
    card = make_card(0, free_gib=None, total_gib=None, name="NVIDIA GB10", is_unified=True)
    lines = graphs_of(make_snapshot(cards=[card], gpu=GpuReading((card,)))).cards
    assert text_of(lines[2]).endswith("128 GiB")


def test_stale_values_are_dim_and_the_past_stays() -> None:
    old = replace(make_snapshot(), last_seen=NOW - 600, health="offline")
    line = graphs_of(old).machine[1]
    assert {cell.tone for cell in line if cell.text.strip() in ("12 %",)} == {"dim"}


@pytest.mark.parametrize("width", [30, 36, 59, 76, 94, 120])
@pytest.mark.parametrize("count", [0, 1, 8, 16])
def test_no_line_is_wider_than_the_page(width: int, count: int) -> None:
    snapshot = make_snapshot(cards=[make_card(index) for index in range(count)])
    layout = make_layout(width)
    for section in hardware_page(snapshot, NOW, layout, (), graphs_of(snapshot, width, 40)):
        assert all(width_of(line) <= width for line in section.lines)


def test_without_gpus_the_machine_s_own_graphs_stand_beside_its_health() -> None:
    layout = make_layout(76)
    for snapshot, side in ((make_snapshot(), True), (make_snapshot(gpus=0), False)):
        sections = hardware_page(snapshot, NOW, layout, (), graphs_of(snapshot))
        assert {section.title: section.is_right for section in sections}["Machine history"] is side
