"""The Pending panel: machines with a host key that nobody approved, and the decision about each."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from textual.app import ComposeResult

from fleettui.model.approval import COMPARE_LINE
from fleettui.model.snapshot import FleetSnapshot, HostKeyOffer, MachineSnapshot
from fleettui.tui.actions import bindings_for
from fleettui.tui.asking import ask_on
from fleettui.tui.dialog import LiveDialog
from fleettui.tui.offers import is_offered
from fleettui.tui.screens.pending.decisions import Decisions
from fleettui.tui.widgets.box import Box
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.cursor_view import CursorView
from fleettui.tui.widgets.footer import Footer
from fleettui.tui.widgets.line_view import LineView
from fleettui.tui.widgets.painting import Line
from fleettui.tui.widgets.prompt import Prompt, Question
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.pending_page import (
    HOW_MACHINES_JOIN,
    NOTHING_WAITS,
    approval_question,
    changed_question,
    key_page,
    listed_machines,
    name_width,
    rejection_question,
    waiting_cells,
    waiting_title,
)
from fleettui.view.text import clean, wrap

WIDTH, WIDE_FROM, WIDE = 78, 124, 116
_FRAME = 4
"""Columns of the box beside its lines."""
MOST_LISTED = 6
LOW = 30
"""Lines of a screen that has none to spare."""
_DEPENDING = ("approve", "reject", "read_key", "confirm", "copy_line")


class _Asked(NamedTuple):
    """A question that waits for Enter, and exactly what it is about."""

    is_approval: bool
    name: str
    fingerprint: str
    text: str


class PendingScreen(LiveDialog[None]):
    """Decisions run beside it: it can be left at any time, what comes out is told anyway."""

    BINDINGS = bindings_for("pending")
    DEFAULT_CSS = """
    PendingScreen CursorView { height: 1; }
    PendingScreen #rule { color: $tone-faint; }
    PendingScreen #said { margin: 0; }
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__()
        self._wanted = name
        """Where the cursor goes first."""
        self._machines: dict[str, MachineSnapshot] = {}
        """Those on the screen, as they were painted: what is approved is what was seen."""
        self._routes: dict[str, tuple[str, ...]] = {}
        self._asked: _Asked | None = None
        self._said: tuple[str, Tone] | None = None
        self._offered: list[bool | None] = []
        """Which of the actions that depend on the machine were offered when last painted."""

    def compose(self) -> ComposeResult:
        with Box():
            yield CursorView[Line](id="waiting")
            yield CellBlock(id="rule")
            yield LineView[Line](id="key")
            yield CellBlock(id="said")
            yield Prompt()
            yield Footer()

    def on_mount(self) -> None:
        self.waiting.focus()

    @cached_property
    def decisions(self) -> Decisions:
        """Those that were made here."""
        return Decisions(self.fleet_app, self._tell)

    @property
    def waiting(self) -> CursorView[Line]:
        """The list of machines."""
        return self.query_one("#waiting", CursorView)

    @property
    def machine(self) -> MachineSnapshot | None:
        """The machine under the cursor, as it is shown."""
        line = self.waiting.cursor_line
        return None if line is None else self._machines.get(line.key)

    # What is shown

    def show_snapshot(self, snapshot: FleetSnapshot, now: float) -> None:
        """Paint what changed; a question about a key that is not shown any more is withdrawn."""
        glyphs = self.fleet_app.look.glyph_set
        machines = listed_machines(snapshot, now)
        self._machines = {machine.name: machine for machine in machines}
        self.query_one(Box).border_title = waiting_title(machines)
        width = name_width(machines)
        lines = [Line(item.name, waiting_cells(item, now, width, glyphs)) for item in machines]
        self.waiting.show_lines(lines)
        if self._wanted is not None and self.waiting.move_to(self._wanted):
            self._wanted = None
        self._check_question()
        self._show_page(now)
        offered = [self.check_action(action, ()) for action in _DEPENDING]
        if offered != self._offered:
            self._offered = offered
            self.refresh_bindings()

    def _show_page(self, now: float) -> None:
        look, machine = self.fleet_app.look, self.machine
        outer = min(self.size.width, WIDE if self.size.width >= WIDE_FROM else WIDTH)
        width = outer - _FRAME - 1
        if machine is None:
            texts = (NOTHING_WAITS, "", HOW_MACHINES_JOIN)
            page: list[Cells] = [(Cell(line),) for text in texts for line in wrap(text, width)]
        else:
            offer, route = self._offer_of(machine), self._route_to(machine.name)
            is_low = self.size.height < LOW
            page = key_page(machine, offer, now, width, look.glyph_set, route, is_low=is_low)
        said = self._said_cells(width)
        self.query_one("#rule", CellBlock).show_cells(
            *([(Cell(look.glyph_set.rule * (outer - _FRAME), "faint"),)] if self._machines else [])
        )
        below: list[Cells] = [(), *said] if said or self.size.height >= LOW else []
        self.query_one("#said", CellBlock).show_cells(*below)
        self.query_one("#key", LineView).show_lines(
            [Line(str(number), cells) for number, cells in enumerate(page)]
        )
        self._fit(outer, len(page), len(below))

    def _fit(self, outer: int, page: int, below: int) -> None:
        """Heights by what there is to show; the page scrolls where it must."""
        room = self.size.height - 3 - below - (1 if self._machines else 0)
        listed = min(len(self._machines), MOST_LISTED, max(1, room // 3))
        box = self.query_one(Box)
        box.styles.width = outer
        box.border_subtitle = "Esc: no" if self._asked is not None else "Esc closes"
        self.waiting.styles.height = listed
        self.waiting.display = bool(self._machines)
        self.query_one("#key", LineView).styles.height = max(1, min(page, room - listed))

    def _said_cells(self, width: int) -> list[Cells]:
        """The question, else what is under way, else what came out last."""
        machine = self.machine
        text, tone = self._said or ("", "plain")
        if machine is not None and machine.name in self.decisions.busy:
            text, tone = self.decisions.busy[machine.name], "dim"
        if self._asked is not None:
            text, tone = self._asked.text, "strong"
        elif not text and self.fleet_app.look.is_readonly:
            text, tone = "read only: nothing can be decided here", "dim"
        return [(Cell(line, tone),) for line in wrap(clean(text), width)] if text else []

    def _offer_of(self, machine: MachineSnapshot) -> HostKeyOffer | None:
        return machine.link.offer or self.decisions.read.get(machine.name)

    def _route_to(self, name: str) -> tuple[str, ...]:
        trust = self.fleet_app.service.trust
        if name not in self._routes:
            self._routes[name] = () if trust is None else trust.route_to(name)
        return self._routes[name]

    def on_cursor_view_cursor_moved(self) -> None:
        if self._asked is not None and (self.machine is None or self.machine.name != self._asked.name):
            self._asked = None
        self.query_one("#key", LineView).action_top()
        self.fleet_app.painter.paint_now()

    def on_resize(self) -> None:
        self.fleet_app.painter.paint_now()

    # Questions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What does not apply is neither run nor listed."""
        machine = self.machine if self.is_mounted else None
        if not is_offered(
            action, has_machine=machine is not None, is_readonly=self.fleet_app.look.is_readonly
        ):
            return False
        if action == "confirm":
            return self._asked is not None
        if action == "copy_line":
            return machine is not None
        if action in {"approve", "reject", "read_key"}:
            if machine is None or machine.name in self.decisions.busy or self._asked is not None:
                return False
            if action == "approve":
                return self._offer_of(machine) is not None
            return action != "reject" or machine.trust != "rejected"
        return True

    def action_approve(self) -> None:
        machine = self.machine
        offer = None if machine is None else self._offer_of(machine)
        if machine is None or offer is None:
            return
        asked = _Asked(True, machine.name, offer.fingerprint, approval_question(machine, offer))
        if offer.expected:
            self._ask_for_name(asked._replace(text=changed_question(machine, offer)))
        else:
            self._ask(asked)

    def action_reject(self) -> None:
        if self.machine is not None:
            offer = self._offer_of(self.machine)
            fingerprint = "" if offer is None else offer.fingerprint
            self._ask(_Asked(False, self.machine.name, fingerprint, rejection_question(self.machine)))

    def _ask(self, asked: _Asked | None) -> None:
        self._asked, self._said = asked, None
        self.fleet_app.painter.paint_now()

    def _ask_for_name(self, asked: _Asked) -> None:
        """A changed key is never approved by a hurried Enter."""
        self._ask(asked)
        ask_on(
            self,
            Question(
                f"{clean(asked.name)}?",
                lambda _: self.action_confirm(),
                placeholder="the machine's name, then Enter; Esc does not approve",
                on_cancel=lambda: self._ask(None),
                is_wrong=lambda text: text.strip() != asked.name,
            ),
        )

    def _check_question(self) -> None:
        asked = self._asked
        if asked is None:
            return
        machine = self._machines.get(asked.name)
        offer = None if machine is None else self._offer_of(machine)
        if (offer.fingerprint if offer else "") == asked.fingerprint and machine is not None:
            return
        self._asked = None
        prompt = self.query_one(Prompt)
        if prompt.question is not None:
            prompt.action_cancel()
        what = "waits no more" if machine is None else "shows another key now: look at it first"
        self._said = (f"{asked.name} {what}.", "warn")

    def action_confirm(self) -> None:
        """Yes to the question, about the very key that it named."""
        asked, self._asked = self._asked, None
        if asked is None:
            return
        self._said = None
        if asked.is_approval:
            self.decisions.approve(asked.name, asked.fingerprint)
        else:
            self.decisions.reject(asked.name)
        self.fleet_app.painter.paint_now()

    def action_read_key(self) -> None:
        if self.machine is not None:
            self._said = None
            self.decisions.read_key(self.machine.name, self.machine.link.offer)
            self.fleet_app.painter.paint_now()

    def action_copy_line(self) -> None:
        self.fleet_app.copy_to_clipboard(COMPARE_LINE)
        name = "the machine" if self.machine is None else self.machine.name
        self._said = (f"The line is on the clipboard: paste it into a shell on {name}.", "plain")
        self.fleet_app.painter.paint_now()

    def action_command(self) -> None:
        self.fleet_app.ask_command(self)

    def action_leave(self) -> None:
        """One Esc takes the question back, the next closes."""
        if self._asked is not None:
            self._ask(None)
        else:
            self.dismiss()

    def _tell(self, text: str, tone: Tone) -> bool:
        """Show what came out of a decision; False: the panel was left."""
        if self.is_attached:
            self._said = (text, tone)
            self.fleet_app.painter.paint_now()
        return self.is_attached
