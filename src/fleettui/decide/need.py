"""VRAM that a copy will take once it is loaded: all that is known of its weights, best basis first."""

from __future__ import annotations

from fleettui.decide.knowledge import RouteKnowledge
from fleettui.decide.model_need import GIB, MIB, ContextUse, ModelFacts, ModelNeed, SeenCopy, find_need
from fleettui.decide.natural import natural_key
from fleettui.decide.ollama_use import copy_settings
from fleettui.model.catalog import CatalogModel
from fleettui.model.model_shape import NOT_TOLD
from fleettui.model.readings import EngineReading, LoadedModel
from fleettui.model.route import VramNeed
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown
from fleettui.model.vram import card_memory

BASIS_WORDS = {
    "measured": "measured",
    "other machine": "as seen elsewhere",
    "tensors": "tensors and cache",
    "catalog": "catalog",
    "file size": "file size x 1.2 (assumed)",
}
_SEEN_KEPT = 8
"""Copies of one digest that are compared, the largest ones: a large fleet has hundreds that are alike."""


class Needs:
    """Needs of one model on the machines of a fleet; each is found once for all machines that are alike."""

    __slots__ = ("_facts", "_fleet", "_found", "_knowledge", "_seen")

    def __init__(self, fleet: FleetSnapshot, knowledge: RouteKnowledge) -> None:
        self._fleet = fleet
        self._knowledge = knowledge
        self._seen: dict[str, tuple[SeenCopy, ...]] = {}
        self._facts: dict[object, ModelFacts] = {}
        self._found: dict[object, Maybe[ModelNeed]] = {}

    def facts_of(
        self, digest: Maybe[str], file_bytes: Maybe[int], entry: CatalogModel | None = None
    ) -> ModelFacts:
        """All that is known of weights. `entry`: what the catalog says of the model."""
        key = (digest, file_bytes, None if entry is None else entry.id)
        facts = self._facts.get(key)
        if facts is None:
            vram_gib = NOT_TOLD if entry is None else entry.vram_gib
            catalog_bytes = vram_gib if isinstance(vram_gib, Unknown) else int(vram_gib * GIB)
            if isinstance(digest, Unknown):
                facts = ModelFacts(NOT_TOLD, file_bytes, catalog_bytes=catalog_bytes)
            else:
                facts = ModelFacts(
                    self._knowledge.shapes.get(digest, NOT_TOLD),
                    file_bytes,
                    tuple(self._knowledge.measured.get(digest, ())),
                    self._seen_copies(digest),
                    catalog_bytes,
                )
            self._facts[key] = facts
        return facts

    def find(self, facts: ModelFacts, use: ContextUse) -> Maybe[ModelNeed]:
        """What it takes when it is loaded like that."""
        key = (id(facts), use.context, use.parallel, use.types, use.has_flash_attention)
        need = self._found.get(key)
        if need is None:
            need = self._found[key] = find_need(facts, use)
        return need

    def _seen_copies(self, digest: str) -> tuple[SeenCopy, ...]:
        seen = self._seen.get(digest)
        if seen is None:
            seen = self._seen[digest] = seen_copies(self._fleet, digest)
        return seen


def seen_copies(fleet: FleetSnapshot, digest: str) -> tuple[SeenCopy, ...]:
    """Copies of these weights that lie on GPUs whole somewhere in the fleet, the largest first."""
    found: dict[tuple[int, int], tuple[MachineSnapshot, EngineReading]] = {}
    for snapshot in fleet.machines:
        for engine in snapshot.engines:
            if type(engine.loaded) is Unknown:
                continue
            for copy in engine.loaded:
                if copy.digest != digest:
                    continue
                key = _size_of(copy)
                before = None if key is None else found.get(key)
                if key is not None and (
                    before is None or natural_key(snapshot.name) < natural_key(before[0].name)
                ):
                    found[key] = snapshot, engine
    largest = sorted(found, reverse=True)[:_SEEN_KEPT]
    return tuple([_as_seen(*found[key], *key) for key in largest])


def _size_of(copy: LoadedModel) -> tuple[int, int] | None:
    """(VRAM, context) of a copy that tells what its weights take; None where it is partly in RAM, or nothing
    is told."""
    vram, context = copy.vram_bytes, copy.context
    if copy.engine != "ollama" or copy.state != "loaded" or copy.gpu_percent != 100:
        return None
    if isinstance(vram, Unknown) or isinstance(context, Unknown) or vram <= 0:
        return None
    return vram, context


def _as_seen(snapshot: MachineSnapshot, engine: EngineReading, vram_bytes: int, context: int) -> SeenCopy:
    parallel, types = copy_settings(snapshot, engine.port)
    gpus = _fewest_cards(snapshot, vram_bytes)
    return SeenCopy(vram_bytes, context, parallel, types, gpus, snapshot.name)


def _fewest_cards(snapshot: MachineSnapshot, vram_bytes: int) -> int:
    """How many of the machine's cards, largest first, so much needs at least."""
    cards = () if snapshot.gpu is None else snapshot.gpu.cards
    totals = [
        total for card in cards if not isinstance(total := card_memory(snapshot, card).total_mib, Unknown)
    ]
    room, count = 0, 0
    for total in sorted(totals, reverse=True):
        room, count = room + total * MIB, count + 1
        if room >= vram_bytes:
            break
    return max(1, count)


def vram_need(need: ModelNeed, gpus: int = 1) -> VramNeed:
    """The need on that many cards, with its basis in words."""
    return VramNeed(-(-need.total_bytes(gpus) // MIB), BASIS_WORDS[need.basis], need.text)
