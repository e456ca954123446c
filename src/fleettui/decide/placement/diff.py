"""From one plan, or from what is loaded now, to another: what stays, moves, comes and goes."""

from __future__ import annotations

from fleettui.decide.eta import DISK_BYTES_S, START_S
from fleettui.model.catalog import EMPTY_CATALOG, Catalog
from fleettui.model.placement import Assignment, PlacementPlan
from fleettui.model.placement_answers import ChangeKind, LoadedCopy, PlanChange, PlanDiff
from fleettui.model.record import dataclass, field
from fleettui.model.unknown import Maybe, Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Loading:
    """What is known of loads."""

    catalog: Catalog = EMPTY_CATALOG
    models: Mapping[str, str] = field(default_factory=dict)
    """Role -> id of the model it serves; else the largest that fits is taken."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """By node: bytes a second of its last loads; else 1.5 GB/s are assumed."""

    def model(self, item: Assignment) -> str:
        """What a copy would load; empty: nobody knows."""
        return self.models.get(item.role) or (item.models_fitting[0] if item.models_fitting else "")

    def size_gb(self, model: str) -> Maybe[float]:
        """GiB of a model of the catalog."""
        found = next((item for item in self.catalog.models if item.id == model), None)
        return Unknown("no model of the catalog") if found is None else found.vram_gib

    def seconds(self, node: str, size_gb: Maybe[float]) -> Maybe[float]:
        """To load so much."""
        if isinstance(size_gb, Unknown):
            return size_gb
        return START_S + size_gb * 2**30 / self.rates.get(node, DISK_BYTES_S)


def diff_plans(before: PlacementPlan, after: PlacementPlan, loading: Loading) -> PlanDiff:
    """Copies of a role are alike: one that stands where the new plan wants one is kept."""
    old: dict[str, list[Assignment]] = {}
    for item in before.assignments:
        old.setdefault(item.role, []).append(item)
    stays: dict[tuple[str, int], Assignment] = {}
    for item in after.assignments:
        olds = old.get(item.role, [])
        same = next((other for other in olds if _is_same_place(other, item)), None)
        if same is not None:
            olds.remove(same)
            stays[item.role, item.copy] = same
    changes = []
    for item in after.assignments:
        same = stays.get((item.role, item.copy))
        olds = old.get(item.role, [])
        if same is not None:
            changes.append(_kept(same, item, loading.model(item)))
        elif olds:
            changes.append(_loaded("move", olds.pop(0), item, loading))
        else:
            changes.append(_loaded("add", None, item, loading))
    for item in before.assignments:
        if any(item is other for other in old.get(item.role, ())):
            changes.append(_removed(item, loading.model(item)))
    return _sum(changes)


def diff_loaded(loaded: Iterable[LoadedCopy], after: PlacementPlan, loading: Loading) -> PlanDiff:
    """A loaded model that fits a role stands for a copy of it; what stands for none has to go."""
    left = sorted(loaded, key=lambda copy: (copy.node, copy.gpus, copy.model))
    found: dict[tuple[str, int], LoadedCopy] = {}
    for is_match in (_is_there, _is_on_node, _is_of_role):
        for item in after.assignments:
            if (item.role, item.copy) in found:
                continue
            models = (loading.models[item.role],) if item.role in loading.models else item.models_fitting
            fitting = [one for one in left if one.model in models and is_match(one, item)]
            match = min(fitting, key=lambda one: models.index(one.model), default=None)
            if match is not None:
                left.remove(match)
                found[item.role, item.copy] = match
    changes = []
    for item in after.assignments:
        one = found.get((item.role, item.copy))
        if one is None:
            changes.append(_loaded("add", None, item, loading))
            continue
        now = Assignment(item.role, item.copy, one.node, one.gpus, models_fitting=(one.model,))
        if _is_there(one, item) or _is_on_node(one, item):
            changes.append(_kept(now, item, one.model))
        else:
            changes.append(_loaded("move", now, item, loading, one))
    changes += [_removed(Assignment("", 0, one.node, one.gpus), one.model) for one in left]
    return _sum(changes)


def _is_there(one: LoadedCopy, item: Assignment) -> bool:
    return one.node == item.node and one.gpus == item.gpus


def _is_on_node(one: LoadedCopy, item: Assignment) -> bool:
    """Nobody knows on which GPUs it is."""
    return one.node == item.node and not one.gpus


def _is_of_role(one: LoadedCopy, item: Assignment) -> bool:
    return True


def _is_same_place(one: Assignment, other: Assignment) -> bool:
    return one.node == other.node and one.gpus == other.gpus


def _kept(before: Assignment, after: Assignment, model: str) -> PlanChange:
    return PlanChange("keep", after.role, after.copy, before, after, model, 0.0, 0.0)


def _removed(before: Assignment, model: str) -> PlanChange:
    return PlanChange("remove", before.role, before.copy, before, None, model, 0.0, 0.0)


def _loaded(
    kind: ChangeKind,
    before: Assignment | None,
    after: Assignment,
    loading: Loading,
    one: LoadedCopy | None = None,
) -> PlanChange:
    """`one`: the loaded copy that moves; its own size counts where the catalog has none."""
    model = loading.model(after) if one is None else one.model
    size = loading.size_gb(model)
    if isinstance(size, Unknown) and one is not None:
        size = one.size_gb
    seconds = loading.seconds(after.node, size)
    return PlanChange(kind, after.role, after.copy, before, after, model, size, seconds)


def _sum(changes: list[PlanChange]) -> PlanDiff:
    gb, unknown = 0.0, 0
    by_node: dict[str, float] = {}
    for item in changes:
        if isinstance(item.load_gb, Unknown) or isinstance(item.seconds, Unknown):
            unknown += 1
            continue
        gb += item.load_gb
        if item.after is not None:
            by_node[item.after.node] = by_node.get(item.after.node, 0.0) + item.seconds
    return PlanDiff(tuple(changes), gb, max(by_node.values(), default=0.0), unknown)
