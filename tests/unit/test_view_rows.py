"""Rows of the fleet's table: whole outputs at four widths, states, order, stability."""

# ruff: noqa: E501 - whole lines of wide tables

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import (
    NOW,
    judged,
    make_card,
    make_copy,
    make_fleet,
    make_installed,
    make_offline,
    make_process,
    make_snapshot,
)
from fleettui.model.gpu import GpuCard, GpuFault, GpuProcess
from fleettui.model.snapshot import MachineSnapshot, MaintenanceFlag
from fleettui.model.unknown import Maybe, Unknown
from fleettui.view.bars import Thresholds
from fleettui.view.cells import Cell, text_of, width_of
from fleettui.view.columns import COLUMNS
from fleettui.view.flags import fitting_flags
from fleettui.view.glyphs import ASCII, UNICODE
from fleettui.view.layout import fleet_layout, header_cells, make_layout
from fleettui.view.rows import count_rows, fleet_rows, machine_rows, sorted_machines
from sample_fleet import sample_fleet

WIDE_212 = """
   machine ▴      health         VRAM                             GPU  trend            temp   power  models                                        CPU        RAM   disk    age  note
 ▸ ada            ● healthy      ▕█████████▌ ▏ 41.2/48.0 GiB     64 %  ▁ ▂▂▃▃▄▅▅▆▆▇▇   79 °C   402 W  llama3.1:70b 39.6 · 4m                       12 %     38/128   24 %    now
 ▸ app-host       ● healthy      cpu only                                                             phi3:mini 2.2 · 1m                           12 %     38/128   24 %    now
 ▸ bora           ◐ degraded     ▕███████▍   ▏ 16.1/24.0 GiB      4 %  ▁ ▂▂▃▃▄▅▅▆▆▇▇   38 °C    31 W  qwen2.5:32b 16.4 (83 % GPU) · pinned         12 %     38/128   24 %    now
      ◐ GPU 1 missing: 2 declared, 1 measured
 ▸ cleo           ● healthy ⚑    ▕           ▏  0.0/24.0 GiB      0 %  ▁ ▂▂▃▃▄▅▅▆▆▇▇   38 °C    31 W                                               12 %     38/128   24 %    now  ⚑ maintenance "fan swap" mia, 2h
 ▸ dora           ▲ unhealthy    ▕██████████▌▏ 153.0/160.0 GiB   20 %  ▁ ▂▂▃▃▄▅▅▆▆▇▇   38 °C   601 W  deepseek-r1:70b-llama-distill-q4_K_M, +2     12 %     38/128   24 %    now
      ▲ nvidia-smi does not answer since 13:58 UTC: a hung driver needs a reboot
 ▸ enno           ▲ unhealthy    no GPU reading                     –  ▁ ▂▂▃▃▄▅▅▆▆▇▇       –       –                                               12 %     38/128   24 %    now
      ▲ nvidia-smi: NVIDIA driver/library version mismatch: reboot or reload the driver
 ▸ gina           ✗ key changed  approved SHA256:Lq9sT5bXw1nV7cZ3pR8kM2dF6gH4jQ0yA1eU5iO9tBw, now SHA256:Vd3hY0dPq7mJH0iT0r3m0pXb0mY2cQyB1uE5s8rZkKo (KXO6-CY5H)
 ▸ kiosk          ? pending      KXO6-CY5H  ED25519  SHA256:Vd3hY0dPq7mJH0iT0r3m0pXb0mY2cQyB1uE5s8rZkKo  a to review
 ▸ pve52          ✗ offline      no answer on port 22 (timeout); next try in 12 s                                                                                             4m
 ▸ spark          ● healthy      ▕███▌       ▏ 38.1/122 shared    0 %  ▁ ▂▂▃▃▄▅▅▆▆▇▇   35 °C    11 W  gpt-oss:120b 38.1 · 29m                      12 %     43/122   24 %    now
 ▸ zoe            ? unknown      connecting to 192.0.2.9:22
"""
EXPANDED_120 = """
   machine ▴      health         VRAM                     GPU  trend      models                  CPU        RAM    age
 ▾ ada            ● healthy      ▕██████▉ ▏ 41.2/48.0    64 %  ▁ ▂▃▄▅▆▇▇  1 copy                 12 %     38/128    now
    0 RTX 4090    79 °C 212 W    ▕▄▄▄▄▄▄▄▖▏ 22.9/24.0    97 %  ▇▇▆▅▄▃▂ ▁  llama3.1:70b 22.1
    1 RTX 4090    38 °C 190 W    ▕▄▄▄▄▄▄  ▏ 18.3/24.0    30 %  ▇▇▆▅▄▃▂ ▁  llama3.1:70b 18.2
      llama3.1:70b                39.6 GiB  100 % GPU  expires in 4m   ctx 32768
 ▾ app-host       ● healthy      cpu only                                 1 copy                 12 %     38/128    now
      phi3:mini                    2.2 GiB        CPU  expires in 1m   ctx 32768
 ▾ bora           ◐ degraded     ▕█████▍  ▏ 16.1/24.0     4 %  ▁ ▂▃▄▅▆▇▇  1 copy                 12 %     38/128    now
    0 RTX 4090    38 °C 31 W     ▕▄▄▄▄▄▖  ▏ 16.1/24.0     4 %  ▇▇▆▅▄▃▂ ▁  qwen2.5:32b 13.6, mia: python3.11 2.0
      qwen2.5:32b                 16.4 GiB   83 % GPU  pinned          ctx 32768
      ◐ GPU 1 missing: 2 declared, 1 measured
      · qwen2.5:32b is only 83 % on the GPU, the rest in RAM: slow
 ▾ cleo           ● healthy ⚑    ▕        ▏  0.0/24.0     0 %  ▁ ▂▃▄▅▆▇▇                         12 %     38/128    now
    0 RTX 4090    38 °C 31 W     ▕        ▏  0.0/24.0     0 %  ▇▇▆▅▄▃▂ ▁
      ⚑ maintenance "fan swap" mia, 2h
 ▾ dora           ▲ unhealthy    ▕███████▋▏  153/160     20 %  ▁ ▂▃▄▅▆▇▇  3 copies               12 %     38/128    now
    0 H100        38 °C 300 W    ▕▄▄▄▄▄▄▄▖▏ 77.0/80.0     0 %  ▇▇▆▅▄▃▂ ▁
    1 H100        38 °C 301 W    ▕▄▄▄▄▄▄▄▖▏ 76.0/80.0    40 %  ▇▇▆▅▄▃▂ ▁
      deepseek-r1:70b-llama-distill-q4_K_M  140.0 GiB  100 % GPU  expires in 4m   ctx 32768
      qwen3:8b                     6.0 GiB  100 % GPU  stopping        ctx 32768
      nomic-embed-text:latest      0.6 GiB  100 % GPU  pinned          ctx 32768
      ▲ nvidia-smi does not answer since 13:58 UTC: a hung driver needs a reboot
      · qwen3:8b is stopping since 13:58 UTC and still holds 6.0 GiB of VRAM
 ▾ enno           ▲ unhealthy    no GPU reading             –  ▁ ▂▃▄▅▆▇▇                         12 %     38/128    now
      ▲ nvidia-smi: NVIDIA driver/library version mismatch: reboot or reload the driver
 ▾ gina           ✗ key changed  another key than approved, now KXO6-CY5H SHA256:Vd3hY0dPq7mJH0iT0r3m0pXb0mY2cQyB1uE5s…
 ▾ kiosk          ? pending      KXO6-CY5H  ED25519  SHA256:Vd3hY0dPq7mJH0iT0r3m0pXb0mY2cQyB1uE5s8rZkKo  a to review
 ▾ pve52          ✗ offline      no answer on port 22 (timeout); next try in 12 s                                    4m
 ▾ spark          ● healthy      ▕██▌     ▏ 38.1/122      0 %  ▁ ▂▃▄▅▆▇▇  1 copy                 12 %     43/122    now
    0 GB10        35 °C 11 W     ▕▄▄▖     ▏ 38.1/122      0 %  ▇▇▆▅▄▃▂ ▁  gpt-oss:120b 38.1
      gpt-oss:120b                38.1 GiB  100 % GPU  expires in 29m  ctx 32768
 ▾ zoe            ? unknown      connecting to 192.0.2.9:22
"""
AT_80 = """
   machine ▴   health        VRAM                  GPU models               age
 ▸ ada         ● healthy     ▕██████ ▏ 41.2/48.0   64% llama3.1:70b · 4m    now
 ▸ app-host    ● healthy     cpu only                  phi3:mini 2.2 · 1m   now
 ▸ bora        ◐ degraded    ▕████▊  ▏ 16.1/24.0    4% qwen2.5:32b 83%GPU   now
      ◐ GPU 1 missing: 2 declared, 1 measured
 ▸ cleo        ● healthy ⚑   ▕       ▏  0.0/24.0    0%                      now
 ▸ dora        ▲ unhealthy   ▕██████▊▏  153/160    20% deepseek-r1:7…, +2   now
      ▲ nvidia-smi does not answer since 13:58 UTC: a hung driver needs a reboot
 ▸ enno        ▲ unhealthy   no GPU reading          –                      now
      ▲ nvidia-smi: NVIDIA driver/library version mismatch: reboot or reload th…
 ▸ gina        ✗ key changed another key than approved, now KXO6-CY5H SHA256:V…
 ▸ kiosk       ? pending     KXO6-CY5H  ED25519  SHA256:Vd3hY0…kKo  a to review
 ▸ pve52       ✗ offline     no answer on port 22 (tim…; next try in 12 s    4m
 ▸ spark       ● healthy     ▕██▎    ▏ 38.1/122     0% gpt-oss:120b · 29m   now
 ▸ zoe         ? unknown     connecting to 192.0.2.9:22
"""
AT_40 = """
   machine ▴    VRAM
 ▸ ada        ● ▕████████▋ ▏ 41.2/48.0
 ▸ app-host   ● cpu only
 ▸ bora       ◐ ▕██████▊   ▏ 16.1/24.0
      ◐ GPU 1 missing: 2 declared, 1 me…
 ▸ cleo       ● ▕          ▏  0.0/24.0
 ▸ dora       ▲ ▕█████████▌▏  153/160
      ▲ nvidia-smi does not answer sinc…
 ▸ enno       ▲ no GPU reading
      ▲ nvidia-smi: NVIDIA driver/libra…
 ▸ gina       ✗ another key than appro…
 ▸ kiosk      ? KXO6-CY5H  ED25519  a …
 ▸ pve52      ✗ no answer on port 22 (…
 ▸ spark      ● ▕███▏      ▏ 38.1/122
 ▸ zoe        ? connecting to 192.0.2.…
"""


def rising(snapshot: MachineSnapshot, card: GpuCard | None, count: int) -> list[Maybe[float]]:
    """A trend with one sample missing: from 0 to 100 %, of a card from 100 % down."""
    values: list[Maybe[float]] = [100.0 * at / max(1, count - 1) for at in range(count)]
    values[1] = Unknown("no sample")
    return values if card is None else values[::-1]


def drawn(width: int, *, is_expanded: bool = False) -> str:
    """The table of the sample fleet as text."""
    fleet = sample_fleet()
    layout = fleet_layout(fleet, width)
    names = [machine.name for machine in fleet.machines] if is_expanded else []
    rows = fleet_rows(fleet, NOW, layout, names, trend_of=rising)
    lines = [header_cells(layout, "machine"), *(row.cells for row in rows)]
    return "\n".join(["", *(text_of(line).rstrip() for line in lines), ""])


@pytest.mark.parametrize(
    ("width", "is_expanded", "golden"),
    [(212, False, WIDE_212), (120, True, EXPANDED_120), (80, False, AT_80), (40, False, AT_40)],
)
def test_whole_tables(width: int, is_expanded: bool, golden: str) -> None:
    assert drawn(width, is_expanded=is_expanded) == golden


@given(st.integers(30, 260), st.booleans())
def test_every_row_is_exactly_as_wide_as_its_layout(width: int, is_ascii: bool) -> None:
    fleet = sample_fleet()
    layout = (
        make_layout(width, [m.name for m in fleet.machines], glyphs=ASCII)
        if is_ascii
        else fleet_layout(fleet, width)
    )
    for snapshot in fleet.machines:
        for is_expanded in (False, True):
            rows = machine_rows(snapshot, NOW, layout, is_expanded=is_expanded)
            assert {width_of(row.cells) for row in rows} == {width}
            assert len(rows) == count_rows(snapshot, NOW, layout, is_expanded=is_expanded)
            assert len({row.key for row in rows}) == len(rows)
            assert rows[0].key == snapshot.name
            if is_ascii:
                assert all(text_of(row.cells).isascii() for row in rows)


def test_below_80_columns_only_machine_health_and_vram_are_left() -> None:
    for width in (40, 60, 79):
        assert [place.column.key for place in make_layout(width).places] == ["machine", "health", "vram"]
    assert "models" in [place.column.key for place in make_layout(80).places]
    assert [place.column.key for place in make_layout(220).places] == [column.key for column in COLUMNS]


def test_columns_can_be_chosen() -> None:
    layout = make_layout(200, columns=["vram", "age"])
    assert [place.column.key for place in layout.places] == ["machine", "vram", "age"]


def test_clicks_find_their_column() -> None:
    layout = make_layout(120, ["ada"])
    place = layout.place_of("models")
    assert place is not None
    assert layout.column_at(place.start + 1) == "models"
    assert layout.column_at(0) == "machine"


def test_a_fresh_age_does_not_tick() -> None:
    layout = make_layout(120)
    first = machine_rows(make_snapshot(age_s=0.2), NOW, layout)
    assert first == machine_rows(make_snapshot(age_s=2.9), NOW, layout)
    assert "now" in text_of(first[0].cells)


def test_rows_depend_on_the_whole_second_only() -> None:
    layout, snapshot = make_layout(120), make_snapshot(age_s=9, loaded=[make_copy(expires_at=NOW + 30)])
    assert machine_rows(snapshot, NOW + 0.1, layout) == machine_rows(snapshot, NOW + 0.9, layout)
    assert machine_rows(snapshot, NOW, layout) != machine_rows(snapshot, NOW + 1, layout)


def test_stale_values_are_dimmed_and_offline_machines_keep_their_cards() -> None:
    layout = make_layout(120)
    stale = machine_rows(make_snapshot(age_s=5, cards=[make_card(free_gib=1)]), NOW, layout)[0]
    assert Cell("ada", "dim") in stale.cells
    assert not {"good", "bad", "bar_bad"} & {cell.tone for cell in stale.cells if "healthy" not in cell.text}
    assert "5s" in text_of(stale.cells)
    gone = judged(replace(make_snapshot(cards=[make_card(free_gib=1)]), link=make_offline().link))
    rows = machine_rows(gone, NOW, layout, is_expanded=True)
    assert [row.kind for row in rows] == ["machine", "gpu"]
    assert {cell.tone for cell in rows[1].cells if cell.text.strip()} <= {"dim", "faint", "bar_dim"}


def test_offline_in_maintenance_is_expected() -> None:
    snapshot = make_offline(maintenance=MaintenanceFlag("fan swap", "mia", NOW - 60))
    text = text_of(machine_rows(snapshot, NOW, make_layout(120))[0].cells)
    assert "✗ offline ⚑" in text
    assert "expected: in maintenance; next try in 12 s" in text


def test_where_there_is_little_room_the_reason_comes_before_the_address() -> None:
    error = "pve52.lan:22: connection refused; is sshd running there?"
    offline = make_offline()
    snapshot = judged(replace(offline, reasons=(), link=replace(offline.link, error=error)))
    assert "pve52.lan:22: connection refused" in text_of(
        machine_rows(snapshot, NOW, make_layout(132))[0].cells
    )
    assert " offline     connection refused" in text_of(machine_rows(snapshot, NOW, make_layout(80))[0].cells)


@pytest.mark.parametrize("width", [80, 90, 100, 120, 160])
def test_one_long_name_takes_no_models_away(width: int) -> None:
    layout = make_layout(width, ["ada", "a-name-of-sixty-columns-" + "x" * 36])
    assert layout.has("models")


def test_the_next_try_counts_down_and_never_below_zero() -> None:
    layout = make_layout(120)
    for seconds, text in (
        (12, "next try in 12 s"),
        (0.4, "next try in 1 s"),
        (-1, "trying now"),
        (200, "next try in 3m"),
    ):
        row = machine_rows(make_offline(next_try_s=seconds), int(NOW), layout)[0]
        assert text in text_of(row.cells)


def test_many_copies_are_counted_where_they_do_not_fit() -> None:
    loaded = [make_copy(f"model-{index}:7b", gib=10 - index) for index in range(5)]
    place = make_layout(80).place_of("models")
    assert place is not None
    text = text_of(machine_rows(make_snapshot(loaded=loaded), NOW, make_layout(80))[0].cells)
    assert text[place.start :].startswith("model-0:7b, +4")
    wide = text_of(machine_rows(make_snapshot(loaded=loaded), NOW, make_layout(200))[0].cells)
    assert "model-0:7b, model-1:7b, model-2:7b, +2" in wide


def test_a_faulty_and_a_disabled_card() -> None:
    fault = GpuFault("00000000:02:00.0", "lost", "GPU 00000000:02:00.0: lost, reboot needed")
    snapshot = judged(make_snapshot(cards=[make_card(0), make_card(1, fault=fault, free_gib=None)]))
    rows = machine_rows(snapshot, NOW, make_layout(200), is_expanded=True)
    assert "▲ lost" in text_of(rows[2].cells)
    assert "lost, reboot needed" in text_of(rows[2].cells)
    disabled = replace(snapshot, machine=replace(snapshot.machine, disabled_gpus=(0,)))
    assert "disabled" in text_of(machine_rows(disabled, NOW, make_layout(120), is_expanded=True)[1].cells)


def test_hostile_and_wide_text_keeps_the_columns() -> None:
    evil = make_copy("a\x1b[2J\n\u202ebad:7b", gib=1)
    wide = make_copy("日本語モデル:7b", gib=1)
    layout = make_layout(100)
    for copy in (evil, wide):
        for row in machine_rows(make_snapshot("サーバ", loaded=[copy]), NOW, layout, is_expanded=True):
            assert width_of(row.cells) == 100
            assert text_of(row.cells).isprintable()


def test_order_is_natural_and_unknown_comes_last_in_both_directions() -> None:
    fleet = make_fleet(
        make_snapshot("n10", cards=[make_card(utilisation_percent=5)]),
        make_snapshot("n2", cards=[make_card(utilisation_percent=90)]),
        make_offline("n1"),
    )

    def names(key: str | None, *, is_descending: bool = False) -> list[str]:
        return [item.name for item in sorted_machines(fleet, NOW, key, is_descending=is_descending)]

    assert names(None) == ["n1", "n2", "n10"]
    assert names("machine", is_descending=True) == ["n10", "n2", "n1"]
    assert names("gpu") == ["n10", "n2", "n1"]
    assert names("gpu", is_descending=True) == ["n2", "n10", "n1"]
    assert names("health") == ["n1", "n2", "n10"]
    for column in COLUMNS:
        for is_descending in (False, True):
            assert sorted(names(column.key, is_descending=is_descending)) == ["n1", "n10", "n2"]


def test_an_engine_that_does_not_answer_is_said_in_the_models_column() -> None:
    from builders import make_engine
    from fleettui.model.unknown import Unknown

    engine = replace(make_engine(installed=[make_installed()]), state="down", loaded=Unknown())
    assert "ollama down" in text_of(
        machine_rows(make_snapshot(engines=(engine,)), NOW, make_layout(120))[0].cells
    )


def trainer(index: int = 0, *, pid: int = 77, gib: float = 17.2, **changes: object) -> GpuProcess:
    """A process of no engine."""
    fields = {
        "name": "/usr/bin/python3.11",
        "user": "mia",
        "command": "/usr/bin/python3.11 train.py --lr 3e-4",
    }
    return make_process(index, pid=pid, gib=gib, **{**fields, **changes})


def expanded_lines(snapshot: MachineSnapshot, width: int) -> list[tuple[str, str]]:
    rows = machine_rows(snapshot, NOW, make_layout(width), is_expanded=True)
    assert len(rows) == count_rows(snapshot, NOW, make_layout(width), is_expanded=True)
    return [(row.kind, text_of(row.cells).rstrip()) for row in rows]


def test_who_is_on_a_card_is_said_on_its_line_and_below_where_that_has_no_room() -> None:
    snapshot = make_snapshot(processes=[trainer(1)])
    for width in (80, 120, 180):
        lines = expanded_lines(snapshot, width)
        assert [kind for kind, _ in lines] == ["machine", "gpu", "gpu"]
        assert lines[2][1].endswith("mia: python3.11 17.2")
    narrow = expanded_lines(snapshot, 40)
    assert [kind for kind, _ in narrow] == ["machine", "gpu", "gpu", "process"]
    assert narrow[3][1].split()[:4] == ["└", "mia", "17.2", "GiB"]
    several = make_snapshot(processes=[trainer(1, pid=pid, user=f"user-{pid}") for pid in (77, 78, 79)])
    lines = expanded_lines(several, 120)
    assert [kind for kind, _ in lines] == ["machine", "gpu", "gpu", "process", "process", "process"]
    assert lines[4][1].endswith(
        "├ user-78                   17.2 GiB  pid 78     python3.11 train.py --lr 3e-4"
    )


def test_others_have_lines_where_a_fault_takes_the_card_s_own() -> None:
    fault = GpuFault("00000000:01:00.0", "lost", "GPU 00000000:01:00.0: lost, reboot needed")
    snapshot = make_snapshot(cards=[make_card(0, fault=fault)], processes=[trainer(0)])
    assert [kind for kind, _ in expanded_lines(snapshot, 200)] == ["machine", "gpu", "process"]


def test_processes_of_declared_engines_stand_among_the_models_and_others_below() -> None:
    processes = [
        make_process(0, pid=1, gib=8.8),
        trainer(0, pid=2, name="python3", user="jo", command="python3 -m vllm.entrypoints --model m"),
        trainer(0, pid=3, gib=20.0, user=Unknown("not read")),
    ]
    lines = [text for _, text in expanded_lines(make_snapshot(gpus=1, processes=processes), 100)]
    assert "ollama 8.8" in lines[1]
    assert [line.split("  ")[3].strip() for line in lines[2:]] == ["├ unknown user", "└ jo"]


def test_processes_without_a_card_are_told_once_and_many_are_counted() -> None:
    strays = [trainer(pid=5, gpu_uuid=Unknown("several cards"))]
    lines = [text for _, text in expanded_lines(make_snapshot(processes=strays), 180)]
    assert lines[-1].endswith("train.py --lr 3e-4 on an unknown GPU")
    many = [trainer(0, pid=100 + each, gib=each, user=f"u{each % 3}") for each in range(1, 12)]
    lines = [text for _, text in expanded_lines(make_snapshot(gpus=1, processes=many), 100)]
    assert len(lines) == 2 + 6
    assert lines[-1].strip() == "└ 6 more processes: u0, u1, u2"


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (45, '⚑ maintenance "fan swap" mia, 2h, 5m overdue'),
        (36, '⚑ maintenance "fan swap", 5m overdue'),
        (34, '⚑ maintenance "fan s…", 5m overdue'),
        (33, "⚑ maintenance, 5m overdue"),
        (20, "⚑ maintenance"),
    ],
)
def test_a_flag_says_as_much_as_fits(width: int, text: str) -> None:
    snapshot = make_snapshot(maintenance=MaintenanceFlag("fan swap", "mia", NOW - 7200, NOW - 300))
    cells, is_all = fitting_flags(snapshot, NOW, UNICODE, width)
    assert text_of(cells) == text
    assert is_all == (width == 45)


def test_an_expanded_machine_says_all_of_its_flags() -> None:
    snapshot = make_snapshot(gpus=0, maintenance=MaintenanceFlag("fan swap", "mia", NOW - 7200, NOW - 300))
    assert expanded_lines(snapshot, 80)[-1] == ("flag", '      ⚑ maintenance "fan swap" mia, 2h, 5m overdue')
    assert [kind for kind, _ in expanded_lines(snapshot, 300)] == ["machine"]
    collapsed = machine_rows(snapshot, NOW, make_layout(80))
    assert [(cell.text, cell.tone) for cell in collapsed[0].cells if "⚑" in cell.text] == [(" ⚑", "warn")]


def test_without_a_history_there_is_no_trend() -> None:
    assert make_layout(200).has("trend")
    assert not make_layout(200, has_trend=False).has("trend")
    row = machine_rows(make_snapshot(), NOW, make_layout(200))[0]
    assert "▁" not in text_of(row.cells)


def test_trends_have_the_tones_of_the_thresholds_and_of_old_news() -> None:
    def tones(age_s: float, utilisation: tuple[float, float] = (10.0, 75.0)) -> list[str]:
        layout = make_layout(120, thresholds=Thresholds(utilisation=utilisation))
        rows = machine_rows(make_snapshot(age_s=age_s), NOW, layout, is_expanded=True, trend_of=rising)
        return [cell.tone for cell in rows[1].cells if cell.text.strip() and cell.text[0] in "▁▂▃▄▅▆▇"]

    assert tones(1) == ["bar_bad", "bar_warn", "bar_good"]
    assert tones(1, (101.0, 102.0)) == ["bar_good"]
    assert set(tones(60)) == {"bar_dim"}


@pytest.mark.parametrize(("width", "name"), [(80, "RTX 4090"), (40, "4090")])
def test_a_card_keeps_its_model_where_the_column_is_narrow(width: int, name: str) -> None:
    rows = machine_rows(make_snapshot(gpus=1), NOW, make_layout(width), is_expanded=True)
    assert text_of(rows[1].cells).startswith(f"    0 {name} ")
