"""Which models of the catalog fit where a copy stands."""

from __future__ import annotations

from fleettui.decide.placement.board import EPSILON, Board, Spot
from fleettui.decide.placement.bounds import NO_CAPABILITY, lowest_cc
from fleettui.model.catalog import Catalog, CatalogModel
from fleettui.model.placement import Capability, PlanRole
from fleettui.model.unknown import Maybe, Unknown

Candidate = tuple[float, str, Capability, bool]
"""(GiB, id, lowest capability, an engine of both runs on CPUs)."""


class Fitting:
    """Answers for one plan, remembered: most copies of a role have the same."""

    __slots__ = ("_candidates", "_catalog", "_cpu_engines", "_known")

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._cpu_engines = {engine.name for engine in catalog.engines if engine.runs_on_cpu}
        self._candidates: dict[tuple[str, ...], list[Candidate]] = {}
        self._known: dict[tuple[tuple[str, ...], float, Maybe[Capability] | None], tuple[str, ...]] = {}

    def models(self, board: Board, role: PlanRole, spot: Spot) -> tuple[str, ...]:
        """Ids, largest first, of the models that fit there beside what the other roles need."""
        if not spot.gpus:
            ram = board.pool.nodes[spot.node].memory_gb
            if isinstance(ram, Unknown):
                return ()
            others = sum(gb for name, gb in board.kept_gb[spot.node].items() if name != role.name)
            return self.find(role.engines, ram - others, None)
        gpus = [(rank, board.pool.gpus[rank].gpu) for rank in spot.gpus]
        room = sum(
            gpu.memory_gb - sum(gb for name, gb in board.tenants[rank] if name != role.name)
            for rank, gpu in gpus
        )
        known = [gpu.cc for _, gpu in gpus if not isinstance(gpu.cc, Unknown)]
        cc = min(known) if len(known) == len(gpus) else Unknown("cc of a GPU")
        return self.find(role.engines, room, cc)

    def find(self, engines: tuple[str, ...], room_gb: float, cc: Maybe[Capability] | None) -> tuple[str, ...]:
        """Models for any of the engines in so much room; `cc` None: on a CPU."""
        key = (engines, room_gb, cc)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = tuple(
                id
                for gb, id, floor, has_cpu in self._models_of(engines)
                if gb <= room_gb + EPSILON and (has_cpu if cc is None else _reaches(cc, floor))
            )
        return found

    def _models_of(self, engines: tuple[str, ...]) -> list[Candidate]:
        found = self._candidates.get(engines)
        if found is None:
            made = (self._candidate(model, engines) for model in self._catalog.models)
            found = sorted((item for item in made if item is not None), key=lambda item: (-item[0], item[1]))
            self._candidates[engines] = found
        return found

    def _candidate(self, model: CatalogModel, engines: tuple[str, ...]) -> Candidate | None:
        if isinstance(model.vram_gib, Unknown):
            return None  # nobody can say that it fits
        common = common_engines(engines, model.engines)
        if common is None:
            return None
        runs_on_cpu = bool(self._cpu_engines.intersection(common) if common else self._cpu_engines)
        floor = max(model.min_cc or NO_CAPABILITY, lowest_cc(common, self._catalog)[0])
        return model.vram_gib, model.id, floor, runs_on_cpu


def common_engines(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...] | None:
    """Engines of both, where nothing means any; None: they have none in common."""
    if not one or not other:
        return one or other
    return tuple(engine for engine in one if engine in other) or None


def _reaches(cc: Maybe[Capability], floor: Capability) -> bool:
    return floor == NO_CAPABILITY if isinstance(cc, Unknown) else cc >= floor
