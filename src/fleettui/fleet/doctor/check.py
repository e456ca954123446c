"""What a check is: a declared question with a verdict, the evidence for it and what to do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from fleettui.model.doctor import CheckState
from fleettui.model.record import dataclass
from fleettui.probes.clean import clean_text

if TYPE_CHECKING:
    from fleettui.fleet.doctor.context import Context

LIMIT_S = 3.0
"""Each check has so long."""
LINE_LIMIT = 300
"""Characters of evidence and hint."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one check came to."""

    state: CheckState
    evidence: str
    hint: str | None = None
    took_s: float | None = None
    """None: as long as the check ran."""


def passed(evidence: str, took_s: float | None = None) -> Outcome:
    """All is well."""
    return Outcome("pass", evidence, None, took_s)


def warned(evidence: str, hint: str, took_s: float | None = None) -> Outcome:
    """It works, and something is worth a look."""
    return Outcome("warn", evidence, hint, took_s)


def failed(evidence: str, hint: str, took_s: float | None = None) -> Outcome:
    """It does not work; checks that need it are skipped."""
    return Outcome("fail", evidence, hint, took_s)


def skipped(reason: str) -> Outcome:
    """There is nothing to check here."""
    return Outcome("skip", reason)


def split_advice(text: str) -> tuple[str, str]:
    """Evidence and hint of an error's one line, `what, where, why; what to do next`."""
    evidence, _, hint = text.partition("; ")
    return clean_text(evidence, LINE_LIMIT), clean_text(hint, LINE_LIMIT)


@dataclass(frozen=True, slots=True)
class Check:
    """One question to a machine."""

    id: str
    """Stable, for scripts."""
    title: str
    run: Callable[[Context], Awaitable[Outcome]]
    needs: tuple[str, ...] = ("file",)
    """Ids of checks that must not have failed."""
    skip_reason: Callable[[Context], str | None] = lambda context: None
    """Why this machine has nothing to check here; None: it has."""
    has_own_limit: bool = False
    """It bounds itself: it waits for its turn, which is not the machine's fault."""
