"""The operator's catalog: models with their names and needs (models.yaml), and roles to plan (roles.yaml)."""

from __future__ import annotations

from fleettui.model.names import canonical_name
from fleettui.model.record import dataclass
from fleettui.model.unknown import NOT_READ, Maybe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fleettui.model.placement import PlanRole


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
    keep: int = 0
    """Copies that stay resident in the fleet while a machine is emptied; 0: no matter."""
    num_ctx: int | None = None
    """Tokens that fleettui names when it loads a copy on an Ollama; None: none, the server's own default."""

    def names_on(self, engine: str) -> tuple[str, ...]:
        """What it is called on engines of that kind; empty where the operator did not say."""
        for kind, names in self.names:
            if kind == engine:
                return names
        return ()

    @property
    def all_names(self) -> tuple[str, ...]:
        """Its id, then every name on any engine, each once."""
        return tuple(dict.fromkeys((self.id, *(name for _, names in self.names for name in names))))


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
    file: str = ""
    """The models.yaml it was read from; empty: there is none."""
    roles: tuple[PlanRole, ...] = ()
    """In the order of the file. Not kept in the state database: plans are made from the file."""
    roles_file: str = ""
    """The roles.yaml they were read from; empty: there is none."""


EMPTY_CATALOG = Catalog()


def find_in_catalog(catalog: Catalog, name: str) -> CatalogModel | None:
    """The model with that id, or with that name on some engine: Ollama's by its rules, all others whole.

    The reader of models.yaml lets no name stand for two models.
    """
    if not catalog.models:
        return None
    canonical = canonical_name(name)
    by_name = None
    for model in catalog.models:
        if model.id == name:
            return model
        for engine, names in model.names:
            if name in names or (engine == "ollama" and canonical in map(canonical_name, names)):
                by_name = by_name or model
    return by_name


def catalog_names(catalog: Catalog) -> list[str]:
    """Every id and name that the catalog knows."""
    return [name for model in catalog.models for name in model.all_names]
