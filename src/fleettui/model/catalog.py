"""The operator's catalog of models: their names on each engine, and what they need. File: models.yaml."""

from __future__ import annotations

from fleettui.model.record import dataclass
from fleettui.model.unknown import NOT_READ, Maybe


@dataclass(frozen=True, slots=True)
class CatalogModel:
    """One model of the catalog."""

    id: str
    kind: str = "llm"
    """`llm`, `embedding`, `reranker`, `tts`, …"""
    vram_gib: Maybe[float] = NOT_READ
    """Weights and the smallest KV cache."""
    min_cc: tuple[int, int] | None = None
    """Lowest compute capability."""
    engines: tuple[str, ...] = ()
    """Engines that can serve it; empty: any."""
    context: Maybe[int] = NOT_READ
    """Tokens."""
    has_lora: bool = False
    names: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """(engine, its names there)."""


@dataclass(frozen=True, slots=True)
class CatalogEngine:
    """Bounds of an engine, for all its models."""

    name: str
    min_cc: tuple[int, int] | None = None
    runs_on_cpu: bool = False


@dataclass(frozen=True, slots=True)
class Catalog:
    """All models that the operator described."""

    models: tuple[CatalogModel, ...] = ()
    engines: tuple[CatalogEngine, ...] = ()


EMPTY_CATALOG = Catalog()
