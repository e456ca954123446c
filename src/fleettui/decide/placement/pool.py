"""The GPUs and nodes that a plan may use, in natural order."""

from __future__ import annotations

from fleettui.decide.natural import natural_key
from fleettui.model.literal import Literal
from fleettui.model.placement import Capability, DisabledGpu, ExcludedNode, PlanGpu, PlanNode
from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

Standing = Literal["", "disabled", "excluded"]
Kind = tuple[int, Maybe[Capability]]
"""What bounds look at: GPUs of equal memory and capability are one kind."""


@dataclass(frozen=True, slots=True)
class PoolGpu:
    """A GPU that may be taken. It is known by its rank: its place in the pool."""

    node: int
    """Place of its node among the plannable ones."""
    gpu: PlanGpu
    kind: int
    """Place among the kinds."""


@dataclass(frozen=True, slots=True)
class InventoryGpu:
    """Any GPU that was given."""

    node: PlanNode
    gpu: PlanGpu
    standing: Standing
    rank: int
    """In the pool; -1: it is not there."""


@dataclass(frozen=True, slots=True)
class Pool:
    """All that a plan may use."""

    nodes: tuple[PlanNode, ...]
    """Plannable, in natural order."""
    gpus: tuple[PoolGpu, ...]
    """By node, then index."""
    kinds: tuple[Kind, ...]
    by_kind: tuple[tuple[int, ...], ...]
    """Ranks of each kind, ascending."""
    inventory: tuple[InventoryGpu, ...]
    disabled: tuple[DisabledGpu, ...]
    excluded: tuple[ExcludedNode, ...]

    def place(self, rank: int) -> tuple[str, int]:
        """(node, index) of a GPU."""
        found = self.gpus[rank]
        return self.nodes[found.node].name, found.gpu.index

    def label(self, rank: int) -> str:
        """`pve46/0`."""
        node, index = self.place(rank)
        return f"{node}/{index}"


def build_pool(nodes: Iterable[PlanNode], include_unavailable: bool = False) -> Pool:
    """Every GPU of every plannable node."""
    ordered = sorted(nodes, key=lambda node: natural_key(node.name))
    plannable: list[PlanNode] = []
    gpus: list[PoolGpu] = []
    inventory: list[InventoryGpu] = []
    disabled: list[DisabledGpu] = []
    kinds: dict[Kind, int] = {}
    for node in ordered:
        is_out = bool(node.unavailable) and not include_unavailable
        for gpu in sorted(node.gpus, key=lambda gpu: gpu.index):
            standing: Standing = "excluded" if is_out else "disabled" if gpu.disabled else ""
            inventory.append(InventoryGpu(node, gpu, standing, -1 if standing else len(gpus)))
            if not standing:
                kind = kinds.setdefault((gpu.memory_gb, gpu.cc), len(kinds))
                gpus.append(PoolGpu(len(plannable), gpu, kind))
            elif standing == "disabled":
                disabled.append(DisabledGpu(node.name, gpu.index, gpu.name))
        if not is_out:
            plannable.append(node)
    by_kind: list[list[int]] = [[] for _ in kinds]
    for rank, item in enumerate(gpus):
        by_kind[item.kind].append(rank)
    excluded = (
        () if include_unavailable else (ExcludedNode(n.name, n.unavailable) for n in ordered if n.unavailable)
    )
    return Pool(
        tuple(plannable),
        tuple(gpus),
        tuple(kinds),
        tuple(map(tuple, by_kind)),
        tuple(inventory),
        tuple(disabled),
        tuple(excluded),
    )
