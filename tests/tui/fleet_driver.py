"""The Fleet screen under test, with words for what one looks at."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from textual.pilot import Pilot
from tui_fleet import Clock, FakeService

from fleettui.model.snapshot import MachineSnapshot
from fleettui.tui.app import FleetApp
from fleettui.tui.memory import Memory
from fleettui.tui.port import Look
from fleettui.tui.screens.fleet.screen import FleetScreen
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.fleet_table import FleetTable
from fleettui.tui.widgets.prompt import Prompt

NAMES = {
    " ": "space", ">": "greater_than_sign", "<": "less_than_sign", "=": "equals_sign", "~": "tilde",
    "!": "exclamation_mark", ":": "colon", "|": "vertical_line", "%": "percent_sign", "_": "underscore",
    "-": "minus",
}  # fmt: skip
"""Characters by the names of their keys."""


class Driver:
    """The dashboard under test, with words for what one looks at."""

    def __init__(self, app: FleetApp, service: FakeService, pilot: Pilot[None]) -> None:
        self.app, self.service, self.pilot = app, service, pilot

    @property
    def table(self) -> FleetTable:
        return self.app.screen_stack[0].query_one(FleetTable)

    @property
    def screen(self) -> FleetScreen:
        screen = self.app.screen_stack[0]
        assert isinstance(screen, FleetScreen)
        return screen

    @property
    def prompt(self) -> Prompt:
        return self.screen.query_one(Prompt)

    @property
    def names(self) -> list[str]:
        """Machines from top to bottom."""
        return [row.machine for row in self.table.lines if row.kind == "machine"]

    @property
    def header(self) -> str:
        assert self.table.header is not None
        return "".join(cell.text for cell in self.table.header.cells)

    def row(self, key: str) -> str:
        """Text of a row."""
        return next("".join(cell.text for cell in row.cells) for row in self.table.lines if row.key == key)

    @property
    def keys(self) -> list[str]:
        """Keys of all rows."""
        return [row.key for row in self.table.lines]

    @property
    def screen_line(self) -> int:
        """Where on the screen the cursor is."""
        return self.table.cursor - self.table.scroll_offset.y

    def text(self, widget_id: str) -> str:
        return self.app.screen.query_one(f"#{widget_id}", CellBlock).text

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def go(self, name: str) -> None:
        """Put the cursor on a machine's own row."""
        assert self.table.move_to(name), name
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        """Into the line that has the keys."""
        for character in text:
            await self.pilot.press(NAMES.get(character, character))
        await self.pilot.pause()

    async def publish(self, *machines: MachineSnapshot) -> None:
        self.service.publish(*machines)
        await self.settle()

    async def publish_exactly(self, machines: tuple[MachineSnapshot, ...]) -> None:
        self.service.publish_exactly(machines)
        await self.settle()

    async def settle(self) -> None:
        """The newest snapshot is on the screen, whatever the pace allows."""
        await self.pilot.pause()
        self.app.painter.paint_now()
        await self.pilot.pause()


@asynccontextmanager
async def dashboard(
    service: FakeService | None = None,
    size: tuple[int, int] = (80, 24),
    look: Look | None = None,
    memory: Memory | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[Driver]:
    service = service or FakeService()
    app = FleetApp(service, look, clock or Clock(), memory)
    async with app.run_test(size=size) as pilot:
        driver = Driver(app, service, pilot)
        await driver.settle()
        yield driver
