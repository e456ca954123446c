"""Placement: what is planned (nodes, roles) and the plan. `node`, `copy` and `role` are its fixed words.

Sizes in GiB, as whole numbers where a card or a machine is measured: 20475 MiB are 20.
"""

from __future__ import annotations

from fleettui.model.literal import Literal
from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe, Unknown

Capability = tuple[int, int]
"""Compute capability: (8, 9) is less than (8, 10)."""

Prefer = Literal["largest", "smallest_fitting"]

PlacementCode = Literal[
    "no_gpu",
    "vram",
    "cc_low",
    "cc_high",
    "cc_unknown",
    "engine",
    "all_taken",
    "no_cpu_node",
    "ram",
    "share_unplaced",
    "share_full",
    "disabled",
    "excluded",
]
"""Why a copy is not there. The last two are said of single GPUs only: no role is unplaced for them alone.

engine: below the lowest compute capability of the role's engines; cc_low: below the role's own bound."""

PLACEMENT_CODES: tuple[PlacementCode, ...] = (
    "no_gpu",
    "vram",
    "cc_low",
    "engine",
    "cc_high",
    "cc_unknown",
    "share_full",
    "share_unplaced",
    "all_taken",
    "disabled",
    "excluded",
    "no_cpu_node",
    "ram",
)
"""In the order in which they are told of one GPU; the first one counts in a summary."""

PlanMethod = Literal["greedy", "optimal", "heuristic"]
"""heuristic: optimal was asked for, and there were too many copies of several GPUs to search them all."""


@dataclass(frozen=True, slots=True)
class PlanGpu:
    """One GPU of a profile."""

    index: int
    name: str
    memory_gb: int
    cc: Maybe[Capability] = Unknown("the driver does not tell compute capabilities")
    disabled: bool = False
    """The operator keeps it out of plans."""


@dataclass(frozen=True, slots=True)
class PlanNode:
    """One machine that may take copies."""

    name: str
    memory_gb: Maybe[int] = Unknown("no profile")
    """RAM."""
    gpus: tuple[PlanGpu, ...] = ()
    cpu_roles: bool = True
    """False: no copy runs on its CPU."""
    unavailable: str = ""
    """Why nothing is planned on it: `pending`, `maintenance`, `draining`, `drained`, `no profile`; empty: it
    is plannable."""
    is_offline: bool = False
    """Planned by its stored profile."""


@dataclass(frozen=True, slots=True)
class PlanRole:
    """One role of roles.yaml."""

    name: str
    engines: tuple[str, ...] = ()
    """Any of them; empty: any at all."""
    min_vram_gb: float = 0
    """Inclusive; on each GPU of a copy."""
    min_cc: Capability | None = None
    """Inclusive."""
    max_cc: Capability | None = None
    """Inclusive."""
    gpu: bool = True
    """False: its copies run on CPUs."""
    min_ram_gb: float = 0
    """Reserved for each copy that runs on a CPU."""
    gpus: int = 1
    """GPUs of one node for each copy, all or nothing."""
    prefer: Prefer = "smallest_fitting"
    count: int = 1
    """Copies; 0: switched off."""
    slots: int = 1
    priority: float = 100
    """Lower goes first."""
    share_with: str | None = None
    """Role on whose GPU its copies run too."""
    cpu_fallback: bool = False
    """A copy without a GPU may run on a CPU."""
    position: int = 0
    """Place in roles.yaml; equal priorities go by it, then by the order they are given in."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Where one copy of a role belongs."""

    role: str
    copy: int
    """From 0."""
    node: str
    gpus: tuple[int, ...] = ()
    """Indices of its GPUs; empty: it runs on the CPU."""
    shared_with: str | None = None
    """Role that has taken that GPU (or node), at the end of a chain."""
    fallback: bool = False
    """It wanted a GPU and runs on a CPU."""
    slots: int = 1
    models_fitting: tuple[str, ...] = ()
    """Ids of the catalog, largest first."""

    @property
    def label(self) -> str:
        """`chat/0`."""
        return f"{self.role}/{self.copy}"

    @property
    def place(self) -> str:
        """`n1/0`, `n1/0+1`, or `n1` for a CPU."""
        return place_label(self.node, self.gpus)


def place_label(node: str, gpus: tuple[int, ...] = ()) -> str:
    """`n1/0`, `n1/0+1`, or `n1` for a CPU."""
    return f"{node}/{'+'.join(map(str, gpus))}" if gpus else node


@dataclass(frozen=True, slots=True)
class GpuMiss:
    """Why a copy is not on one GPU of the inventory."""

    node: str
    gpu_index: int
    codes: tuple[PlacementCode, ...]
    """All of them; the first one counts in the summary."""
    reason: str
    """In words, with figures."""


@dataclass(frozen=True, slots=True)
class UnplacedRole:
    """Copies of a role for which there is no place."""

    role: str
    missing: int
    """Copies."""
    code: PlacementCode
    reason: str
    """The summary: `12 GPUs: 5 too small, 3 cc below 7.5, 4 taken by llm-main x2, llm-small x2`."""
    per_gpu: tuple[GpuMiss, ...] = ()
    """One for each GPU of the inventory."""
    nearest: str = ""
    """The nearest miss: `pve3/1 has 16 GB of the 20`."""
    fixes: tuple[str, ...] = ()
    """What would give a missing copy a place, least trouble first: `llm-small/0 moved to pve46/0`."""


@dataclass(frozen=True, slots=True)
class DisabledGpu:
    """A GPU that the operator keeps out of plans."""

    node: str
    gpu_index: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class ExcludedNode:
    """A node that takes no copies now."""

    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class PlacementPlan:
    """The whole plan. The same input gives an equal one, in whatever order nodes and GPUs were given."""

    assignments: tuple[Assignment, ...] = ()
    """In the order of the queue, then by copy."""
    unplaced: tuple[UnplacedRole, ...] = ()
    """One for each role with a missing copy, in the order of the queue."""
    disabled_gpus: tuple[DisabledGpu, ...] = ()
    excluded_nodes: tuple[ExcludedNode, ...] = ()
    warnings: tuple[str, ...] = ()
    switched_off: tuple[str, ...] = ()
    """Roles with count 0."""
    method: PlanMethod = "greedy"

    @property
    def missing(self) -> int:
        """Copies without a place."""
        return sum(item.missing for item in self.unplaced)
