"""What became of the flags of machines when the operator changed them."""

from __future__ import annotations

from fleettui.model.record import dataclass
from fleettui.model.snapshot import MaintenanceFlag


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """The maintenance flag of one machine before and after a change; None: off."""

    name: str
    before: MaintenanceFlag | None
    after: MaintenanceFlag | None

    @property
    def is_changed(self) -> bool:
        """False where it stood so already."""
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class MaintenanceChange:
    """One change of one or more machines, with all that is needed to undo it."""

    results: tuple[MaintenanceResult, ...]
    """In the order in which the machines were named."""

    @property
    def changed(self) -> tuple[MaintenanceResult, ...]:
        """The machines whose flag is another one now."""
        return tuple(result for result in self.results if result.is_changed)
