"""What a role asks of a GPU, and how a GPU fails it."""

from __future__ import annotations

from fleettui.model.catalog import Catalog
from fleettui.model.placement import Capability, PlacementCode, PlanRole
from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe, Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

NO_CAPABILITY: Capability = (0, 0)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a role for each of its GPUs."""

    min_vram_gb: float
    role_cc: Capability
    engine_cc: Capability
    """Lowest of its engines."""
    engine: str
    """Which engine that is; empty: no bound."""
    max_cc: Capability | None

    @property
    def floor(self) -> Capability:
        """What counts of both."""
        return max(self.role_cc, self.engine_cc)


def bounds_of(role: PlanRole, catalog: Catalog) -> Bounds:
    """The role's own bounds and the lowest among its engines; a role for any engine has none of those."""
    cc, engine = lowest_cc(role.engines, catalog)
    return Bounds(role.min_vram_gb, role.min_cc or NO_CAPABILITY, cc, engine, role.max_cc)


def engine_cc(engine: str, catalog: Catalog) -> Capability:
    """The bound of an engine; (0, 0): none."""
    found = next((item for item in catalog.engines if item.name == engine), None)
    return NO_CAPABILITY if found is None else found.min_cc or NO_CAPABILITY


def lowest_cc(engines: Iterable[str], catalog: Catalog) -> tuple[Capability, str]:
    """The lowest bound among engines, and whose it is; (0, 0) and nothing where there is none."""
    bounds = [(engine_cc(engine, catalog), engine) for engine in engines]
    cc, engine = min(bounds, key=lambda item: item[0], default=(NO_CAPABILITY, ""))
    return (cc, engine) if cc > NO_CAPABILITY else (NO_CAPABILITY, "")


def failing_cc(bounds: Bounds, cc: Maybe[Capability]) -> tuple[PlacementCode, ...]:
    """By which bounds of compute capability it fails. An unknown one fails any bound above 0."""
    floor, ceiling = bounds.floor, bounds.max_cc
    if isinstance(cc, Unknown):
        has_bound = floor > NO_CAPABILITY or (ceiling is not None and ceiling > NO_CAPABILITY)
        return ("cc_unknown",) if has_bound else ()
    codes: list[PlacementCode] = []
    if cc < bounds.role_cc:
        codes.append("cc_low")
    if cc < bounds.engine_cc:
        codes.append("engine")
    if ceiling is not None and cc > ceiling:
        codes.append("cc_high")
    return tuple(codes)


def failing(bounds: Bounds, memory_gb: int, cc: Maybe[Capability]) -> tuple[PlacementCode, ...]:
    """All codes by which a GPU fails, whoever has taken it."""
    vram: tuple[PlacementCode, ...] = ("vram",) if memory_gb < bounds.min_vram_gb else ()
    return (*vram, *failing_cc(bounds, cc))
