"""What stands on every screen: text and the name of each run's tone, in three sizes, on four fleets.

A golden is the same under every theme: colours are looked at apart, as what the theme makes of the tones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from drain_desk import COPIES_AT_WORK, FakeDrainDesk, state_of
from rich.style import Style
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from test_machine_panes import FakeLog
from test_machine_pictures import hour_of, with_differences
from test_pending_panel import GINA, REJECTED, FakeTrust
from test_pick import FakeSource
from textual.app import App
from textual.pilot import Pilot
from tui_fleet import NOW, PROBLEM, Clock, FakeService, fleet, machine, sample_machines

from fleettui.fleet.machine_log import LogUnavailable
from fleettui.model.catalog import Catalog, CatalogModel
from fleettui.model.drain import DrainOptions
from fleettui.model.event import Event
from fleettui.model.placement import PlanRole
from fleettui.model.route import RouteQuery
from fleettui.model.snapshot import MachineSnapshot
from fleettui.tui import screens
from fleettui.tui.app import FleetApp
from fleettui.tui.pick.app import PickApp
from fleettui.tui.pick.question import PickQuestion
from fleettui.tui.port import Look
from fleettui.tui.screens.machine.tabs import TABS
from fleettui.tui.themes import DARK, LIGHT
from fleettui.tui.themes.own import COLORBLIND_DARK
from fleettui.tui.tones import CURSOR_CLASS, HEADER_CLASS
from fleettui.tui.widgets.painting import Painting

pytestmark = pytest.mark.usefixtures("quick_waiting")

SIZES = ((80, 24), (120, 40), (200, 60))
OTHER_THEMES = (LIGHT, COLORBLIND_DARK)
HOUR = 3600.0
HAPPENED = (
    Event(NOW - 30 * HOUR, "pve52", "trust", "good", "host key ED25519 approved", {}, "mia@jump"),
    Event(NOW - 3 * HOUR, "ada", "loaded", "note", "llama3.1:8b loaded (9.4 GiB)", {"model": "llama3.1:8b"}),
    Event(NOW - 2 * HOUR, "cleo", "maintenance", "note", 'maintenance on: "fan swap"', {}, "mia@jump"),
    Event(NOW - 6000, "bora", "health", "warn", "healthy → degraded: GPU 1 is declared and not there"),
    Event(NOW - 3600, "dora", "engine_up", "good", "ollama answers again", count=3, last_at=NOW - 3000),
    Event(NOW - 240, "pve52", "offline", "bad", "offline: no answer (timeout)", {"to": "offline"}),
)


TO_PLAN = Catalog(
    (
        CatalogModel("llama3.1-70b", vram_gib=40.5, names=(("ollama", ("llama3.1:70b",)),)),
        CatalogModel("mixtral-8x22b", vram_gib=74.0, names=(("ollama", ("mixtral:8x22b",)),)),
        CatalogModel("qwen2.5-14b", vram_gib=9.0),
        CatalogModel("bge-m3", "embedding", vram_gib=1.4),
    ),
    file="catalog/models.yaml",
    roles=(
        PlanRole("llm-main", min_vram_gb=40, prefer="largest", count=2, slots=8, priority=10),
        PlanRole("llm-small", min_vram_gb=10, count=3, priority=20, position=1),
        PlanRole("embed", min_vram_gb=2, min_ram_gb=8, cpu_fallback=True, priority=30, position=2),
        PlanRole("rerank", min_vram_gb=2, share_with="embed", priority=40, position=3),
        PlanRole("summary", gpu=False, min_ram_gb=16, priority=50, position=4),
        PlanRole("huge", min_vram_gb=500, priority=60, position=5),
        PlanRole("someday", count=0, position=6),
    ),
    roles_file="catalog/roles.yaml",
)
"""What a Plan screen has to place."""


class Fleet(NamedTuple):
    """Machines and what happened to them."""

    machines: tuple[MachineSnapshot, ...]
    name: str = "ada"
    """The machine whose page is looked at."""
    events: tuple[Event, ...] = ()
    is_broken: bool = False
    """Whatever is not a machine does not work either."""


def healthy() -> Fleet:
    others = [item for item in sample_machines() if item.name in {"app-host", "hopper", "spark"}]
    return Fleet((with_differences(), *others), events=HAPPENED)


def broken() -> Fleet:
    ill = [item for item in sample_machines() if item.health != "healthy" or item.trust != "approved"]
    machines = sorted((*ill, GINA, REJECTED), key=lambda item: item.name)
    return Fleet(tuple(machines), "dora", HAPPENED, is_broken=True)


def crowd() -> Fleet:
    """300 machines of every sort."""
    kinds = [item for item in sample_machines() if item.trust == "approved"]
    machines = []
    for number in range(300):
        kind, name = kinds[number * 7 % len(kinds)], f"rack-{number // 20:02}-{number % 20:02}"
        machines.append(replace(kind, machine=machine(name).machine, seq=number))
    events = tuple(replace(HAPPENED[number % 6], at=NOW - 20_000 + 60 * number) for number in range(300))
    return Fleet(tuple(machines), events=events)


FLEETS: dict[str, Callable[[], Fleet]] = {
    "healthy": healthy,
    "broken": broken,
    "empty": lambda: Fleet(()),
    "300": crowd,
}
SCREENS: dict[str, tuple[str, tuple[str, ...]]] = {
    "fleet": ("healthy broken empty 300", ()),
    "models": ("healthy broken empty 300", ("2", "x")),
    "events": ("healthy broken empty 300", ("5",)),
    "route": ("healthy broken empty 300", ("colon", *"route", "space", *"phi3", "colon", *"mini", "enter")),
    "plan": ("healthy broken empty 300", ("4",)),
    "plan what if": ("healthy", ("4", "j", "space")),
    "plan changes": ("healthy", ("4", "D")),
    "plan losses": ("healthy", ("4", "n")),
    "plan without roles": ("healthy", ("4",)),
    "drain": ("healthy", ("d",)),
    "drain confirm": ("healthy", ("d", "j", "space", "j", "space", "enter", *"fans", "enter")),
    "drain running": ("healthy", ("d",)),
    "drain journal": ("healthy", ("d", "v")),
    "drain blocked": ("healthy", ("d",)),
    "drain of several": ("healthy", ("space", "G", "space", "d")),
    "route models": ("healthy", ("t", *"ph")),
    "pending": ("broken empty", ("a",)),
    **{f"machine {tab.key}": ("healthy broken", ()) for tab in TABS},
    "filter": ("healthy", ("slash", *"free", "greater_than_sign", *"12")),
    "mistake": ("healthy", ("slash", *"fre", "greater_than_sign", *"12", "enter")),
    "command": ("healthy", ("colon", "p")),
    "help": ("healthy", ("question_mark",)),
    "help of a machine": ("healthy", ("enter", "question_mark")),
    "sort": ("healthy", ("o",)),
    "pick": ("healthy broken 300", ()),
    "pick a model": ("healthy broken 300", ()),
}
"""Which fleets it is looked at with, and the keys from the Fleet screen to there."""
CASES = [(screen, kind) for screen, (kinds, _) in SCREENS.items() for kind in kinds.split()]


# Text and tones


class TextFile(SingleFileSnapshotExtension):
    """A file of text for each."""

    _write_mode = WriteMode.TEXT
    _file_extension = "txt"


@pytest.fixture(autouse=True)
def _named_tones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each style that is painted says which tone it was made for."""
    style_of = Painting._style_of

    def named(self: Painting, tone: str, backdrop: str | None) -> Style:
        return _with_name(style_of(self, tone, backdrop), tone, backdrop or "")

    monkeypatch.setattr(Painting, "_style_of", named)


@cache
def _with_name(style: Style, tone: str, backdrop: str) -> Style:
    return style + Style.from_meta({"tone": tone, "backdrop": backdrop})


LETTERS = {
    "plain": "p", "strong": "s", "dim": "d", "faint": "f", "good": "g", "warn": "w", "bad": "b",
    "accent": "a", "title": "t", "key": "k", "match": "m", "unknown": "u", "bar_good": "G",
    "bar_warn": "W", "bar_bad": "B", "bar_dim": "D",
}  # fmt: skip
GROUNDS = {CURSOR_CLASS: ">", HEADER_CLASS: "="}


VARIABLES = {
    **{tone: tone.replace("_", "-") for tone in LETTERS if tone.startswith("bar")},
    **{tone: f"tone-{tone}" for tone in LETTERS if not tone.startswith("bar")},
    "bar_dim": "tone-faint", "title": "tone-dim", "key": "tone-accent", "match": "tone-warn",
    "unknown": "tone-dim",
}  # fmt: skip
"""The colour of each tone, as a theme names it."""


def look_at(app: App[Any]) -> tuple[str, set[tuple[str, str]]]:
    """The lines of the screen, below them for each line its tones with the columns that they take; and the
    tones that have another colour than the theme gives them."""
    texts, tones, wrong = [], [], set()
    colors = {tone: app.theme_variables[name].lower() for tone, name in VARIABLES.items()}
    for number, strip in enumerate(app.screen._compositor.render_strips()):
        texts.append(strip.text.rstrip())
        runs: list[tuple[str, int]] = []
        grounds: set[str] = set()
        for segment in strip:
            style = segment.style
            meta = {} if style is None else style.meta
            tone = meta.get("tone", "")
            if style is not None and style.color is not None and style.color.name != colors.get(tone):
                wrong |= {(tone, style.color.name)} if tone and segment.text.strip() else set()
            letter = LETTERS.get(tone, "-")
            grounds.add(GROUNDS.get(meta.get("backdrop", ""), ""))
            length = segment.cell_length + (runs.pop()[1] if runs and runs[-1][0] == letter else 0)
            runs.append((letter, length))
        ground = "".join(sorted(grounds))
        if ground or {letter for letter, _ in runs} - {"p", "-"}:
            tones.append(f"{number:2} {ground}" + " ".join(f"{length}{letter}" for letter, length in runs))
    return "\n".join((*texts, "-- tones", *tones)) + "\n", wrong


# Coming there


def make_app(screen: str, kind: Fleet, theme: str = DARK) -> App[Any]:
    snapshot = fleet(kind.machines, problems=(PROBLEM,) if kind.is_broken else ())
    if screen.startswith("plan") and not screen.endswith("without roles"):
        snapshot = replace(snapshot, catalog=TO_PLAN)
    if screen.startswith("pick"):
        question = PickQuestion(None if screen == "pick" else RouteQuery("llama3.1:70b"))
        return PickApp(FakeSource(snapshot), question, Look(theme=theme), clock=Clock())
    service = FakeService(snapshot)
    service.trust = FakeTrust()  # type: ignore[assignment]
    if screen.startswith("drain"):
        add_drains(service, screen)
    service.events.events = kind.events
    if kind.is_broken:
        service.notices = ("the state folder cannot be written: disk full",)
        service.events.error = "disk full"
    if screen == "machine hardware" and not kind.is_broken:
        service.history = hour_of(kind.machines[0])
    return FleetApp(service, Look(theme=theme), Clock())


def add_drains(service: FakeService, screen: str) -> None:
    """A desk, and what it did so far."""
    service.drains = desk = FakeDrainDesk(service)  # type: ignore[assignment]
    if screen in ("drain running", "drain journal"):
        desk.put("ada", *COPIES_AT_WORK)
    if screen == "drain blocked":
        desk.put(
            "ada", *COPIES_AT_WORK[:1], *COPIES_AT_WORK[-2:], options=DrainOptions(forced=("last_copy",))
        )
        state_of(desk, "ada", "blocked", "vllm qwen2-vl :8001 is still loaded, and nothing here may stop it")


async def settle(pilot: Pilot[Any]) -> None:
    await pilot.pause()
    pilot.app.painter.paint_now()  # type: ignore[attr-defined]
    await pilot.pause()


async def come_to(screen: str, kind: Fleet, pilot: Pilot[Any]) -> None:
    await settle(pilot)
    if screen.startswith("machine "):
        assert isinstance(pilot.app, FleetApp)
        pilot.app.open_machine(kind.name, screen.removeprefix("machine "))
        await settle(pilot)
        await pilot.app.workers.wait_for_complete()
    for key in SCREENS[screen][1]:
        await pilot.press(key)
        if screen.startswith("drain"):  # a line is there once it was planned
            await settle(pilot)
            await pilot.app.workers.wait_for_complete()
            await settle(pilot)
    await settle(pilot)
    for _ in range(
        2 if screen.startswith(("plan", "drain")) else 0
    ):  # of many machines it is worked out beside
        await pilot.app.workers.wait_for_complete()
        await settle(pilot)


def test_every_screen_is_looked_at() -> None:
    folders = {path.parent.name for path in Path(screens.__path__[0]).glob("*/screen.py")}
    assert folders == {screen.split()[0] for screen in SCREENS} & folders | {"menu"}, "a menu: sort"


@pytest.mark.parametrize(("screen", "kind"), CASES, ids=[f"{screen}, {kind}" for screen, kind in CASES])
async def test_screen(
    screen: str, kind: str, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, shown = FakeLog(monkeypatch), FLEETS[kind]()
    if shown.is_broken:
        log.error = LogUnavailable("this account may not read the system's journal", "let it: usermod there")
    golden = snapshot.use_extension(TextFile)
    app = make_app(screen, shown)
    async with app.run_test(size=SIZES[0]) as pilot:
        await come_to(screen, shown, pilot)
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await settle(pilot)
            seen, wrong = look_at(app)
            assert wrong == set()
            assert seen == golden(name=f"{size[0]}x{size[1]}")
        for theme in OTHER_THEMES:
            app.theme = theme
            await settle(pilot)
            assert look_at(app) == (seen, set()), theme
