"""The decision for what is asked, made anew only when something changed, and the places of its lines."""

from __future__ import annotations

from typing import NamedTuple

from fleettui.decide.knowledge import NOTHING_KNOWN, RouteKnowledge
from fleettui.decide.routing import decide_route
from fleettui.model.catalog import Catalog
from fleettui.model.record import replace
from fleettui.model.route import RouteCandidate, RouteDecision, RouteQuery
from fleettui.model.snapshot import FleetSnapshot
from fleettui.view.sorting import keep_order, may_reorder

MANY = 64
"""Machines beyond which it is decided once a second, not for each snapshot."""


class Ranked(NamedTuple):
    """A candidate and its place in the present ranking, from 1."""

    rank: int
    candidate: RouteCandidate


class Ranking:
    """Lines take new places when the operator asks, or touches nothing for a while; ranks are always new."""

    def __init__(self) -> None:
        self.decision: RouteDecision | None = None
        self.shown: tuple[Ranked, ...] = ()
        """Those that can serve it, from top to bottom."""
        self.decided = 0
        """How often it was decided so far."""
        self._made_for: tuple[object, ...] = ()
        self._knowledge = NOTHING_KNOWN
        self._joined = (NOTHING_KNOWN, NOTHING_KNOWN)
        self._is_asked = True
        self.is_new = True
        """Another question than before: nothing stands anywhere yet."""

    def ask(self) -> None:
        """The operator asked for it: lines may take new places."""
        self._is_asked = True

    def forget(self) -> None:
        """Another question."""
        self._is_asked = self.is_new = True

    def decide(
        self, fleet: FleetSnapshot, query: RouteQuery, knowledge: RouteKnowledge, now: float
    ) -> RouteDecision:
        """The decision now; the one at hand while nothing it rests on changed."""
        seq = fleet.seq if len(fleet.machines) <= MANY else 0
        made_for = (seq, query, int(now))
        if (
            self._is_asked
            or self.decision is None
            or made_for != self._made_for
            or knowledge is not self._knowledge
        ):
            self._made_for, self._knowledge = made_for, knowledge
            self.decided += 1
            self.decision = decide_route(fleet, query, fleet.judged_at(now), knowledge)
        return self.decision

    def joined(self, knowledge: RouteKnowledge, catalog: Catalog) -> RouteKnowledge:
        """The knowledge with that catalog; the same object while both are the same."""
        if self._joined[0] is not knowledge or self._joined[1].catalog is not catalog:
            self._joined = (knowledge, replace(knowledge, catalog=catalog))
        return self._joined[1]

    def arrange(self, decision: RouteDecision, cursor: str | None, idle_s: float) -> bool:
        """Put the candidates in their places; True when they were free to take new ones."""
        ranked = {item.machine: Ranked(rank, item) for rank, item in enumerate(decision.candidates, 1)}
        may_move = self.is_new or may_reorder(
            is_asked=self._is_asked, has_cursor=cursor is not None, idle_s=idle_s
        )
        order: tuple[str, ...] = tuple(ranked)
        if not may_move:
            order = keep_order([item.candidate.machine for item in self.shown], order, cursor)
        self._is_asked = False
        shown = tuple(ranked[name] for name in order)
        if shown != self.shown:
            self.shown = shown
        return may_move

    def find(self, machine: str | None) -> Ranked | None:
        """That machine among those that can serve it."""
        return next((item for item in self.shown if item.candidate.machine == machine), None)
