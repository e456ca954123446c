"""Resident copies with the longest context of their model, which `/api/ps` leaves out."""

from __future__ import annotations

from collections.abc import Mapping

from fleettui.model.readings import EngineReading, LoadedModel, ModelTraits
from fleettui.model.record import replace
from fleettui.model.unknown import Maybe, Unknown

_NOT_KNOWN = Unknown("not told by the engine")


def fill_longest_contexts(reading: EngineReading, known: Mapping[str, int]) -> EngineReading:
    """The reading with `traits.max_context` of its copies, by the list of installed models, else by `known`.

    `known`: tokens by digest. The same object where there is nothing to fill.
    """
    if reading.kind != "ollama" or isinstance(reading.loaded, Unknown):
        return reading
    copies = tuple([_filled(copy, reading, known) for copy in reading.loaded])
    is_same = all(new is old for new, old in zip(copies, reading.loaded, strict=True))
    return reading if is_same else replace(reading, loaded=copies)


def _filled(copy: LoadedModel, reading: EngineReading, known: Mapping[str, int]) -> LoadedModel:
    traits = copy.traits
    if isinstance(copy.digest, Unknown) or (traits and not isinstance(traits.max_context, Unknown)):
        return copy
    tokens = _listed(copy.digest, reading)
    if isinstance(tokens, Unknown):
        tokens = known.get(copy.digest, _NOT_KNOWN)
    if isinstance(tokens, Unknown):
        return copy
    return replace(copy, traits=replace(traits or ModelTraits(), max_context=tokens))


def _listed(digest: str, reading: EngineReading) -> Maybe[int]:
    if isinstance(reading.installed, Unknown):
        return _NOT_KNOWN
    for model in reading.installed:
        if model.digest == digest and model.traits is not None:
            return model.traits.max_context
    return _NOT_KNOWN
