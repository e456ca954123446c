"""What `machines doctor` found: one small check after another, each with its evidence."""

from __future__ import annotations

from fleettui.model.literal import Literal
from fleettui.model.record import dataclass

CheckState = Literal["pass", "warn", "fail", "skip"]
Verdict = Literal["pass", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of one machine."""

    id: str
    """Stable, for scripts: `host_key`, `engine:ollama:11434`."""
    title: str
    """As shown: `host key`, `Ollama :11434`."""
    state: CheckState
    evidence: str
    """One line: what was seen, or why the check was skipped."""
    hint: str | None = None
    """What to do; only where the state is warn or fail."""
    took_ms: int | None = None
    """None where nothing was asked."""


@dataclass(frozen=True, slots=True)
class Checkup:
    """All checks of one machine; while they run, those that are done."""

    name: str
    """Of the machine; the file's where no machine could be read from it."""
    planned: tuple[str, ...]
    """Titles of all checks, in order."""
    results: tuple[CheckResult, ...] = ()
    """As many as are done, in the order of `planned`."""

    @property
    def verdict(self) -> Verdict:
        """The worst state so far; a skipped check says nothing."""
        states = {result.state for result in self.results}
        return "fail" if "fail" in states else "warn" if "warn" in states else "pass"

    @property
    def is_done(self) -> bool:
        return len(self.results) == len(self.planned)

    @property
    def took_ms(self) -> int:
        """Time of all checks together."""
        return sum(result.took_ms or 0 for result in self.results)
