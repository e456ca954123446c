"""Bars, rows and sentences of the Plan screen, without a screen."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fleettui.model.placement import Assignment, PlanGpu, PlanNode, PlanRole
from fleettui.model.placement_answers import NodeLoss, PlanChange, PlanDiff, RoleLoss
from fleettui.view.cells import text_of, width_of
from fleettui.view.glyphs import ASCII, UNICODE
from fleettui.view.plan_answers import change_rows, loss_rows
from fleettui.view.plan_bars import Part, stacked_bar
from fleettui.view.plan_rows import GpuState, gpu_row, plan_header, plan_layout

NODE = PlanNode("ada", 64, (PlanGpu(0, "NVIDIA GeForce RTX 4090", 24), PlanGpu(1, "Tesla T4", 15)))


def bar(*parts: tuple[str, float], memory: int = 24, width: int = 26) -> str:
    return text_of(stacked_bar([Part(name, f"{name} {gb:g}", gb) for name, gb in parts], memory, width).cells)


def test_a_bar_is_in_proportion_and_the_name_stands_where_it_has_room() -> None:
    assert bar(("chat", 12)) == "▕████████████ chat 12    ▏"
    assert bar(("chat", 24)) == "▕█ chat 24 ██████████████▏"
    assert bar(("embed", 4), ("tts", 4)) == "▕████▏███ embed 4 tts 4  ▏"
    assert bar() == "▕                        ▏"


def test_a_role_that_needs_nothing_and_one_of_many_small_ones_have_a_column_each() -> None:
    assert bar(("any", 0)) == "▕█ any 0                 ▏"
    found = stacked_bar([Part(f"r{n}", f"r{n}", 0.1) for n in range(9)], 24, 26)
    assert width_of(found.cells) == 26
    assert text_of(found.cells).count("█") == 9
    assert found.unnamed == tuple(f"r{n}" for n in range(9)), "no room for nine names"


@given(
    st.lists(st.tuples(st.text(max_size=12), st.floats(0, 900, allow_nan=False)), max_size=30),
    st.integers(0, 200),
    st.integers(0, 80),
    st.sampled_from([UNICODE, ASCII]),
)
@settings(max_examples=150, deadline=None)
def test_whatever_is_planned_the_bar_is_as_wide_as_asked(parts, memory, width, glyphs) -> None:  # type: ignore[no-untyped-def]
    found = stacked_bar([Part(name, f"{name} {gb}", gb) for name, gb in parts], memory, width, glyphs)
    assert width_of(found.cells) == max(width, 2)


def test_lines_are_as_wide_as_the_screen_at_every_width() -> None:
    mine = (Assignment("chat", 0, "ada", (0,), models_fitting=("qwen", "llama")),)
    roles = {"chat": PlanRole("chat", min_vram_gb=20)}
    for width in range(10, 220, 6):
        layout = plan_layout(width, [NODE])
        for state in (GpuState(2048), GpuState(2048, "maintenance"), GpuState(2048, "off (what if)", True)):
            row = gpu_row(NODE, NODE.gpus[0], mine, roles, state, layout)
            assert width_of(row.cells) == width
            text = text_of(row.cells)
            assert not 40 <= width < 76 or text[:-1].rstrip().endswith("  2.0"), (
                "a scrollbar covers no figure"
            )
        assert width_of(plan_header(layout)) <= width


def test_ascii_has_no_other_signs() -> None:
    layout = plan_layout(120, [NODE], ASCII)
    mine = (Assignment("chat", 0, "ada", (0,)), Assignment("tts", 0, "ada", (0,), "chat"))
    row = gpu_row(NODE, NODE.gpus[0], mine, {}, GpuState(2048, is_offline=True), layout)
    rows = [row, *loss_rows([NodeLoss("ada", mine, (RoleLoss("chat", 1),), 2)], layout)]
    change = PlanChange("move", "chat", 0, mine[0], Assignment("chat", 0, "bora", (1,)), "qwen", 9.0, 8.0)
    rows += change_rows(PlanDiff((change,), 9.0, 8.0), layout)
    assert all(text_of(line.cells).isascii() for line in rows)
    assert "ada/0 -> bora/1" in "".join(text_of(line.cells) for line in rows)
