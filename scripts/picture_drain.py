"""The desk of the pictures: what a drain would do on the fleet as it stands, and one that is under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fleettui.decide.drain.plan import plan_drains
from fleettui.decide.knowledge import NOTHING_KNOWN, RouteKnowledge
from fleettui.model.drain import (
    CopyProgress,
    CopyState,
    Drain,
    DrainLock,
    DrainOptions,
    DrainPlan,
    DrainStatus,
    JournalEntry,
)
from fleettui.model.record import replace as replace_record
from fleettui.model.snapshot import DrainFlag, FleetSnapshot

BY = "mia@jump"
REASON = "PSU swap"


class PictureDesk:
    """Nothing is moved; `at_work`: the machine whose drain is under way."""

    error: str | None = None

    def __init__(self, fleet: FleetSnapshot, now: float, at_work: str | None = None) -> None:
        self._fleet, self._now = fleet, now
        self._status = None if at_work is None else self._under_way(at_work)

    async def preview(self, machines: Sequence[str], options: DrainOptions) -> tuple[DrainPlan, ...]:
        knowledge: RouteKnowledge = replace_record(NOTHING_KNOWN, catalog=self._fleet.catalog)
        return plan_drains(self._fleet, tuple(machines), knowledge, options, self._now)

    async def status(self, machine: str) -> DrainStatus | None:
        status = self._status
        return status if status is not None and status.drain.machine == machine else None

    def returning(self, machine: str) -> tuple[CopyProgress, ...]:
        return ()

    def subscribe(self, subscriber: Callable[[str], None]) -> Callable[[], None]:
        return lambda: None

    def flagged(self) -> FleetSnapshot:
        """The fleet with the flag of that drain."""
        if self._status is None:
            return self._fleet
        drain = self._status.drain
        flag = DrainFlag(drain.state, drain.reason, drain.by, drain.since, drain.until, "", drain.id)
        machines = [
            replace(item, drain=flag) if item.name == drain.machine else item for item in self._fleet.machines
        ]
        return replace(self._fleet, machines=tuple(machines))

    def _under_way(self, name: str) -> DrainStatus:
        """What another machine serves is unloaded; the next copy is on its way; others wait."""
        knowledge: RouteKnowledge = replace_record(NOTHING_KNOWN, catalog=self._fleet.catalog)
        plan = plan_drains(self._fleet, (name,), knowledge, DrainOptions(), self._now)[0]
        copies = []
        is_loading = False
        for line in plan.copies:
            state: CopyState = "gone"
            if line.drain_class != "covered":
                state, is_loading = ("waiting_target" if is_loading else "loading"), True
            target = line.target
            copies.append(
                CopyProgress(
                    line.copy,
                    line.drain_class,
                    state,
                    self._now - 12,
                    None if target is None else target.machine,
                    ""
                    if target is None or state != "loading"
                    else f"{target.machine} drops its idle copies for it",
                    0.0 if target is None else target.eta_s,
                    unloads=int(state == "gone"),
                )
            )
        drain = Drain("d1", name, "running", REASON, BY, self._now - 34, self._now + 7166)
        lock = DrainLock(name, BY, 4242, self._now - 34, self._now - 3)
        return DrainStatus(
            drain, tuple(copies), lock, (JournalEntry(self._now - 34, name, "d1", BY, 4242, "started"),)
        )
