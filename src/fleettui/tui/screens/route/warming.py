"""Loading a model ahead of the first request: asked first, shown as it goes, left alone on demand."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from fleettui.fleet.route_desk import RouteDeskError
from fleettui.fleet.warm_up import refusal_of
from fleettui.model.route import TIER_RELOAD, RouteCandidate
from fleettui.model.unknown import Unknown
from fleettui.tui.widgets.prompt import Question
from fleettui.view.cells import Cell, Cells
from fleettui.view.route_words import eviction_texts, ready_in
from fleettui.view.text import clean

if TYPE_CHECKING:
    from textual.worker import Worker

    from fleettui.fleet.warm_up import WarmedUp
    from fleettui.tui.screens.route.screen import RouteScreen

TOLD_S = 10.0
"""How long a toast stays."""
_YES = ("", "y", "yes")


class WarmUpKeys:
    """One load at a time; it goes on while another screen is shown."""

    def __init__(self, screen: RouteScreen) -> None:
        self._screen = screen
        self._worker: Worker[None] | None = None
        self._candidate: RouteCandidate | None = None
        self._model = ""
        self._said = ""
        """What the load says of itself."""

    @property
    def is_running(self) -> bool:
        """A load is waited for."""
        return self._worker is not None

    @property
    def can_start(self) -> bool:
        """The machine under the cursor could load it, and no other load is waited for."""
        desk = self._screen.fleet_app.service.routing
        ranked = self._screen.current_candidate
        if ranked is None or self.is_running or desk is None:
            return False
        return ranked.candidate.tier >= TIER_RELOAD and refusal_of(ranked.candidate) is None

    def ask(self, candidate: RouteCandidate, canonical: str) -> None:
        """Say what it costs, then load."""
        is_dear = candidate.evicts or candidate.is_resident  # a reload drops the copy and its KV cache
        costs: Cells = (Cell(f" {self._costs(candidate)}", "warn" if is_dear else "dim"),)
        self._screen.ask(
            Question(
                f"load {clean(canonical)} on {clean(candidate.machine)}?",
                lambda _: self._start(candidate, canonical),
                placeholder="Enter loads it, Esc does not",
                hint_of=lambda _: costs,
                is_wrong=lambda text: text.strip().lower() not in _YES,
            )
        )

    def _costs(self, candidate: RouteCandidate) -> str:
        evicted = eviction_texts(candidate)
        parts = [f"evicts {', '.join(evicted)}" if evicted else "evicts nothing"]
        if candidate.is_resident:
            parts.insert(0, clean(candidate.reason))
        if not isinstance(candidate.eta_s, Unknown):
            basis = clean(candidate.eta_text)
            parts.append(f"ready in {ready_in(candidate).text}" + (f" ({basis})" if basis else ""))
        return "; ".join(parts)

    def _start(self, candidate: RouteCandidate, canonical: str) -> None:
        app = self._screen.fleet_app
        desk = app.service.routing
        if desk is None:
            return
        self._candidate, self._model, self._said = candidate, canonical, ""
        load = desk.warm_up(candidate, self._screen.query_now.context, self._note)
        self._worker = app.run_worker(self._wait(load), group="warm-up")
        self._refresh()

    async def _wait(self, load: Coroutine[Any, Any, WarmedUp]) -> None:
        try:
            warmed = await load
        except RouteDeskError as error:
            self._tell(str(error), is_wrong=True)
        else:
            self._tell(warmed.text)
        finally:
            self._end()

    def _note(self, text: str) -> None:
        """What the load says of itself."""
        self._said = text
        self._screen.fleet_app.painter.request()

    def stop_waiting(self) -> None:
        """Wait no longer; what was begun is left to the engine."""
        worker, candidate = self._worker, self._candidate
        if worker is None or candidate is None:
            return
        worker.cancel()
        self._end()
        self._tell(f"{candidate.machine} goes on loading {self._model}; nobody waits for it here any more")

    def _end(self) -> None:
        self._worker = None
        self._refresh()

    def cells(self) -> Cells:
        """How far it is, for the title; nothing while nothing is loaded."""
        candidate = self._candidate
        if self._worker is None or candidate is None:
            return ()
        said = self._said or f"loading {self._model} on {candidate.machine}"
        return (Cell(f"{clean(said)} ", "accent"),)

    def _refresh(self) -> None:
        self._screen.fleet_app.painter.request()
        if self._screen.is_attached:
            self._screen.refresh_bindings()

    def _tell(self, text: str, *, is_wrong: bool = False) -> None:
        self._screen.fleet_app.notify(
            clean(text), severity="error" if is_wrong else "information", timeout=TOLD_S, markup=False
        )
