"""What the operator asks of routing: the model and the options; by key, mouse and name, and remembered."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from fleettui.model.record import replace
from fleettui.model.route import RouteQuery
from fleettui.model.sizes import parse_vram_mib
from fleettui.tui.live import LiveScreen
from fleettui.tui.memory import Part, flag_in, text_in
from fleettui.tui.widgets.prompt import Question
from fleettui.tui.widgets.route_list import RouteList
from fleettui.view.cells import Cell, Cells
from fleettui.view.route_names import KnownModel, NameIndex, complete_model, matching_models
from fleettui.view.route_options import (
    CONTEXT_HINT,
    FREE_HINT,
    context_text,
    free_text,
    parse_context,
)
from fleettui.view.text import clean

MEMORY = "route"
"""The part of the app's memory."""


class AskingScreen(LiveScreen):
    """A question to routing; while the model is typed the list shows the models that match."""

    def __init__(self) -> None:
        super().__init__()
        self.query_now = RouteQuery("")
        """What is asked; without a model nothing is."""
        self.marked: str | None = None
        """The machine one came from."""
        self.typed: str | None = None
        """What is typed of a model; None: none is being typed."""
        self.names = NameIndex()

    @property
    @abstractmethod
    def ranking_list(self) -> RouteList:
        """The list."""

    @abstractmethod
    def show_answer(self) -> None:
        """Another question is asked: show its answer from the top."""

    @property
    def models(self) -> tuple[KnownModel, ...]:
        """Everything that can be asked for."""
        app = self.fleet_app
        return self.names.models_of(app.snapshot, app.snapshot.catalog, self.marked)

    @property
    def is_choosing(self) -> bool:
        """The list shows models, not machines."""
        return self.typed is not None or not self.query_now.model

    # What is remembered between runs

    def restore(self) -> None:
        """As the last run left it; what cannot be read is left out."""
        part = self.fleet_app.memory.part(MEMORY)
        self.query_now = RouteQuery(
            text_in(part, "model"),
            min_free_vram_mib=_number_in(part, "min_free_mib") or 0,
            context=_number_in(part, "context"),
            require_loaded=bool(flag_in(part, "require_loaded")),
            avoid_busy=bool(flag_in(part, "avoid_busy")),
            allow_pull=bool(flag_in(part, "allow_pull")),
        )

    def _take(self, query: RouteQuery) -> None:
        self.query_now = query
        self.fleet_app.memory.note(
            MEMORY,
            model=query.model,
            min_free_mib=query.min_free_vram_mib,
            context=query.context,
            require_loaded=query.require_loaded,
            avoid_busy=query.avoid_busy,
            allow_pull=query.allow_pull,
        )
        self._want_busy(query.avoid_busy)
        self.show_answer()

    def on_screen_resume(self) -> None:
        self._want_busy(self.query_now.avoid_busy)

    def on_screen_suspend(self) -> None:
        self._want_busy(False)

    def _want_busy(self, is_wanted: bool) -> None:
        """Who is busy is asked while it decides, also of engines where asking has its price."""
        for poller in self.fleet_app.service.pollers:
            poller.want_busy(is_wanted)

    # The model

    def ask_for(self, model: str | None, machine: str | None = None) -> None:
        """Route that model, or ask which; `machine` is marked."""
        self.marked = machine
        if model:
            self.take_model(model)
        else:
            self.action_ask_model()

    def take_model(self, model: str) -> None:
        """Route that one from now on."""
        self._take(replace(self.query_now, model=model.strip()))

    def action_ask_model(self, text: str = "") -> None:
        """Ask for a model, or take the one that was named."""
        if text:
            self.take_model(text)
            return

        def end() -> None:
            self.typed = None
            self.show_answer()

        def answer(typed: str) -> None:
            line = self.ranking_list.cursor_line
            self.typed = None
            wanted = line.machine if line is not None and line.kind == "model" else typed
            if wanted.strip():
                self.take_model(wanted)
            else:
                self.show_answer()

        self.ask(
            Question(
                "model:",
                answer,
                placeholder="a name; Tab completes, the arrows choose",
                on_change=self._follow,
                on_cancel=end,
                hint_of=self._model_hint,
                complete=lambda typed: complete_model(self.models, typed),
                on_step=self._step,
            )
        )
        self._follow("")

    def _follow(self, typed: str) -> None:
        """Show what matches, the best under the cursor."""
        self.typed = typed
        self.fleet_app.painter.paint_now()
        self.ranking_list.move_cursor(0)

    def _step(self, step: int) -> None:
        if step > 0:
            self.ranking_list.action_cursor_down()
        else:
            self.ranking_list.action_cursor_up()

    def _model_hint(self, typed: str) -> Cells:
        if not typed.strip() or matching_models(self.models, typed):
            return ()
        return (Cell(f" no model has that name; Enter asks for {clean(typed.strip())} all the same", "warn"),)

    def action_choose_model(self) -> None:
        line = self.ranking_list.cursor_line
        if line is not None and line.kind == "model":
            self.take_model(line.machine)

    # Options

    def action_ask_context(self, text: str = "") -> None:
        """Ask for the context, or take the one that was named."""
        self._ask_option(
            "context:",
            text,
            context_text(self.query_now.context),
            CONTEXT_HINT,
            lambda typed: replace(self.query_now, context=parse_context(typed)),
        )

    def action_ask_free(self, text: str = "") -> None:
        """Ask how much VRAM has to be free, or take what was named."""

        def read(typed: str) -> RouteQuery:
            mib = parse_vram_mib(typed) if typed.strip() not in ("", "any") else 0
            return replace(self.query_now, min_free_vram_mib=mib)

        self._ask_option("min free VRAM:", text, free_text(self.query_now.min_free_vram_mib), FREE_HINT, read)

    def _ask_option(
        self, label: str, named: str, present: str, hint: str, read: Callable[[str], RouteQuery]
    ) -> None:
        def problem(text: str) -> str:
            try:
                read(text)
            except ValueError as error:
                return str(error)
            return ""

        if named and not problem(named):
            self._take(read(named))
            return
        self.ask(
            Question(
                label,
                lambda text: self._take(read(text)),
                text=named or present,
                placeholder="any",
                hint_of=lambda text: (Cell(f" {problem(text) or hint}", "warn" if problem(text) else "dim"),),
                is_wrong=lambda text: problem(text) != "",
            )
        )

    def action_toggle_loaded(self) -> None:
        self._take(replace(self.query_now, require_loaded=not self.query_now.require_loaded))

    def action_toggle_idle(self) -> None:
        self._take(replace(self.query_now, avoid_busy=not self.query_now.avoid_busy))

    def action_toggle_pull(self) -> None:
        self._take(replace(self.query_now, allow_pull=not self.query_now.allow_pull))


def _number_in(part: Part, key: str) -> int | None:
    """A number above 0; None where there is none."""
    value = part.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
