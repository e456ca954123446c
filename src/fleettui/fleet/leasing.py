"""Takes leases on choices of routing, so that who asks next is sent elsewhere."""

from __future__ import annotations

import os

from fleettui.decide.lease_terms import lease_on
from fleettui.model.record import dataclass
from fleettui.store.database import Store
from fleettui.store.leases import LOCK_WAIT_S, new_lease_id, take_lease

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fleettui.model.lease import Lease
    from fleettui.model.route import RouteCandidate, RouteDecision

    Decide = Callable[[tuple[Lease, ...], float], RouteDecision]
    """The decision with these leases in view, at this moment."""


@dataclass(frozen=True, slots=True)
class LeasedRoute:
    """A decision and the lease on its first choice."""

    decision: RouteDecision
    lease: Lease | None = None
    """None where nothing was chosen."""


def decide_with_lease(
    store: Store, machines_dir: str, decide: Decide, hold_s: float | None = None, owner: str = ""
) -> LeasedRoute:
    """Decide and write the lease in one step: no two askers see the same leases. `owner`: who asks; empty:
    the user who is logged in. Raises StoreError."""
    decisions: list[RouteDecision] = []

    def choose(leases: tuple[Lease, ...], now: float) -> Lease | None:
        decision = decide(leases, now)
        decisions.append(decision)
        if decision.chosen is None:
            return None
        return _lease_on(decision.chosen, decision.canonical, now, hold_s, owner)

    lease = take_lease(store, machines_dir, choose)
    return LeasedRoute(decisions[-1], lease)


def lease_candidate(
    state_dir: str,
    machines_dir: str,
    candidate: RouteCandidate,
    canonical: str,
    hold_s: float | None = None,
) -> Lease:
    """A lease on a candidate that somebody picked; takes as long as the disk does. Raises StoreError."""
    with Store.open(state_dir, busy_timeout_s=LOCK_WAIT_S) as store:
        lease = take_lease(store, machines_dir, lambda _, now: _lease_on(candidate, canonical, now, hold_s))
    assert lease is not None  # noqa: S101 - chosen without a condition
    return lease


def _lease_on(
    candidate: RouteCandidate, canonical: str, now: float, hold_s: float | None, owner: str = ""
) -> Lease:
    return lease_on(
        candidate,
        canonical,
        lease_id=new_lease_id(),
        now=now,
        hold_s=hold_s,
        pid=os.getpid(),
        owner=owner or login_name(),
    )


def login_name() -> str:
    """Who is logged in here, as `getpass` finds it; that costs a warm `--route` a millisecond of imports."""
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        name = os.environ.get(variable)
        if name:
            return name
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError, OSError):
        return "unknown"
