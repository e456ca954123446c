"""A plan as JSON and YAML have it, and a plan from such a document. Same plan, same bytes; no time in it."""

from __future__ import annotations

from fleettui.model.placement import (
    PLACEMENT_CODES,
    Assignment,
    DisabledGpu,
    ExcludedNode,
    GpuMiss,
    PlacementPlan,
    UnplacedRole,
)
from fleettui.model.placement_answers import PlanComparison
from fleettui.view.json_values import Document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA = 1


def plan_document(plan: PlacementPlan, comparison: PlanComparison | None = None) -> Document:
    """The whole plan. `comparison` adds how many copies have a GPU, greedy and optimal."""
    document: Document = {"schema": SCHEMA, "method": plan.method}
    return (
        document
        | counts_document(comparison)
        | {
            "assignments": [assignment_document(item) for item in plan.assignments],
            "unplaced": [_unplaced(item) for item in plan.unplaced],
            "disabled_gpus": [
                {"node": item.node, "gpu_index": item.gpu_index, "name": item.name}
                for item in plan.disabled_gpus
            ],
            "excluded_nodes": [{"node": item.node, "reason": item.reason} for item in plan.excluded_nodes],
            "switched_off": list(plan.switched_off),
            "warnings": list(plan.warnings),
        }
    )


def counts_document(comparison: PlanComparison | None) -> Document:
    """How many copies have a GPU, by each way of planning; nothing where that was not compared."""
    if comparison is None:
        return {}
    counts = {"greedy": comparison.greedy_copies, "optimal": comparison.optimal_copies}
    if comparison.kept_copies is not None:
        counts["kept"] = comparison.kept_copies
    return {"copies_on_gpus": counts}


def assignment_document(item: Assignment) -> Document:
    """One copy. A GPU, several, or neither on a CPU; `shared_with` and `fallback` where they apply."""
    document: Document = {"role": item.role, "copy": item.copy, "node": item.node}
    if len(item.gpus) == 1:
        document["gpu_index"] = item.gpus[0]
    elif item.gpus:
        document["gpu_indices"] = list(item.gpus)
    if item.shared_with is not None:
        document["shared_with"] = item.shared_with
    if item.fallback:
        document["fallback"] = True
    return document | {"slots": item.slots, "models_fitting": list(item.models_fitting)}


def _unplaced(item: UnplacedRole) -> Document:
    return {
        "role": item.role,
        "missing": item.missing,
        "code": item.code,
        "reason": item.reason,
        "nearest": item.nearest or None,
        "would_fit": list(item.fixes),
        "per_gpu": [
            {
                "node": miss.node,
                "gpu_index": miss.gpu_index,
                "code": miss.codes[0],
                "codes": list(miss.codes),
                "reason": miss.reason,
            }
            for miss in item.per_gpu
        ],
    }


def read_plan(document: object) -> PlacementPlan:
    """The plan of a document; unknown keys are left alone. Raises ValueError, which says what is wrong."""
    root = _Part(document, "")
    method = root.text("method", "greedy")
    if method not in ("greedy", "optimal", "heuristic"):
        raise ValueError(f"method is {method!r}; it must be greedy, optimal or heuristic")
    return PlacementPlan(
        tuple(_read_assignment(part) for part in root.parts("assignments", required=True)),
        tuple(_read_unplaced(part) for part in root.parts("unplaced")),
        tuple(
            DisabledGpu(part.text("node"), part.whole("gpu_index"), part.text("name", ""))
            for part in root.parts("disabled_gpus")
        ),
        tuple(ExcludedNode(p.text("node"), p.text("reason", "")) for p in root.parts("excluded_nodes")),
        root.texts("warnings"),
        root.texts("switched_off"),
        method,  # type: ignore[arg-type]
    )


def _read_assignment(part: _Part) -> Assignment:
    gpus = part.wholes("gpu_indices")
    if part.has("gpu_index"):
        gpus = (part.whole("gpu_index"),)
    return Assignment(
        part.text("role"),
        part.whole("copy"),
        part.text("node"),
        gpus,
        part.text("shared_with") if part.has("shared_with") else None,
        part.truth("fallback"),
        part.whole("slots", 1),
        part.texts("models_fitting"),
    )


def _read_unplaced(part: _Part) -> UnplacedRole:
    return UnplacedRole(
        part.text("role"),
        part.whole("missing"),
        part.code("code"),
        part.text("reason", ""),
        tuple(
            GpuMiss(p.text("node"), p.whole("gpu_index"), p.codes("codes"), p.text("reason", ""))
            for p in part.parts("per_gpu")
        ),
        part.text("nearest", "") if part.has("nearest") else "",
        part.texts("would_fit"),
    )


_MISSING: Any = object()


class _Part:
    """A map of the document; each look names its place when it fails."""

    __slots__ = ("_map", "_path")

    def __init__(self, value: object, path: str) -> None:
        if not isinstance(value, dict):
            raise ValueError(f"{path or 'the document'} is {_kind(value)}; a plan has a map of keys there")
        self._map = value
        self._path = path

    def has(self, key: str) -> bool:
        """It is there and not null."""
        return self._map.get(key) is not None

    def parts(self, key: str, *, required: bool = False) -> list[_Part]:
        """The maps of a list."""
        if required and key not in self._map:
            raise ValueError(f"{self._at(key)} is missing; is this a plan, as `--json` writes it?")
        return [_Part(item, f"{self._at(key)}[{place}]") for place, item in enumerate(self._list(key))]

    def text(self, key: str, default: str = _MISSING) -> str:
        """A text."""
        return self._typed(key, str, "a text", default)  # type: ignore[no-any-return]

    def whole(self, key: str, default: int = _MISSING) -> int:
        """A whole number from 0."""
        value = self._typed(key, int, "a whole number", default)
        if isinstance(value, bool) or value < 0:
            raise ValueError(f"{self._at(key)} is {value!r}; it must be a whole number from 0")
        return value  # type: ignore[no-any-return]

    def truth(self, key: str) -> bool:
        """true or false; left out: false."""
        return self._typed(key, bool, "true or false", False)  # type: ignore[no-any-return]

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(self._items(key, str, "a text"))

    def wholes(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers."""
        return tuple(self._items(key, int, "a whole number"))

    def code(self, key: str) -> Any:
        """One of the codes."""
        value = self.text(key)
        if value not in PLACEMENT_CODES:
            raise ValueError(f"{self._at(key)} is {value!r}; it must be one of {', '.join(PLACEMENT_CODES)}")
        return value

    def codes(self, key: str) -> Any:
        """Some of the codes."""
        return tuple(self.texts(key))

    def _items(self, key: str, wanted: type, words: str) -> list[Any]:
        for place, item in enumerate(self._list(key)):
            if not isinstance(item, wanted) or isinstance(item, bool):
                raise ValueError(f"{self._at(key)}[{place}] is {_kind(item)}; it must be {words}")
        return self._list(key)

    def _list(self, key: str) -> list[Any]:
        value = self._map.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise ValueError(f"{self._at(key)} is {_kind(value)}; it must be a list")
        return value

    def _typed(self, key: str, wanted: type, words: str, default: Any) -> Any:
        value = self._map.get(key, default)
        if value is _MISSING:
            raise ValueError(f"{self._at(key)} is missing; it must be {words}")
        if not isinstance(value, wanted):
            raise ValueError(f"{self._at(key)} is {_kind(value)}; it must be {words}")
        return value

    def _at(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key


def _kind(value: object) -> str:
    """What stands there, in words, short."""
    if value is None:
        return "empty"
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
