"""The dashboard with everything in it that an action may need, and words for what is to be seen of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from drain_desk import ME, FakeDrainDesk, copy_at, lock_of
from test_machine_panes import FakeLog
from test_pending_panel import GINA, KIOSK, REJECTED, FakeTrust
from test_pick import FakeSource
from test_shell_key import FakeShells
from textual.app import App
from textual.drivers.headless_driver import HeadlessDriver
from textual.pilot import Pilot
from textual.widgets import Input
from tui_fleet import NOW, Clock, FakeEvents, FakeService, fleet, sample_machines

from fleettui.config.machine_folder import MachineFiles
from fleettui.decide.knowledge import NOTHING_KNOWN, RouteKnowledge
from fleettui.fleet.flags import FlagBook
from fleettui.fleet.maintenance import FlagOperations
from fleettui.fleet.record import MachineRecord
from fleettui.model.catalog import Catalog
from fleettui.model.event import Event
from fleettui.model.lease import Lease
from fleettui.model.placement import PlanRole
from fleettui.model.route import RouteCandidate
from fleettui.tui import terminal
from fleettui.tui.app import FleetApp
from fleettui.tui.offers import Offer, actions_now
from fleettui.tui.pick.app import PickApp
from fleettui.tui.pick.question import PickQuestion
from fleettui.tui.screens.machine.screen import MachineScreen
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.cursor_view import CursorView
from fleettui.tui.widgets.footer import Footer
from fleettui.tui.widgets.line_view import LineView
from fleettui.tui.widgets.prompt import Prompt

SIZE = (260, 36)
"""Wide enough for every key of a footer."""
EVENTS = (
    Event(NOW - 3000, "bora", "health", "warn", "degraded: GPU 1 is not there"),
    Event(NOW - 2000, "cleo", "maintenance", "note", "maintenance on"),
    Event(NOW - 1000, "ada", "loaded", "note", "llama3.1:70b loaded", {"model": "llama3.1:70b"}),
)
NAMES = {
    " ": "space", ":": "colon", "/": "slash", "-": "minus", ".": "full_stop",
}  # fmt: skip
"""Characters by the names of their keys."""


def typed(text: str) -> tuple[str, ...]:
    """The keys of a text."""
    return tuple(NAMES.get(character, character) for character in text)


ROLES = Catalog(roles=(PlanRole("chat", min_vram_gb=20, count=2), PlanRole("huge", min_vram_gb=500)))


class SeenDriver(HeadlessDriver):
    """A terminal that counts how often all of it was written anew."""

    is_behind, frame_s, rewritten = False, 0.0, 0

    def show(self, *_: object) -> None: ...

    def show_all_again(self, size: object = None) -> None:
        self.rewritten += size is None


class Rig:
    """An app under test."""

    def __init__(self, app: App[Any], pilot: Pilot[Any], **parts: Any) -> None:
        self.app, self.pilot = app, pilot
        self.service: FakeService = parts.get("service")  # type: ignore[assignment]
        self.trust: FakeTrust = parts.get("trust")  # type: ignore[assignment]
        self.shells: FakeShells = parts.get("shells")  # type: ignore[assignment]
        self.source: FakeSource = parts.get("source")  # type: ignore[assignment]
        self.desk: RecordingDesk = parts.get("desk")  # type: ignore[assignment]

    async def settle(self) -> None:
        """What was begun is done, and on the screen."""
        await self.pilot.pause()
        if not self.app.is_running or self.app._exit:
            return
        # A log is followed on, a load takes long.
        work = [worker for worker in self.app.workers if worker.group not in ("log", "warm-up")]
        if work:
            async with asyncio.timeout(30):
                await self.app.workers.wait_for_complete(work)
            await self.pilot.pause()
        self.app.painter.paint_now()  # type: ignore[attr-defined]
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
        await self.settle()

    async def click(self, widget: Any, x: int, y: int = 0, **how: Any) -> None:
        await self.pilot.click(widget, offset=(x, y), **how)
        await self.settle()

    async def home(self) -> None:
        """To the Fleet screen with nothing on it, as an operator comes there."""
        app = self.app
        assert isinstance(app, FleetApp)
        app.show_top_screen(app.current_mode)
        await self.pilot.pause()
        for prompt in app.screen.query(Prompt):
            if prompt.question is not None:
                prompt.action_cancel()
        if app.current_mode != "fleet":
            app.show_top_screen("fleet")
        await self.settle()

    # What is seen

    @property
    def text(self) -> str:
        """The whole screen."""
        return "\n".join(strip.text.rstrip() for strip in self.app.screen._compositor.render_strips())

    @property
    def screen(self) -> str:
        """Which screen is on top; of a machine which tab."""
        screen = self.app.screen
        tab = f" {screen.tab}" if isinstance(screen, MachineScreen) else ""
        return type(screen).__name__.removesuffix("Screen").lower() + tab

    @property
    def asked(self) -> str:
        """The label of the line that is typed in; empty while none is."""
        prompts = [prompt for prompt in self.app.screen.query(Prompt) if prompt.question is not None]
        return prompts[0].question.label if prompts and prompts[0].question is not None else ""

    @property
    def line(self) -> str:
        """What is typed."""
        return self.app.screen.query_one(Input).value

    @property
    def view(self) -> LineView[Any]:
        """The list that has the keys."""
        focused = self.app.focused
        return focused if isinstance(focused, LineView) else self.app.screen.query(LineView).first()

    @property
    def cursor(self) -> int:
        assert isinstance(self.view, CursorView)
        return self.view.cursor

    @property
    def rows(self) -> int:
        return len(self.view.lines)

    def block(self, name: str) -> str:
        return self.app.screen.query_one(f"#{name}", CellBlock).text

    def row(self, name: str) -> str:
        """The first line of the screen with that word."""
        return next((line for line in self.text.split("\n") if re.search(rf"\b{name}\b", line)), "")

    @property
    def header(self) -> str:
        header = self.view.header
        return "" if header is None else "".join(cell.text for cell in header.cells)

    @property
    def rewritten(self) -> int:
        driver = self.app._driver
        assert isinstance(driver, SeenDriver)
        return driver.rewritten

    @property
    def footer(self) -> Footer | None:
        return next(iter(self.app.screen.query(Footer)), None)

    def offer(self, action_id: str) -> Offer | None:
        """The action as it applies now."""
        found = [offer for offer in actions_now(self.app.screen) if offer.action.id == action_id]
        return found[0] if found else None


class EndlessDesk:
    """Knows nothing, leases all, and its loads take for ever."""

    error: str | None = None
    load_rates = NOTHING_KNOWN.load_rates

    def knowledge_of(self, model: str) -> RouteKnowledge:
        return NOTHING_KNOWN

    async def take_lease(self, candidate: RouteCandidate, canonical: str) -> Lease:
        place = (candidate.machine, candidate.port, candidate.engine)
        return Lease("b0", *place, canonical, "resident", NOW, NOW + 10)

    async def warm_up(self, candidate: RouteCandidate, context: int | None, note: object) -> None:
        await asyncio.Event().wait()


class RecordingDesk(FakeDrainDesk):
    """Drains in every state; what is asked is noted, and nothing comes of it."""

    def __init__(self, service: FakeService) -> None:
        super().__init__(service)
        self.put("cleo", copy_at("cleo", "waiting_idle"))
        status = self.put("dora", copy_at("dora", "loading"), state="cancelled")
        self.show(replace(status, lock=lock_of("dora")))
        self.show(replace(self.put("pve52"), lock=None))

    async def start(self, machines: Any, reason: str, options: Any, **more: Any) -> Any:
        self.asked.append(("start", tuple(machines), reason))
        return ()

    async def cancel(self, machine: str, **more: Any) -> None:
        self.asked.append(("cancel", machine))

    async def undrain(self, machine: str, **more: Any) -> None:
        self.asked.append(("undrain", machine))

    async def skip(self, machine: str, copy_key: Any) -> None:
        self.asked.append(("skip", machine))

    async def resume(self) -> tuple[str, ...]:
        self.asked.append(("resume", ME))
        return ()


MakeRig = Callable[[], AbstractAsyncContextManager[Rig]]


def rig_maker(folder: Path, monkeypatch: pytest.MonkeyPatch) -> MakeRig:
    """Makes the dashboard anew each time it is called."""
    FakeLog(monkeypatch)
    monkeypatch.setattr(terminal, "TerminalDriver", SeenDriver)
    numbers = iter(range(99))

    @asynccontextmanager
    async def make() -> AsyncIterator[Rig]:
        place = folder / str(next(numbers))
        place.mkdir()
        machines = {item.name: item for item in (*sample_machines(), GINA, KIOSK, REJECTED)}
        service = FakeService(fleet(tuple(machines[name] for name in sorted(machines)), catalog=ROLES))
        service.trust = trust = FakeTrust()  # type: ignore[assignment]
        service.shells = shells = FakeShells(place)  # type: ignore[assignment]
        service.events = FakeEvents(*EVENTS)
        service.routing = EndlessDesk()  # type: ignore[assignment]
        service.drains = desk = RecordingDesk(service)  # type: ignore[assignment]
        book = _add_flags(service, place)
        app = FleetApp(service, clock=Clock())
        app.suspend = _suspend  # type: ignore[method-assign]
        async with app.run_test(size=SIZE) as pilot:
            assert app._driver is not None
            app._driver.__class__ = SeenDriver
            rig = Rig(app, pilot, service=service, trust=trust, shells=shells, desk=desk)
            await rig.settle()
            yield rig
        book.close()

    return make


@asynccontextmanager
async def make_picker() -> AsyncIterator[Rig]:
    """`fleettui pick` on the sample fleet."""
    source = FakeSource()
    app = PickApp(source, PickQuestion(None, "address"), None, clock=Clock())
    async with app.run_test(size=(120, 40)) as pilot:
        rig = Rig(app, pilot, source=source)
        await rig.settle()
        yield rig


@contextmanager
def _suspend():  # type: ignore[no-untyped-def]
    yield  # a headless driver has no terminal to hand over


def _add_flags(service: FakeService, folder: Path) -> FlagBook:
    """Real ones, in a state file."""
    records = {item.name: MachineRecord(item.machine) for item in service.snapshot.machines}
    files = MachineFiles(machines=tuple(item.machine for item in service.snapshot.machines))
    book = FlagBook(str(folder / "state"), "machines")

    def note_change(name: str) -> None:
        shown = service.snapshot.find(name)
        assert shown is not None
        service.publish(replace(shown, maintenance=records[name].maintenance, seq=shown.seq + 1))

    service.flags = FlagOperations(book, lambda: files, records.get, note_change, lambda: NOW)
    return book
