"""What is made of plans: greedy beside optimal, differences, the loss of a machine, findings of lint."""

from __future__ import annotations

from fleettui.model.literal import Literal
from fleettui.model.placement import Assignment, PlacementPlan
from fleettui.model.record import dataclass
from fleettui.model.unknown import NOT_READ, Maybe

ChangeKind = Literal["keep", "move", "add", "remove"]
LintCode = Literal["no_model", "unused_engine", "largest_blocks", "hair_above", "no_vram", "cpu_engine"]


@dataclass(frozen=True, slots=True)
class PlanComparison:
    """Both plans of one input. Tell both counts: `greedy 10, optimal 12`."""

    greedy: PlacementPlan
    optimal: PlacementPlan
    """Its method is `heuristic` where not all was searched."""
    greedy_copies: int
    """Copies on a GPU."""
    optimal_copies: int
    kept_copies: int | None = None
    """Of a plan that keeps a former one, where that is shown."""


@dataclass(frozen=True, slots=True)
class LoadedCopy:
    """A model that is loaded on a node now."""

    node: str
    model: str
    """Its id in the catalog, or its name on the engine."""
    gpus: tuple[int, ...] = ()
    """Indices of its GPUs; empty: on the CPU, or not known."""
    engine: str = ""
    size_gb: Maybe[float] = NOT_READ


@dataclass(frozen=True, slots=True)
class PlanChange:
    """What happens to one copy."""

    kind: ChangeKind
    role: str
    """Empty for a loaded model that is of no role."""
    copy: int
    before: Assignment | None = None
    after: Assignment | None = None
    model: str = ""
    """What is loaded, or has to go; empty: nobody knows."""
    load_gb: Maybe[float] = NOT_READ
    """0 for what is kept or removed."""
    seconds: Maybe[float] = NOT_READ
    """To load it."""


@dataclass(frozen=True, slots=True)
class PlanDiff:
    """The way from one plan, or from what is loaded, to another."""

    changes: tuple[PlanChange, ...] = ()
    """In the order of the new plan; then what is removed."""
    load_gb: float = 0
    """Sum of what is known."""
    seconds: float = 0
    """Nodes load side by side, each one copy after another; of what is known."""
    unknown: int = 0
    """Copies to load whose size nobody knows."""

    @property
    def has_changes(self) -> bool:
        """Something is to be done."""
        return any(item.kind != "keep" for item in self.changes)

    def count(self, kind: ChangeKind) -> int:
        """Changes of that kind."""
        return sum(item.kind == kind for item in self.changes)


@dataclass(frozen=True, slots=True)
class RoleLoss:
    """Copies of a role that have no place any more."""

    role: str
    missing: int
    """More than with all nodes."""


@dataclass(frozen=True, slots=True)
class NodeLoss:
    """The plan without one node."""

    node: str
    lost: tuple[Assignment, ...] = ()
    """Copies that stand on it with all nodes."""
    left_unplaced: tuple[RoleLoss, ...] = ()
    """Roles that then have fewer copies than with all nodes."""
    moved: int = 0
    """Copies on other nodes that would stand elsewhere."""

    @property
    def is_safe(self) -> bool:
        """The fleet goes on whole without it."""
        return not self.left_unplaced


@dataclass(frozen=True, slots=True)
class LintFinding:
    """Something in the catalog that is allowed and hardly meant."""

    code: LintCode
    subject: str
    """Name of the role, engine or model."""
    text: str
    """What it is, and what to do."""
