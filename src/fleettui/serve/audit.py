"""Who asked for a change, when, why, and what came of it: told in the timeline, refusals too."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fleettui.model.event import Event
from fleettui.probes.clean import clean_text
from fleettui.serve.rates import Rate

if TYPE_CHECKING:
    from fleettui.model.event import EventSeverity
    from fleettui.serve.answers import ApiError

REFUSALS_PER_S, REFUSALS_AT_ONCE = 0.1, 20
"""Of all clients together; who is refused all the time must not push out everything else."""

TEXT_CHARS = 500


class Audit:
    """`add` takes an event of the fleet's timeline."""

    def __init__(self, add: Callable[[Event], None], clock: Callable[[], float] = time.time) -> None:
        self._add = add
        self._clock = clock
        self._rate = Rate(REFUSALS_PER_S, REFUSALS_AT_ONCE)
        self._untold = 0

    def note(
        self,
        by: str,
        machine: str,
        action: str,
        status: int,
        *,
        why: str = "",
        reason: str | None = None,
        way: str = "HTTP",
    ) -> None:
        """An action that was tried: `action` says what, `why` what stood against it. Neither has anything
        that an unknown client wrote."""
        is_done = status < 400
        severity: EventSeverity = "note" if is_done else "warn"
        result = "done" if is_done else "failed"
        told = f': "{reason}"' if reason else ""
        text = f"asked by {way}: {action}{told}: {result}" + (f": {why}" if why else "")
        details = {"action": action, "result": result, "status": status, "reason": reason}
        self._tell(machine, severity, text, details, by)

    def note_refusal(self, by: str, address: str, action: str, error: ApiError, way: str = "HTTP") -> None:
        """A change, or a token, that was refused before anything was tried."""
        if self._rate.take(""):
            self._untold += 1
            return
        more, self._untold = self._untold, 0
        why = error.error["why"] or error.error["what"]
        text = f"refused by {way}: {action}: {why}" + (f"; {more} more were refused before" if more else "")
        details = {
            "action": action, "result": "refused", "status": error.status, "reason": None,
            "address": address, "code": error.error["code"], "more": more,
        }  # fmt: skip
        self._tell("", "warn", text, details, by)

    def _tell(
        self, machine: str, severity: EventSeverity, text: str, details: dict[str, Any], by: str
    ) -> None:
        subject = f"{by} {text}"[:TEXT_CHARS]
        text = clean_text(text, TEXT_CHARS)
        self._add(Event(self._clock(), machine, "action", severity, text, details, by, subject))
