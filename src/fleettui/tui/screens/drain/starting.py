"""The two questions before a drain: why, and whether that is really meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fleettui.fleet.until import parse_reason_until
from fleettui.model.drain import DrainPlan
from fleettui.tui.widgets.prompt import Question
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.drain_page import consequence, is_losing, missing_words
from fleettui.view.maintenance_text import announced_text
from fleettui.view.text import clean

if TYPE_CHECKING:
    from fleettui.tui.screens.drain.showing import ShowingScreen

_YES = ("", "y", "yes")


class StartKeys:
    """Asks for the reason, names machine and consequence, then starts."""

    def __init__(self, screen: ShowingScreen, text: str) -> None:
        self._screen = screen
        self._text = text
        """Reason and end as they were typed last."""
        self._is_given = bool(text.strip())
        """The reason is not asked again."""
        self.consequence: tuple[str, Tone] | None = None
        """What the question that stands there would do; told above the list as well."""

    def ask(self, plans: Sequence[DrainPlan]) -> None:
        """Begin to ask, where nothing speaks against it."""
        screen = self._screen
        missing = missing_words(plans, screen.options)
        if missing:
            allow = screen.key_of("drain_allow")
            refused = any(plan.refused(screen.options) for plan in plans)
            how = (
                f"; {allow} on the line gives it"
                if refused and not any(plan.problem for plan in plans)
                else ""
            )
            screen.fleet_app.drains.fail(f"not started: {missing}{how}")
        elif self._is_given and not self._problem(self._text):
            self._confirm()
        else:
            self._ask_reason()

    def prefill(self, text: str) -> None:
        """The reason stands there already when it is asked."""
        self._text, self._is_given = text, False

    def _who(self) -> str:
        names = self._screen.preview_names
        return clean(names[0]) if len(names) == 1 else f"{len(names)} machines"

    def _ask_reason(self) -> None:
        self._screen.ask(
            Question(
                f"why drain {self._who()}?",
                self._take_reason,
                text=self._text,
                placeholder="PSU swap until 2h",
                hint_of=self._hint,
                is_wrong=lambda text: self._problem(text) != "",
            )
        )

    def _problem(self, text: str) -> str:
        try:
            reason, _ = parse_reason_until(text, self._screen.fleet_app.clock())
        except ValueError as error:
            return str(error)
        return "" if reason else "a drain wants its reason: it stands in every list until the machine is back"

    def _hint(self, text: str) -> Cells:
        problem = self._problem(text)
        if problem:
            return (Cell(f" {problem}", "warn" if text.strip() else "dim"),)
        app = self._screen.fleet_app
        now = app.clock()
        told = announced_text(*parse_reason_until(text, now), now, app.look.utc_offset_s)
        return (Cell(f" {app.look.glyph_set.plain(told)}", "dim"),)

    def _take_reason(self, text: str) -> None:
        self._text = text
        self._confirm()

    def _confirm(self) -> None:
        """With the names typed where a model would be resident nowhere afterwards."""
        screen = self._screen
        plans, names = screen.previews.plans, screen.preview_names
        word = " ".join(names) if is_losing(plans, screen.options) else ""
        text, tone = self.consequence = consequence(plans, screen.options)
        shown: Cells = (Cell(f" {screen.fleet_app.look.glyph_set.plain(text)}", tone),)

        def is_wrong(typed: str) -> bool:
            return typed.split() != list(names) if word else typed.strip().lower() not in _YES

        screen.ask(
            Question(
                f"drain {' '.join(map(clean, names)) if len(names) <= 3 else self._who()}?",
                lambda typed: self._start(is_typed=bool(typed.strip())),
                placeholder=f"type {clean(word)} to start it" if word else "Enter starts it, Esc does not",
                hint_of=lambda _: shown,
                is_wrong=is_wrong,
                on_cancel=self._forget,
            )
        )
        screen.fleet_app.painter.paint_now()

    def _forget(self) -> None:
        self.consequence, self._is_given = None, False
        self._screen.fleet_app.painter.paint_now()

    def _start(self, *, is_typed: bool) -> None:
        screen = self._screen
        self.consequence = None
        missing = missing_words(screen.previews.plans, screen.options)
        if missing:  # it came while the question stood there
            screen.fleet_app.drains.fail(f"not started: {missing}")
            return
        if not is_typed and is_losing(screen.previews.plans, screen.options):
            self._confirm()  # that came while the question stood there
            return
        app = screen.fleet_app
        try:
            reason, until = parse_reason_until(self._text, app.clock())
        except ValueError as error:  # the end has come meanwhile
            app.drains.fail(str(error))
            return
        app.drains.start(screen.preview_names, reason or "", screen.options, until, screen.note_started)
