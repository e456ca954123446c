"""What is written is what differs; the terminal shows the same as with all that Textual writes."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from random import Random

import pytest
from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from fleettui.tui.pens import PLAIN, Pen, change_pen
from fleettui.tui.screen_copy import _SINGLE, ScreenCopy
from little_terminal import LittleTerminal

WIDTH, HEIGHT = 40, 8
LOOKS = (
    "#d0d0d0 on #101418", "bold #ff5f5f on #101418", "#5fd75f on #101418", "dim #d0d0d0 on #101418",
    "#d0d0d0 on #203040", "bold #d0d0d0 on #203040", "reverse #d0d0d0 on #101418",
    "underline red on blue", "bold dim green", "default on default", "none",
)  # fmt: skip
STYLES = [Style.parse(look) for look in LOOKS]
CONSOLES = {
    ColorSystem.TRUECOLOR: Console(color_system="truecolor", force_terminal=True),
    ColorSystem.EIGHT_BIT: Console(color_system="256", force_terminal=True),
    ColorSystem.STANDARD: Console(color_system="standard", force_terminal=True),
}
WORDS = ("gpu", "  ", "█▌", "12.5", "⠿⣀", "up", "%", "─", "é")
WIDE = ("模型", "🚀", "e\u0301")


@pytest.fixture(autouse=True)
def fresh_styles(monkeypatch: pytest.MonkeyPatch) -> None:
    """A style keeps the codes of the first terminal that it was rendered for."""
    monkeypatch.setattr(sys.modules[__name__], "STYLES", [Style.parse(look).copy() for look in LOOKS])


def a_strip(random: Random, width: int, words: tuple[str, ...]) -> Strip:
    """So many cells of words in colours."""
    segments, room = [], width
    while room:
        word = random.choice(words)
        if cell_len(word) > room:
            word = " " * room
        segments.append(Segment(word, random.choice(STYLES)))
        room -= cell_len(word)
    return Strip(segments, width)


def a_full_update(random: Random, words: tuple[str, ...]) -> LayoutUpdate:
    return LayoutUpdate(
        [[a_strip(random, 10, words), a_strip(random, 30, words)] for _ in range(HEIGHT)],
        Region(0, 0, WIDTH, HEIGHT),
    )


def a_partial_update(random: Random, words: tuple[str, ...]) -> ChopsUpdate:
    """Some lines: all of them, or from the middle on."""
    cuts = [0, 10, 25, WIDTH]
    spans = [(y, random.choice((0, 10)), WIDTH) for y in sorted(random.sample(range(HEIGHT), 3))]
    chops: list[dict[int, Strip | None]] = [dict.fromkeys(cuts[:-1]) for _ in range(HEIGHT)]
    for y, x1, _ in spans:
        for start, end in pairwise(cuts):
            if start >= x1:
                chops[y][start] = a_strip(random, end - start, words)
    return ChopsUpdate(chops, spans, [cuts[1:] for _ in range(HEIGHT)])


@pytest.mark.parametrize("system", CONSOLES)
@pytest.mark.parametrize("words", [WORDS, WORDS + WIDE], ids=["single", "wide too"])
def test_the_terminal_shows_what_textual_wants(words: tuple[str, ...], system: ColorSystem) -> None:
    for seed in range(40):
        random = Random(seed)
        copy, usual, ours = ScreenCopy(), LittleTerminal(WIDTH, HEIGHT), LittleTerminal(WIDTH, HEIGHT)
        copy.resize(WIDTH, HEIGHT)
        sizes = [0, 0]
        for step in range(12):
            update = a_partial_update(random, words) if step else a_full_update(random, words)
            copy.take(update, system)
            text = update.render_segments(CONSOLES[system])
            usual.feed(text.encode())
            sizes[0] += len(text)
            if random.random() < 0.4:  # the terminal is ready now and then, and takes a part
                text = copy.changes(random.choice((None, 1, 100)))
                ours.feed(text.encode())
                sizes[1] += len(text)
        while copy.is_due:
            ours.feed(copy.changes(200).encode())
        assert ours.cells == usual.cells
        assert sizes[1] < sizes[0]


def table(*figures: int) -> LayoutUpdate:
    """A line for each figure."""
    lines = [
        [Strip([Segment(f"machine  {figure:3} %  ", STYLES[0]), Segment("up".ljust(23), STYLES[2])], WIDTH)]
        for figure in figures
    ]
    return LayoutUpdate(lines, Region(0, 0, WIDTH, len(figures)))


def test_only_the_cells_that_differ_are_written() -> None:
    copy = ScreenCopy()
    copy.resize(WIDTH, 3)
    copy.take(table(10, 20, 30), ColorSystem.TRUECOLOR)
    assert copy.changes().count("machine") == 3
    copy.take(table(10, 27, 30), ColorSystem.TRUECOLOR)
    text = copy.changes()
    assert re.sub(r"\x1b\[[\d;]*m", "", text) == "\x1b[2;12H7"
    copy.take(table(10, 27, 30), ColorSystem.TRUECOLOR)
    assert copy.changes() == ""


def test_what_was_overtaken_is_never_written() -> None:
    copy = ScreenCopy()
    copy.resize(WIDTH, 1)
    copy.take(table(10), ColorSystem.TRUECOLOR)
    copy.changes()
    for figure in range(11, 99):
        copy.take(table(figure), ColorSystem.TRUECOLOR)
    copy.take(table(10), ColorSystem.TRUECOLOR)
    assert copy.changes() == ""


def test_after_forgetting_or_in_another_size_all_is_written() -> None:
    copy = ScreenCopy()
    copy.resize(WIDTH, 3)
    copy.take(table(1, 2, 3), ColorSystem.TRUECOLOR)
    first = copy.changes()
    copy.forget()
    assert copy.changes() == first
    copy.resize(WIDTH, 4)
    copy.take(table(1, 2, 3, 4), ColorSystem.TRUECOLOR)
    assert copy.changes().count("machine") == 4


def test_with_a_limit_no_line_waits_for_ever() -> None:
    copy, seen = ScreenCopy(), LittleTerminal(WIDTH, 4)
    copy.resize(WIDTH, 4)
    for step in range(4):
        copy.take(table(step, step, step, step), ColorSystem.TRUECOLOR)
        seen.feed(copy.changes(1).encode())
    assert [line[9:12].strip() for line in seen.lines] == ["0", "1", "2", "3"]


def test_characters_counted_as_single_take_one_cell() -> None:
    single = [chr(code) for code in range(0x20, 0x3000) if _SINGLE.fullmatch(chr(code))]
    assert {cell_len(char) for char in single} == {1}
    assert set("█▁▂▃⠿⣿│─└●○▲▼…·→") <= set(single)


def test_an_attribute_that_goes_leaves_the_others() -> None:
    ground = "48;2;1;2;3"
    red, green = "38;2;200;0;0", "38;2;0;200;0"
    assert change_pen(Pen(("1",), red, ground), Pen((), red, ground)) == "\x1b[22m"
    assert change_pen(Pen((), red, ground), Pen((), green, ground)) == f"\x1b[{green}m"
    assert change_pen(Pen(("1", "2"), red, ground), Pen(("1",), red, ground)) == "\x1b[22;1m"
    assert change_pen(Pen(("1",), red, ground), PLAIN) == "\x1b[0m"
