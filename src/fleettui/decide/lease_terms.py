"""What a lease on a choice says: what it reserves and until when it holds."""

from __future__ import annotations

from fleettui.model.lease import Lease
from fleettui.model.names import canonical_name
from fleettui.model.route import RouteCandidate
from fleettui.model.unknown import Unknown

RESIDENT_S = 10.0
"""An asker sends its request at once: by then the engine shows that it works, or nothing comes."""
AFTER_LOAD_S = 30.0
"""Beyond the estimate of the load, which may be late."""
UNKNOWN_LOAD_S = 60.0
"""Where nothing is known of the load."""


def lease_on(
    candidate: RouteCandidate,
    canonical: str,
    *,
    lease_id: str,
    now: float,
    hold_s: float | None = None,
    pid: int = 0,
    owner: str = "",
) -> Lease:
    """The lease of an asker that is sent to this candidate. `hold_s`: its term, by the asker's wish.

    It is on the model by its name there, which the catalog may tell apart from what was asked (`canonical`).
    """
    need = candidate.need
    is_cold = not candidate.is_resident
    reserved_mib = need.mib if is_cold and need is not None else 0
    return Lease(
        id=lease_id,
        machine=candidate.machine,
        port=candidate.port,
        engine=candidate.engine,
        model=canonical_name(candidate.model) if candidate.model else canonical,
        kind="cold" if is_cold else "resident",
        taken_at=now,
        until=now + (_term_s(candidate) if hold_s is None else hold_s),
        vram_mib=reserved_mib,
        gpu=candidate.gpus[0] if reserved_mib and len(candidate.gpus) == 1 else None,
        digest=None if isinstance(candidate.digest, Unknown) else candidate.digest,
        pid=pid,
        owner=owner,
    )


def _term_s(candidate: RouteCandidate) -> float:
    eta_s = candidate.eta_s
    if candidate.tier <= 2:
        return RESIDENT_S
    return (UNKNOWN_LOAD_S if isinstance(eta_s, Unknown) else max(0.0, eta_s)) + AFTER_LOAD_S
