"""How long a source may be late before that is a reason."""

from __future__ import annotations

from fleettui.model.snapshot import SourceStatus

LATE_LIMIT_S = 15.0


def is_long_late(status: SourceStatus, now: float) -> bool:
    """True when an answer has been due for longer than the limit."""
    return status.state == "late" and status.since is not None and now - status.since >= LATE_LIMIT_S
