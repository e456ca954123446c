"""Every declared action, at every place it is bound: by each of its keys, mouse, palette and `:` name.

A row for each says how to come where it applies and what is to be seen afterwards. An action, or a place of
one, without a row fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from action_rig import MakeRig, Rig, make_picker, rig_maker, typed

from fleettui.model.approval import COMPARE_LINE
from fleettui.tui.action import Action
from fleettui.tui.actions import ACTIONS, BY_ID
from fleettui.tui.widgets.prompt import Prompt

pytestmark = pytest.mark.usefixtures("quick_waiting")

Seen = Callable[[Rig], Any]
Mouse = Callable[[Rig], Awaitable[None]]


class Place(NamedTuple):
    """Where actions apply."""

    keys: tuple[str, ...]
    """From the Fleet screen to there."""
    is_there: Callable[[Rig], bool]


PLACES = {
    "everywhere": Place((), lambda rig: rig.screen == "fleet" and not rig.asked),
    "fleet": Place((), lambda rig: rig.screen == "fleet" and not rig.asked),
    "models": Place(("2",), lambda rig: rig.screen == "models" and not rig.asked),
    "events": Place(("5",), lambda rig: rig.screen == "events" and not rig.asked),
    "route": Place(
        ("colon", *typed("route llama3.1:70b"), "enter"), lambda rig: rig.screen == "route" and not rig.asked
    ),
    "plan": Place(("4",), lambda rig: rig.screen == "plan" and not rig.asked),
    "drain": Place(("escape", "g", "d"), lambda rig: rig.screen == "drain" and not rig.asked),
    "machine": Place(("enter",), lambda rig: rig.screen == "machine hardware"),
    "timeline": Place(
        ("enter", "shift+tab", "shift+tab"), lambda rig: rig.screen == "machine timeline" and not rig.asked
    ),
    "logs": Place(("l",), lambda rig: rig.screen == "machine logs"),
    "raw": Place(("enter", "shift+tab"), lambda rig: rig.screen == "machine raw"),
    "find": Place(("enter", "shift+tab"), lambda rig: rig.screen == "machine raw" and not rig.asked),
    "lines": Place((), lambda rig: rig.screen == "fleet"),
    "prompt": Place(("colon",), lambda rig: rig.screen == "fleet" and bool(rig.asked)),
    "help": Place(("question_mark",), lambda rig: rig.screen == "help"),
    "menu": Place(("o",), lambda rig: rig.screen == "menu"),
    "pending": Place(("a",), lambda rig: rig.screen == "pending" and not rig.asked),
    "pick": Place((), lambda rig: True),
}


class Row(NamedTuple):
    """One action at one place."""

    id: str
    place: str
    seen: Seen
    """What an operator looks at."""
    holds: Callable[[Any, Any], bool]
    """Of what was seen before and after."""
    before: tuple[str, ...] = ()
    """Keys that make it apply."""
    mouse: Mouse | None = None
    """Its way beside the footer."""
    ends: bool = False
    """The app is gone afterwards."""


def changed(before: Any, after: Any) -> bool:
    return bool(before != after)


def grew(before: Any, after: Any) -> bool:
    return bool(after > before)


def fell(before: Any, after: Any) -> bool:
    return bool(after < before)


def becomes(wanted: Any) -> Callable[[Any, Any], bool]:
    """It was something else."""
    return lambda before, after: before != wanted and after == wanted


def shows(text: str) -> dict[str, Any]:
    """The text comes on the screen."""
    return {"seen": lambda rig: text in rig.text, "holds": becomes(True)}


def drops(text: str) -> dict[str, Any]:
    """The text goes from the screen."""
    return {"seen": lambda rig: text in rig.text, "holds": becomes(False)}


def switches(text: str) -> dict[str, Any]:
    """The text comes, or goes when it was there."""
    return {"seen": lambda rig: text in rig.text, "holds": changed}


def goes_to(screen: str) -> dict[str, Any]:
    return {"seen": lambda rig: rig.screen, "holds": becomes(screen)}


def asks(label: str) -> dict[str, Any]:
    """A line to type in is there."""
    return {"seen": lambda rig: rig.asked, "holds": becomes(label)}


def copies(*parts: str) -> dict[str, Any]:
    """The clipboard has it."""
    return {
        "seen": lambda rig: rig.app.clipboard,
        "holds": lambda before, after: before != after and all(part in after for part in parts),
    }


def on(name: str, x: int, y: int = 0, **how: Any) -> Mouse:
    """A click there; counted from the right where `x` is negative."""

    async def click(rig: Rig) -> None:
        widget = rig.app.screen.query_one(f"#{name}")
        await rig.click(widget, x if x >= 0 else widget.size.width + x, y, **how)

    return click


def on_tab(title: str) -> Mouse:
    async def click(rig: Rig) -> None:
        await rig.click("#tabs", rig.block("tabs").index(title) + 1)

    return click


CURSOR: Seen = lambda rig: rig.cursor  # noqa: E731
ROWS_SHOWN: Seen = lambda rig: rig.rows  # noqa: E731
HEADER: Seen = lambda rig: rig.header  # noqa: E731
FLAG: Seen = lambda rig: "⚑" in rig.row("ada")  # noqa: E731
ASKED_OF_TRUST: Seen = lambda rig: list(rig.trust.asked)  # noqa: E731
TO_ADA, TO_KIOSK = ("g",), ("G", "k")
FILTERED = (*typed("/phi"), "enter")
NONE_OF_THEM = (*typed("/kind:back"), "enter")
FOUND = ("slash", "ctrl+u", *typed("gpu"), "enter")
HISTORY = ("escape", *typed(":top"), "escape", *typed(":help"), "enter", "escape", "colon")
"""One line was run."""

OUT = ("G",)
NEAREST = ("slash", *typed("llama3.1:71b"), "enter", "g")
"""A name that nobody knows: those that are most like it are there to choose from."""


def query(field: str) -> Seen:
    """An option of the question."""
    return lambda rig: getattr(rig.app.screen.query_now, field)


def chip(words: str) -> Mouse:
    async def click(rig: Rig) -> None:
        await rig.click("#options", rig.block("options").index(words) + 1)

    return click


AT_ADA = ("escape", "escape", "g", "d")
OPTIONS: Seen = lambda rig: rig.app.screen.options  # noqa: E731
ASKED_OF_DESK: Seen = lambda rig: len(rig.desk.asked)  # noqa: E731


def at(name: str) -> tuple[str, ...]:
    """From a Drain screen to that of another machine."""
    return ("escape", "escape", *typed(f"/{name}"), "enter", "d")


ROWS = (
    Row("quit", "everywhere", lambda rig: rig.app.return_code, becomes(0), ends=True),
    Row("help", "everywhere", **shows("Esc closes, Ctrl+P finds every command")),
    Row("clear_filter", "fleet", ROWS_SHOWN, grew, (*typed("/spark"), "enter")),
    Row("clear_filter", "models", ROWS_SHOWN, grew, FILTERED),
    Row("clear_filter", "timeline", ROWS_SHOWN, grew, NONE_OF_THEM),
    Row("filter", "fleet", **asks("/"), mouse=on("shown", 5)),
    Row("filter", "models", **asks("/"), mouse=on("shown", 5)),
    Row("filter", "timeline", **asks("/")),
    Row("sort", "fleet", **shows("Sort by")),
    Row("sort", "models", **shows("Sort models by")),
    Row("open", "fleet", **goes_to("machine hardware"), before=TO_ADA, mouse=on("fleet", 30, 1, times=2)),
    Row("open", "models", CURSOR, changed, TO_ADA, mouse=on("models", 8, 1, times=2)),
    Row("open", "events", **goes_to("machine hardware"), mouse=on("events", 30, 2, times=2)),
    Row("back", "machine", **goes_to("fleet")),
    Row("expand", "fleet", ROWS_SHOWN, changed, TO_ADA, mouse=on("fleet", 1, 1)),
    Row("expand", "models", ROWS_SHOWN, changed, TO_ADA, mouse=on("models", 1, 1)),
    Row("expand_all", "fleet", ROWS_SHOWN, changed),
    Row("expand_all", "models", ROWS_SHOWN, changed),
    Row("tag", "fleet", **switches("1 tagged"), before=TO_ADA, mouse=on("fleet", 30, 1, control=True)),
    Row("tag_all", "fleet", **switches("11 tagged")),
    Row("untag_all", "fleet", **drops("1 tagged"), before=("space",)),
    *(
        Row(id, place, HEADER, changed, mouse=on(place, x))
        for place in ("fleet", "models")
        for id, x in (("sort_right", 16), ("sort_left", 5), ("reverse", 5))
    ),
    Row("copy_address", "everywhere", **copies("ada.example.net:11434"), before=TO_ADA),
    Row("next_machine", "machine", lambda rig: rig.block("title").split()[0], changed),
    Row("previous_machine", "machine", lambda rig: rig.block("title").split()[0], changed),
    Row("next_tab", "machine", **shows("Loaded models"), mouse=on_tab("Models")),
    Row("previous_tab", "machine", **shows('"name": "ada"'), mouse=on_tab("Raw")),
    Row("logs", "everywhere", **shows("last 15 minutes"), before=TO_ADA),
    Row("maintenance", "everywhere", FLAG, changed, TO_ADA),
    Row("maintenance_reason", "everywhere", **asks("maintenance of ada:"), before=TO_ADA),
    Row("undo", "everywhere", FLAG, changed, (*TO_ADA, "m")),
    Row("shell", "everywhere", lambda rig: _runs(rig.shells.trace), grew, TO_ADA),
    Row("pending", "everywhere", **goes_to("pending"), mouse=on("footer", -3)),
    Row("approve", "pending", **shows("Then Enter approves"), before=TO_KIOSK),
    Row("confirm", "pending", ASKED_OF_TRUST, grew, (*TO_KIOSK, "a")),
    Row("reject", "pending", **shows("Enter rejects"), before=TO_KIOSK),
    Row("copy_line", "pending", **copies(COMPARE_LINE)),
    Row("read_key", "pending", ASKED_OF_TRUST, grew, TO_KIOSK),
    Row("refresh", "everywhere", lambda rig: len(rig.service.polled), grew),
    Row("refresh", "logs", lambda rig: rig.app.screen.pane.reader.reading, grew),  # type: ignore[attr-defined]
    Row("pause", "everywhere", lambda rig: "paused" in rig.block("summary"), changed),
    Row("faster", "everywhere", lambda rig: rig.service.interval_s, fell, ("minus", "minus")),
    Row("slower", "everywhere", lambda rig: rig.block("summary").split()[-2], changed, ("plus", "plus")),
    Row("redraw", "everywhere", lambda rig: rig.rewritten, grew),
    Row("theme", "everywhere", **shows("Enter keeps, Esc goes back")),
    Row("command", "everywhere", **asks(":")),
    Row("command", "pending", **asks(":")),
    Row("show_fleet", "everywhere", **goes_to("fleet"), before=("2",)),
    Row("show_models", "everywhere", **goes_to("models")),
    Row("show_events", "everywhere", **goes_to("events")),
    Row("show_route", "everywhere", **goes_to("route")),
    Row("show_plan", "everywhere", **goes_to("plan")),
    Row("route", "everywhere", **goes_to("route"), before=TO_ADA),
    Row("take", "route", **copies("ada.example.net:11434"), before=("g",)),
    Row("open", "route", **goes_to("machine hardware"), before=OUT, mouse=on("ranking", 20, 12, times=2)),
    Row("choose_model", "route", lambda rig: rig.block("title").split()[1], becomes("llama3.1:70b"), NEAREST),
    Row("ask_model", "route", **asks("model:"), mouse=on("title", 3)),
    Row("back", "route", **goes_to("fleet")),
    Row("warm_up", "route", **asks("load llama3.1:70b on spark?"), before=("g", "j")),
    Row("stop_waiting", "route", **drops("loading llama3.1:70b on spark"), before=("g", "j", "w", "enter")),
    Row("ask_context", "route", **asks("context:"), mouse=chip("any context")),
    Row("ask_free", "route", **asks("min free VRAM:"), mouse=chip("any free")),
    Row("toggle_loaded", "route", query("require_loaded"), changed, mouse=chip("loaded only")),
    Row("toggle_idle", "route", query("avoid_busy"), changed, mouse=chip("avoid busy")),
    Row("toggle_pull", "route", query("allow_pull"), changed, mouse=chip("allow pull")),
    Row("look_into", "route", **goes_to("machine hardware"), before=("g",)),
    Row("open", "plan", **goes_to("machine hardware"), before=("g",), mouse=on("plan", 20, 1, times=2)),
    Row("clear_what_if", "plan", **drops("what if:"), before=("escape", "g", "w"), mouse=chip("what if")),
    Row("toggle_gpu", "plan", **switches("without ada/0"), before=("g",)),
    Row("toggle_machine", "plan", **switches("what if: without ada"), before=("g",)),
    Row("toggle_optimal", "plan", lambda rig: rig.app.screen.is_optimal, changed, mouse=chip("optimal")),  # type: ignore[attr-defined]
    Row("show_changes", "plan", lambda rig: rig.app.screen.view_now, changed, mouse=chip("changes from")),  # type: ignore[attr-defined]
    Row("show_losses", "plan", lambda rig: rig.app.screen.view_now, changed, mouse=chip("loss of")),  # type: ignore[attr-defined]
    Row("export_plan", "plan", **asks("write the plan to:")),
    Row("drain", "everywhere", **goes_to("drain"), before=("escape", *TO_ADA)),
    Row("undrain", "everywhere", **asks("undrain cleo?"), before=("escape", *typed("/cleo"), "enter")),
    Row("drain_start", "drain", **asks("why drain ada?"), before=AT_ADA),
    Row("drain_allow", "drain", OPTIONS, changed, before=at("bora")),
    Row("drain_cancel", "drain", ASKED_OF_DESK, grew, before=at("cleo")),
    Row("drain_abort", "drain", ASKED_OF_DESK, grew, before=at("dora")),
    Row("drain_take_over", "drain", ASKED_OF_DESK, grew, before=at("pve52")),
    Row("drain_skip", "drain", ASKED_OF_DESK, grew, before=at("cleo")),
    *(
        Row(id, "drain", OPTIONS, changed, AT_ADA, mouse=chip(words))
        for id, words in (
            ("toggle_degraded", "accept degraded"),
            ("toggle_fetch", "allow pull"),
            ("toggle_same_context", "same context"),
        )
    ),
    Row("drain_journal", "drain", **switches("keep_alive"), before=at("cleo")),
    Row("open", "drain", **goes_to("machine hardware"), before=at("cleo"), mouse=on("drain", 20, 1, times=2)),
    Row("back", "drain", **goes_to("fleet"), before=at("cleo")),
    Row("follow", "timeline", **switches("following")),
    Row("follow", "logs", **switches("following")),
    Row("find", "find", **asks("/")),
    Row("find_next", "find", CURSOR, changed, FOUND),
    Row("find_previous", "find", CURSOR, changed, FOUND),
    Row("clear_find", "find", **drops("/gpu"), before=FOUND),
    Row("copy_document", "raw", **copies("{", '"name": "ada"')),
    Row("cursor_down", "lines", CURSOR, becomes(1), ("g",), mouse=on("fleet", 30, 2)),
    Row("cursor_up", "lines", CURSOR, becomes(1), ("g", "j", "j"), mouse=on("fleet", 30, 2)),
    Row("page_down", "lines", CURSOR, grew, ("g",), mouse=on("fleet", 30, 20)),
    Row("page_up", "lines", CURSOR, fell, ("G",), mouse=on("fleet", 30, 4)),
    Row("top", "lines", CURSOR, becomes(0), ("j",), mouse=on("fleet", 30, 1)),
    Row("bottom", "lines", lambda rig: rig.rows - rig.cursor, becomes(1), ("g",)),
    Row("close", "help", **goes_to("fleet")),
    Row("choose", "menu", HEADER, changed, ("j",), mouse=on("choices", 2, 2, times=2)),
    Row("leave", "menu", **goes_to("fleet")),
    Row("leave", "pending", **goes_to("fleet")),
    Row("cancel", "prompt", **asks("")),
    Row("complete", "prompt", lambda rig: rig.line, becomes("details"), typed("de")),
    Row("earlier", "prompt", lambda rig: rig.line, becomes("help"), HISTORY),
    Row("later", "prompt", lambda rig: rig.line, becomes(""), (*HISTORY, "up")),
    Row("pick", "pick", lambda rig: rig.app.picked.answer, changed, ends=True),  # type: ignore[attr-defined]
    Row("pick_leave", "pick", lambda rig: rig.app._exit, becomes(True), ends=True),
    Row(
        "pick_up", "pick", lambda rig: rig.app.view.cursor, fell, ("down", "down"), mouse=on("choices", 5, 1)
    ),  # type: ignore[attr-defined]
    Row("pick_down", "pick", lambda rig: rig.app.view.cursor, grew, ("up",), mouse=on("choices", 5, 2)),  # type: ignore[attr-defined]
    Row("pick_page_up", "pick", lambda rig: rig.app.view.cursor, fell, ("pagedown",), on("choices", 5, 1)),  # type: ignore[attr-defined]
    Row("pick_page_down", "pick", lambda rig: rig.app.view.cursor, grew, ("pageup",), on("choices", 5, 3)),  # type: ignore[attr-defined]
    Row("pick_refresh", "pick", lambda rig: rig.source.polls, grew),
)

WITHOUT_MOUSE = {
    ("expand_all", "fleet"),
    ("expand_all", "models"),
    ("tag_all", "fleet"),
    ("untag_all", "fleet"),
    ("bottom", "lines"),
    ("close", "help"),
    ("leave", "menu"),
    ("leave", "pending"),
    ("maintenance_reason", "everywhere"),
    ("undo", "everywhere"),
    ("redraw", "everywhere"),
    ("theme", "everywhere"),
    ("find_previous", "find"),
    ("cancel", "prompt"),
    ("complete", "prompt"),
    ("earlier", "prompt"),
    ("later", "prompt"),
}
"""By key, palette and name alone."""


def _runs(trace: Path) -> int:
    return len(trace.read_text().splitlines()) if trace.exists() else 0


def test_every_action_has_a_row_at_every_place() -> None:
    declared = [(action.id, place) for action in ACTIONS for place in action.places]
    assert {(row.id, row.place) for row in ROWS} == set(declared)
    assert len(ROWS) == len(declared), "no row stands twice"


# The ways


class Way(NamedTuple):
    """One way to run the action of a row."""

    name: str
    run: Mouse


def ways_of(rig: Rig, row: Row) -> Iterator[Way]:
    """By key, mouse, palette and name, as far as there are such: what is on the screen says so."""
    action = BY_ID[row.id]
    for key in filter(None, action.keys.split(",")):
        yield Way(f"key {key}", lambda rig, key=key: rig.press(key))  # type: ignore[misc]
    if action.rank and rig.footer is not None:
        yield Way("footer", lambda rig: click_footer(rig, action))
    if row.mouse is not None:
        yield Way("mouse", row.mouse)
    if action.is_command:
        yield Way("palette", lambda rig: take_from_palette(rig, action))
        if rig.app.screen.query(Prompt):
            yield Way("name", lambda rig: type_name(rig, action))


async def click_footer(rig: Rig, action: Action) -> None:
    offer, footer = rig.offer(action.id), rig.footer
    assert offer is not None, "it applies"
    assert footer is not None
    words = f" {offer.label} {action.title}  "
    assert words in footer.text + "  ", footer.text
    await rig.click(footer, (footer.text + "  ").index(words) + len(offer.label) + 2)


async def take_from_palette(rig: Rig, action: Action) -> None:
    commands = {command.help: command for command in rig.app.get_system_commands(rig.app.screen)}
    assert commands[action.description].title == action.title.capitalize()
    commands[action.description].callback()
    await rig.settle()


async def type_name(rig: Rig, action: Action) -> None:
    await rig.pilot.press("colon")
    rig.app.screen.query_one(Prompt).input.value = action.name
    await rig.press("enter")


async def come_to(rig: Rig, place: Place) -> None:
    if not place.is_there(rig):
        await rig.home()
        await rig.press(*place.keys)
    assert place.is_there(rig), rig.text


async def check(rig: Rig, row: Row, way: Way) -> None:
    await come_to(rig, PLACES[row.place])
    if row.before:
        await rig.press(*row.before)
    rig.app.copy_to_clipboard("")
    before = row.seen(rig)
    await way.run(rig)
    after = row.seen(rig)
    what = f"{row.id} at {row.place} by {way.name}: {before!r} → {after!r}"
    assert row.holds(before, after), f"{what}\n{rig.text if rig.app.is_running else ''}"


def portions() -> Iterator[Any]:
    """Rows of a place that share an app."""
    for place in PLACES:
        rows = [row for row in ROWS if row.place == place]
        for start in range(0, len(rows), 4):
            some = rows[start : start + 4]
            yield pytest.param(place, some, id=f"{place}: {', '.join(row.id for row in some)}")


@pytest.mark.parametrize(("place", "rows"), portions())
async def test_every_way_runs_it(
    place: str, rows: list[Row], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make: MakeRig = make_picker if place == "pick" else rig_maker(tmp_path, monkeypatch)
    async with make() as rig:
        ways: dict[str, list[Way]] = {}
        for row in rows:
            await come_to(rig, PLACES[place])
            ways[row.id] = list(ways_of(rig, row))
            has_mouse = not {"footer", "mouse"}.isdisjoint(way.name for way in ways[row.id])
            assert has_mouse == ((row.id, place) not in WITHOUT_MOUSE), row.id
            for way in ways[row.id] if not row.ends else ():
                await check(rig, row, way)
    for row in (row for row in rows if row.ends):
        for way in ways[row.id]:
            async with make() as rig:
                await check(rig, row, way)


@pytest.mark.parametrize(("place", "id"), [("fleet", "tag_all"), ("raw", "copy_document"), ("help", "close")])
async def test_the_palette_as_it_is_used(
    place: str, id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest goes by what Textual's palette is given."""
    row = next(row for row in ROWS if (row.id, row.place) == (id, place))

    async def take(rig: Rig) -> None:
        await rig.press("ctrl+p")
        await rig.press(*typed(BY_ID[id].title.lower()))
        await rig.press("enter")

    async with rig_maker(tmp_path, monkeypatch)() as rig:
        await check(rig, row, Way("palette", take))
