"""What is asked of the picker, where its snapshots come from, how it was left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from fleettui.decide.knowledge import NOTHING_KNOWN
from fleettui.decide.routing import decide_route
from fleettui.decide.serving import list_serving
from fleettui.model.record import replace
from fleettui.model.route import RouteDecision, RouteQuery, ServingList
from fleettui.model.snapshot import FleetSnapshot
from fleettui.view.picking import PickAnswer

if TYPE_CHECKING:
    from fleettui.fleet.route_desk import RouteDesk


class PickSource(Protocol):
    """Where snapshots come from."""

    @property
    def snapshot(self) -> FleetSnapshot:
        """The newest one."""

    @property
    def is_settled(self) -> bool:
        """Nobody is waited for any more."""

    def subscribe(self, subscriber: Callable[[FleetSnapshot], None]) -> Callable[[], None]:
        """Call back on each new snapshot; the answer ends that."""

    async def start(self) -> None:
        """Begin."""

    async def stop(self) -> None:
        """End."""

    def poll_now(self) -> None:
        """Ask every machine at once."""


@dataclass(frozen=True, slots=True)
class PickQuestion:
    """What is to be picked."""

    query: RouteQuery | None = None
    """The model and what is wanted for it; None: any machine that takes requests."""
    form: str = "address"
    """Of the answer."""
    desk: RouteDesk | None = None
    """Leases, and what is stored for routing; None: neither is known."""

    def ask(self, fleet: FleetSnapshot, now: float) -> RouteDecision | ServingList:
        """Who can be picked now."""
        if self.query is None:
            return list_serving(fleet, now)
        knowledge = NOTHING_KNOWN if self.desk is None else self.desk.knowledge_of(self.query.model)
        return decide_route(fleet, self.query, now, replace(knowledge, catalog=fleet.catalog))


@dataclass(frozen=True, slots=True)
class Picked:
    """How the picker was left."""

    answer: PickAnswer | None = None
    failure: RouteDecision | ServingList | None = None
    """There was nothing to pick, and why."""
    return_code: int = 0
    """Not 0: it did not end by itself."""
