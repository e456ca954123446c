"""Render the real dashboard on the demo fleet into screenshots/, as SVG and PNG: `make screenshots`.

The app, the service, the SSH connections and the engines' HTTP are the real ones. Only time is arranged:
the simulated fleet stands still but for one step (rates need two samples), the clock stops once all was
read, and the history gets an hour that nobody saw. Loopback ports and the temporary folder, the last things
that differ between runs, get fixed names.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any, cast

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text
from textual.pilot import Pilot

from fleettui.decide.routing import RouteQuery, decide_route
from fleettui.demo.launcher import DemoFleet
from fleettui.fleet.drain.desk import DrainDesk
from fleettui.fleet.history import FleetHistory
from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.net.connector import Connector
from fleettui.net.settings import ConnectorSettings
from fleettui.tui.app import FleetApp
from fleettui.tui.pick.app import PickApp
from fleettui.tui.pick.question import PickQuestion
from fleettui.tui.port import Look
from fleettui.tui.themes import DARK, LIGHT
from fleettui.tui.themes.own import COLORBLIND_DARK, CONTRAST
from fleettui.view.oneshot import status_lines
from fleettui.view.route_text import format_answer, route_lines
from picture_drain import PictureDesk
from picture_past import PastEvents, past_events, recall, untouched, with_newcomer

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "screenshots"
LIMIT_S = 30.0
SHOWN_AT = 1_796_047_392.0
"""Epoch seconds of 2026-11-30 14:03:12, which clocks of the pictures show."""
STATUS_WIDTH = 132
ROUTED_MODEL = "gpt-oss:120b"

# Rich lays cells out 12.2 px wide; Fira Code's advance is 1200 of 1950 units, so this size fills a cell
# exactly, also in rsvg-convert, which knows no textLength and drops blanks at the start of a text.
CELL_PX = 12.2
FONT_SIZE_PX = CELL_PX * 1950 / 1200
BLANK = "&#160;"
TEXT = re.compile(r'(<text class="[^"]*") x="([^"]*)" (y="[^"]*") textLength="[^"]*" ([^>]*>)([^<]*)</text>')
STRETCH = re.compile(f"((?:{BLANK})*)([\u2800-\u28ff]|(?:(?!{BLANK}{BLANK}|{BLANK}$|[\u2800-\u28ff]).)*)")
"""Blanks, then what follows up to two blanks or a last one. Each braille sign stands alone: few fonts for
terminals have them, and those of another are wider than a cell."""
RICH_GROUND = "#292929"
"""Window colour of Rich's SVG, around what the app painted."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: which screen, how large, in which colours."""

    name: str
    size: tuple[int, int]
    keys: tuple[str, ...] = ()
    """Pressed in this order before the picture is taken."""
    theme: str = DARK
    is_live: bool = False
    """Asks the machine something, so it is taken while they answer."""
    has_newcomer: bool = False
    """Two machines wait for the operator."""
    drained: str = ""
    """The machine whose drain is under way; `no`: drains are only previewed."""
    picked: str = ""
    """The model that `fleettui pick` is asked for; empty: it is the dashboard."""


PICKED_MODEL = "llama3.1:8b"
ROUTE = ("t", *"70b", "enter", "c", *"32k", "enter")
"""From the first machine to the ranking of a model, with a context."""

DORA = ("slash", *"dora", "enter", "d")
"""To what would become of a machine with copies of every sort."""

PICTURES = (
    Picture("fleet-80x24", (80, 24)),
    Picture("fleet-160x45", (160, 45)),
    Picture("fleet-200x60", (200, 60)),
    Picture("fleet-light-160x45", (160, 45), theme=LIGHT),
    Picture("fleet-contrast-160x45", (160, 45), theme=CONTRAST),
    Picture("fleet-colorblind-160x45", (160, 45), theme=COLORBLIND_DARK),
    Picture("machine-80x24", (80, 24), ("enter",)),
    Picture("machine-160x45", (160, 45), ("enter",)),
    Picture("models-80x24", (80, 24), ("2",)),
    Picture("models-160x45", (160, 45), ("2", "x")),
    Picture("machine-models-160x45", (160, 45), ("enter", "tab")),
    Picture("logs-160x45", (160, 45), ("j", "j", "l"), is_live=True),
    Picture("raw-160x45", (160, 45), ("enter", "shift+tab")),
    Picture("route-160x45", (160, 45), ROUTE),
    Picture("route-80x24", (80, 24), ROUTE),
    Picture("plan-160x45", (160, 45), ("4",)),
    Picture("plan-80x24", (80, 24), ("4",)),
    Picture("plan-what-if-160x45", (160, 45), ("4", "w")),
    Picture("drain-160x45", (160, 45), DORA, drained="no"),
    Picture("drain-80x24", (80, 24), DORA, drained="no"),
    Picture("drain-running-160x45", (160, 45), ("d",), drained="ada"),
    Picture("pick-120x40", (120, 40), ("down",), picked=PICKED_MODEL),
    Picture("events-160x45", (160, 45), ("5",)),
    Picture("events-80x24", (80, 24), ("5",)),
    Picture(
        "filter-120x40", (120, 40), ("full_stop", "full_stop", "slash", *"free", "greater_than_sign", *"24")
    ),
    Picture("pending-120x40", (120, 40), ("a", "j"), has_newcomer=True),
    Picture("help-80x24", (80, 24), ("question_mark",)),
)


class PicturePort:
    """The service as it was stopped, with a past."""

    def __init__(self, service: FleetService, snapshot: FleetSnapshot, now: float) -> None:
        self._service = service
        self.snapshot = snapshot
        self.is_paused = False
        self.is_settled = True
        self.events = PastEvents(past_events(service.snapshot, now))
        self.drains: DrainDesk | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._service, name)


class StoppableClock:
    """Epoch seconds that stand still from `stop` on."""

    def __init__(self) -> None:
        self._stopped_at: float | None = None

    def __call__(self) -> float:
        return time.time() if self._stopped_at is None else self._stopped_at

    def stop(self, at: float) -> None:
        self._stopped_at = at


async def wait_for(service: FleetService, is_reached: Callable[[FleetSnapshot], bool]) -> None:
    """Return with the first snapshot that has what is waited for."""
    reached = asyncio.Event()

    def look(snapshot: FleetSnapshot) -> None:
        if is_reached(snapshot):
            reached.set()

    unsubscribe = service.subscribe(look)
    look(service.snapshot)
    try:
        await asyncio.wait_for(reached.wait(), LIMIT_S)
    finally:
        unsubscribe()


def is_read(machine: MachineSnapshot) -> bool:
    """Every source has answered once, well or badly, or is not there."""
    return bool(machine.sources) and all(
        status.read_at is not None or status.state in ("error", "unsupported")
        for status in machine.sources.values()
    )


def is_read_since(machine: MachineSnapshot, moment: float) -> bool:
    """What is asked at every poll has answered after that moment."""
    each_time = [
        machine.sources[name] for name in ("cpu", "memory", "gpu", "ollama") if name in machine.sources
    ]
    return all(status.state != "ok" or (status.read_at or 0.0) >= moment for status in each_time)


def has_rates(machine: MachineSnapshot) -> bool:
    """Two samples lie apart in simulated time."""
    return machine.cpu is not None and not isinstance(machine.cpu.busy_percent, Unknown)


async def settle(service: FleetService, demo: DemoFleet, clock: StoppableClock) -> None:
    """Have everything read, rates over one simulated step."""
    await wait_for(service, lambda fleet: bool(fleet.machines) and all(map(is_read, fleet.machines)))
    service.set_paused(True)
    await demo.command_async("advance 2")
    service.set_paused(False)
    asked_at = clock()
    service.poll_now()
    await wait_for(
        service,
        lambda fleet: all(has_rates(item) and is_read_since(item, asked_at) for item in fleet.machines),
    )


async def take(picture: Picture, service: FleetService, clock: StoppableClock) -> tuple[str, str]:
    """(SVG, background colour) of one picture."""
    now = clock()
    snapshot = untouched(service.snapshot)
    if picture.has_newcomer:
        snapshot = with_newcomer(snapshot, now)
    look = Look(theme=picture.theme, utc_offset_s=round(SHOWN_AT - now))
    port = PicturePort(service, snapshot, now)
    if picture.drained:
        desk = PictureDesk(snapshot, now, None if picture.drained == "no" else picture.drained)
        port.drains, port.snapshot = cast("DrainDesk", desk), desk.flagged()
    app: FleetApp | PickApp = FleetApp(port, look, clock)
    if picture.picked:
        app = PickApp(port, PickQuestion(RouteQuery(picture.picked)), look, clock=clock)
    async with app.run_test(size=picture.size) as pilot:
        await paint(pilot, app)
        for key in picture.keys:
            await pilot.press(key)
            await paint(pilot, app)
            if picture.drained:  # a preview is worked out beside the screen
                await app.workers.wait_for_complete()
                await paint(pilot, app)
        if picture.is_live:
            await pilot.pause(1.0)
            await paint(pilot, app)
        return app.export_screenshot(title="fleettui"), app.current_theme.background or RICH_GROUND


async def paint(pilot: Pilot[None], app: FleetApp | PickApp) -> None:
    await pilot.pause()
    app.painter.paint_now()
    await pilot.pause()


def print_commands(fleet: FleetSnapshot, now: float) -> str:
    """SVG of what `fleettui status` and `fleettui --route` print."""
    decision = decide_route(fleet, RouteQuery(ROUTED_MODEL), now)
    answer = format_answer(decision, "address")
    commands: list[tuple[str, Sequence[str], Sequence[str]]] = [
        ("fleettui status", status_lines(fleet, now, STATUS_WIDTH), ()),
        (f"fleettui --route {ROUTED_MODEL}", [answer], route_lines(decision)),
    ]
    console = Console(
        record=True, width=STATUS_WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    for command, printed, said in commands:
        console.print(Text("$ ", "bold green") + Text(command, "bold"), soft_wrap=True)
        console.print(Text("\n".join(said), "dim"), end="\n" if said else "", soft_wrap=True)
        console.print(Text("\n".join(printed)), soft_wrap=True)
        console.print()
    return console.export_svg(title="fleettui status and --route")


def clean_svg(svg: str, ground: str, is_light: bool, fixed: dict[str, str]) -> str:
    """No remote font, the app's own ground to the edge, the same text in each run."""
    svg = re.sub(r"@font-face\s*\{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace("font-family: Fira Code, monospace", 'font-family: "Fira Code", monospace')
    svg = svg.replace("font-family: arial", 'font-family: "Fira Code", monospace')
    # geometricPrecision: glyphs are not moved to whole pixels, so a long line ends where its cells end.
    size = f"font-size: {FONT_SIZE_PX:.4f}px; text-rendering: geometricPrecision"
    svg = svg.replace("font-size: 20px", size)
    svg = svg.replace(f'fill="{RICH_GROUND}"', f'fill="{ground}"')
    if is_light:
        svg = re.sub(r'(class="[^"]*-title" fill=)"[^"]*"', r'\1"#333333"', svg)
        svg = svg.replace('stroke="rgba(255,255,255,0.35)"', 'stroke="rgba(0,0,0,0.35)"')
    svg = TEXT.sub(place_words, svg)
    svg = re.sub(r"terminal-\d+", "terminal", svg)
    svg = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "2026-11-30T14:03:12Z", svg)
    for found, name in fixed.items():
        svg = re.sub(rf"(?<![\w.]){re.escape(found)}(?![\w.])", name, svg)
    leftover = re.search(r"url\(\s*[\"']?http|src:", svg)
    if leftover:
        raise SystemExit(f"screenshots: the SVG still refers to a remote file: {leftover.group()}")
    return svg


def place_words(match: re.Match[str]) -> str:
    """A text of Rich as one text for each stretch without two blanks in a row, each at its own cell."""
    start, x, y, rest, content = match.groups()
    texts, column = [], 0
    for blanks, words in STRETCH.findall(content):
        column += len(blanks) // len(BLANK)
        if words:
            width = cell_len(unescape(words))
            at, length = float(x) + column * CELL_PX, width * CELL_PX
            texts.append(f'{start} x="{at:.6g}" {y} textLength="{length:.6g}" {rest}{words}</text>')
            column += width
    return "".join(texts)


def fixed_names(demo: DemoFleet) -> dict[str, str]:
    """What differs between runs -> a name of the same length."""
    names = {str(demo.directory): str(demo.directory.parent / "fleettui-demo-pictures")}
    for index, machine in enumerate(demo.machines):
        names[str(machine["ssh_port"])] = str(42001 + index)
        names[str(machine["engine_port"])] = str(43001 + index)
    return names


def fixed_ports(fleet: FleetSnapshot) -> dict[str, str]:
    """The same of engines beside Ollama."""
    others = [engine.port for item in fleet.machines for engine in item.engines if engine.kind != "ollama"]
    return {str(port): str(44001 + index) for index, port in enumerate(others)}


def save(name: str, svg: str) -> None:
    """Write SVG and PNG."""
    path = FOLDER / f"{name}.svg"
    path.write_text(svg, encoding="utf-8")
    command = ["rsvg-convert", "--output", str(path.with_suffix(".png")), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"screenshots: rsvg-convert failed on {path}: {done.stderr.strip()}")
    print(path.relative_to(ROOT).with_suffix(""), flush=True)


async def render(names: Sequence[str]) -> None:
    """Start the fleet, settle it, take the pictures."""
    directory = Path(tempfile.mkdtemp(prefix="fleettui-demo-"))
    clock = StoppableClock()
    try:
        async with DemoFleet(8, seed=7, is_frozen=True, directory=directory) as demo:
            # A home of its own: nothing of the operator's ssh_config or known_hosts reaches the pictures.
            connector = Connector(ConnectorSettings(home=str(directory)))
            service = FleetService(
                FleetSettings(str(demo.machines_dir), catalog_dir=str(ROOT / "catalog")),
                connector,
                clock=clock,
            )
            try:
                await service.start()
                await settle(service, demo, clock)
                fixed = fixed_names(demo) | fixed_ports(service.snapshot)

                async def save_those(is_live: bool) -> None:
                    for picture in PICTURES:
                        if picture.name in names and picture.is_live is is_live:
                            svg, ground = await take(picture, service, clock)
                            save(picture.name, clean_svg(svg, ground, picture.theme == LIGHT, fixed))

                service.set_paused(True)  # the simulated time stands still: another sample has no rates
                await save_those(True)
                # Later answers would change the others from picture to picture.
                await service.stop()
                clock.stop(max(machine.last_seen or 0.0 for machine in service.snapshot.machines) + 0.2)
                service.history = FleetHistory()
                recall(service.history, service.snapshot)
                await save_those(False)
                if "status" in names:
                    save(
                        "status",
                        clean_svg(
                            print_commands(untouched(service.snapshot), clock()), "#12161d", False, fixed
                        ),
                    )
            finally:
                await service.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def main() -> None:
    """Command line."""
    known = [*(picture.name for picture in PICTURES), "status"]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {', '.join(known)}")
    names = parser.parse_args().names or known
    unknown = sorted(set(names) - set(known))
    if unknown:
        parser.error(f"no picture is called {', '.join(unknown)}; there are {', '.join(known)}")
    if shutil.which("rsvg-convert") is None:
        raise SystemExit(
            "screenshots: rsvg-convert is missing; `make screenshots` installs it (librsvg2-bin)"
        )
    FOLDER.mkdir(exist_ok=True)
    asyncio.run(render(names))


if __name__ == "__main__":
    main()
