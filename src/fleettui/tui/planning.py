"""Plans for screens: made anew only when catalog, flags or hardware changed; large ones in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from operator import is_
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from fleettui.decide.placement.kinds import with_likely_models
from fleettui.decide.placement.lint import lint
from fleettui.decide.placement.optimal import compare
from fleettui.decide.placement.what_if import lose_each_node
from fleettui.decide.plan_nodes import plan_node, plan_notes
from fleettui.model.catalog import EMPTY_CATALOG, Catalog
from fleettui.model.placement import PlacementPlan, PlanNode
from fleettui.model.placement_answers import LintFinding, NodeLoss, PlanComparison
from fleettui.model.profile import Profile
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.tui.port import FleetPort

if TYPE_CHECKING:
    from fleettui.tui.app import FleetApp

Nodes = tuple[PlanNode, ...]
Made = TypeVar("Made")

AT_ONCE = 150
"""GPUs and copies that are planned while the screen waits: some 20 ms."""
LOST_AT_ONCE = 400
"""The same for the loss of each machine, times machines."""


class FleetNodes:
    """The fleet as placement sees it: the same objects while nothing of it changed."""

    def __init__(self, service: FleetPort) -> None:
        self._service = service
        self._kept: dict[str, _Kept] = {}
        self._nodes: Nodes = ()

    def nodes_of(self, fleet: FleetSnapshot) -> Nodes:
        """The same tuple while no machine's hardware, profile, flags or trust changed."""
        book = self._service.profiles
        profiles = {} if book is None else book.latest
        kept = {}
        for machine in fleet.machines:
            before, profile = self._kept.get(machine.name), profiles.get(machine.name)
            if before is None or before.machine is not machine or before.profile is not profile:
                node, notes = plan_node(machine, profile), plan_notes(machine, profile)
                if before is not None and before.node == node:
                    node = before.node
                before = _Kept(machine, profile, node, notes)
            kept[machine.name] = before
        self._kept = kept
        nodes = tuple(item.node for item in kept.values())
        if len(nodes) != len(self._nodes) or not all(map(is_, nodes, self._nodes)):
            self._nodes = nodes
        return self._nodes

    @property
    def notes(self) -> tuple[str, ...]:
        """What is odd about these nodes."""
        return tuple(note for item in self._kept.values() for note in item.notes)


class _Kept(NamedTuple):
    machine: MachineSnapshot
    profile: Profile | None
    node: PlanNode
    notes: tuple[str, ...]


class LikelyPlan:
    """A plan with the models that its roles are likely to serve, as screens show it."""

    def __init__(self) -> None:
        self._made_of: tuple[PlacementPlan, Catalog] | None = None
        self._made = PlacementPlan()

    def of(self, plan: PlacementPlan, catalog: Catalog) -> PlacementPlan:
        """The same object while neither changed."""
        if self._made_of is None or self._made_of[0] is not plan or self._made_of[1] is not catalog:
            self._made_of, self._made = (plan, catalog), with_likely_models(plan, catalog)
        return self._made


class FleetPlans:
    """Plans of the fleet as it is, for every screen."""

    def __init__(self, app: FleetApp) -> None:
        self.nodes = FleetNodes(app.service)
        self.work = PlanWork(app)
        self._likely = LikelyPlan()

    def plan_now(self, fleet: FleetSnapshot) -> PlacementPlan | None:
        """The greedy plan, as it is shown; None where there is nothing to plan, or not yet."""
        if not fleet.catalog.roles:
            return None
        comparison = self.work.compare(self.nodes.nodes_of(fleet), fleet.catalog)
        return None if comparison is None else self._likely.of(comparison.greedy, fleet.catalog)


class PlanWork:
    """The plans of one question, until another is asked."""

    def __init__(self, app: FleetApp) -> None:
        self._app = app
        self._nodes: Nodes = ()
        self._catalog: Catalog = EMPTY_CATALOG
        self._turn = 0
        self._losses: dict[bool, tuple[NodeLoss, ...] | None] = {}
        self._weight = 0
        self.comparison: PlanComparison | None = None
        """Greedy and optimal; of the question before while the new one is worked on."""
        self.findings: tuple[LintFinding, ...] = ()
        """What is odd in the catalog, on these machines."""
        self.is_working = False
        """The plan on the screen is not yet that of what is asked."""
        self.made = 0
        """How often plans were made so far."""

    def compare(self, nodes: Nodes, catalog: Catalog) -> PlanComparison | None:
        """The plans at hand while nothing they rest on changed; None: there is none yet."""
        if nodes is not self._nodes or catalog is not self._catalog:
            self._nodes, self._catalog = nodes, catalog
            self._turn += 1
            self._losses.clear()
            self.is_working = True
            self.made += 1
            self._weight = sum(len(node.gpus) for node in nodes) + sum(role.count for role in catalog.roles)

            def make() -> tuple[PlanComparison, tuple[LintFinding, ...]]:
                return compare(nodes, catalog.roles, catalog), lint(nodes, catalog.roles, catalog)

            self._run(make, self._take, at_once=self._weight <= AT_ONCE)
        return self.comparison

    def losses(self, *, optimal: bool) -> tuple[NodeLoss, ...] | None:
        """What the loss of each machine would cost; None while that is worked out."""
        if optimal not in self._losses:
            self._losses[optimal] = None
            nodes, catalog = self._nodes, self._catalog

            def take(losses: tuple[NodeLoss, ...]) -> None:
                self._losses[optimal] = losses

            self._run(
                lambda: lose_each_node(nodes, catalog.roles, catalog, optimal=optimal),
                take,
                at_once=self._weight * len(nodes) <= LOST_AT_ONCE,
            )
        return self._losses[optimal]

    def _take(self, made: tuple[PlanComparison, tuple[LintFinding, ...]]) -> None:
        self.comparison, self.findings = made
        self.is_working = False

    def _run(self, make: Callable[[], Made], take: Callable[[Made], None], *, at_once: bool) -> None:
        if at_once:
            take(make())
            return
        turn = self._turn

        async def work() -> None:
            made = await asyncio.to_thread(make)
            if turn == self._turn:  # else something changed meanwhile
                take(made)
                self._app.painter.request()

        self._app.run_worker(work(), group="plan", exit_on_error=True)
