"""One question of routing while it is answered: what all machines are judged by."""

from __future__ import annotations

from fleettui.decide.filters import age_limit_s
from fleettui.decide.knowledge import RouteKnowledge
from fleettui.decide.matching import Asked
from fleettui.model.route import RouteQuery
from fleettui.model.snapshot import FleetSnapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fleettui.decide.cold import ColdJudge
    from fleettui.model.lease import Lease


class Inquiry:
    """A query with everything that is known; what takes time is found once."""

    __slots__ = ("_cold", "asked", "fleet", "knowledge", "leases", "limit_s", "now", "query")

    def __init__(
        self, fleet: FleetSnapshot, query: RouteQuery, now: float, knowledge: RouteKnowledge
    ) -> None:
        self.fleet = fleet
        self.query = query
        self.now = now
        self.knowledge = knowledge
        self.asked = Asked(query.model, knowledge.catalog)
        self.limit_s = age_limit_s(query, fleet.interval_s)
        self.leases: dict[str, list[Lease]] = {}
        """By machine, those that count."""
        if not query.is_strict:
            for lease in knowledge.leases:
                if lease.until > now:
                    self.leases.setdefault(lease.machine, []).append(lease)
        self._cold: ColdJudge | None = None

    @property
    def cold(self) -> ColdJudge:
        """Judges copies that are not loaded; its modules are read only where there is one."""
        if self._cold is None:
            from fleettui.decide.cold import ColdJudge

            self._cold = ColdJudge(self)
        return self._cold
