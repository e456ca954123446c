"""Everything that a model can be called: on engines, on disks, in machine files, in the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fleettui.model.catalog import Catalog
from fleettui.model.names import canonical_name
from fleettui.model.order import natural_key
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.completion import shared_start
from fleettui.view.list_lines import in_signs
from fleettui.view.route_rows import RouteLayout, RouteRow
from fleettui.view.text import cell_width, clean, fit
from fleettui.view.units import count

_NAME_MOST = 48


class KnownModel(NamedTuple):
    """One name, and on how many machines it is what."""

    name: str
    """As it was spelled first."""
    loaded: int = 0
    installed: int = 0
    declared: int = 0
    is_in_catalog: bool = False
    here: int = 0
    """2: the machine that one came from has it loaded; 1: it has it on its disk or declared."""


class _Names(NamedTuple):
    """The names on one machine, by canonical name, and what they were read from."""

    source: tuple[object, ...]
    loaded: dict[str, str]
    installed: dict[str, str]
    declared: dict[str, str]


class NameIndex:
    """The names of a fleet; machines whose lists are the same as before are not read again."""

    def __init__(self) -> None:
        self._kept: dict[str, _Names] = {}
        self._made_of: tuple[object, ...] | None = None
        self._models: tuple[KnownModel, ...] = ()

    def models_of(
        self, fleet: FleetSnapshot, catalog: Catalog, here: str | None = None
    ) -> tuple[KnownModel, ...]:
        """All names: those of the machine `here` first, then what is loaded, installed, declared."""
        made_of = (fleet.seq, catalog, here)
        if self._made_of != made_of:
            self._made_of = made_of
            self._kept = {item.name: self._names_of(item) for item in fleet.machines}
            models = tuple(_merge(self._kept, catalog, here))
            if models != self._models:  # else the same object: nothing to draw anew
                self._models = models
        return self._models

    def _names_of(self, snapshot: MachineSnapshot) -> _Names:
        kept = self._kept.get(snapshot.name)
        source = (snapshot.machine, *(part for e in snapshot.engines for part in (e.loaded, e.installed)))
        if kept is not None and _is_same(kept.source, source):
            return kept
        local = [model for model in snapshot.installed if model.remote_host is None]
        return _Names(
            source,
            _spelled(copy.name for copy in snapshot.loaded),
            _spelled(model.name for model in local),
            _spelled(snapshot.machine.models),
        )


def _is_same(old: tuple[object, ...], new: tuple[object, ...]) -> bool:
    """The very same objects: nothing was read anew."""
    return len(old) == len(new) and all(one is other for one, other in zip(old, new, strict=True))


def _spelled(names: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(canonical_name(name), name)
    return found


def _merge(machines: dict[str, _Names], catalog: Catalog, here: str | None) -> list[KnownModel]:
    counts: dict[str, list[int]] = {}
    spelled: dict[str, str] = {}
    for names in machines.values():
        for place, part in enumerate((names.loaded, names.installed, names.declared)):
            for key, name in part.items():
                found = counts.get(key)
                if found is None:
                    found = counts[key] = [0, 0, 0]
                    spelled[key] = name
                found[place] += 1
    in_catalog = catalog_names(catalog)
    own = machines.get(here) if here is not None else None
    ours: dict[str, int] = {}
    if own is not None:
        ours = dict.fromkeys((*own.installed, *own.declared), 1) | dict.fromkeys(own.loaded, 2)
    for key, name in in_catalog.items():
        spelled.setdefault(key, name)
    models = [
        KnownModel(name, loaded, installed, declared, key in in_catalog, ours.get(key, 0))
        for key, name in spelled.items()
        for loaded, installed, declared in (counts.get(key, (0, 0, 0)),)
    ]
    models.sort(key=lambda item: (-item.here, not item.loaded, not item.installed, natural_key(item.name)))
    return models


def catalog_names(catalog: Catalog) -> dict[str, str]:
    """Every name of the catalog by its canonical form: ids first, then those of engines."""
    names = [model.id for model in catalog.models]
    names += [name for model in catalog.models for _, own in model.names for name in own]
    return _spelled(names)


def matching_models(models: Sequence[KnownModel], typed: str) -> list[KnownModel]:
    """Those that have every typed word: names that begin with the first come first."""
    words = typed.casefold().split()
    if not words:
        return list(models)
    found = [model for model in models if all(word in model.name.casefold() for word in words)]
    exact = canonical_name(typed)
    found.sort(
        key=lambda model: (
            canonical_name(model.name) != exact,
            not model.name.casefold().startswith(words[0]),
        )
    )
    return found


def named_models(models: Sequence[KnownModel], names: Sequence[str]) -> list[KnownModel]:
    """Those of these names, in the order of the names."""
    known = {model.name: model for model in models} if names else {}
    return [known.get(name, KnownModel(name)) for name in names]


def complete_model(models: Sequence[KnownModel], typed: str) -> str:
    """The name as far as all that begin with it agree; the one that has it where only one does."""
    text = typed.strip()
    starting = [model.name for model in models if model.name.casefold().startswith(text.casefold())]
    if starting:
        return shared_start(starting)
    found = matching_models(models, typed)
    return found[0].name if len(found) == 1 else typed


def model_rows(models: Sequence[KnownModel], layout: RouteLayout) -> list[RouteRow]:
    """A line for each model to choose from."""
    longest = max((cell_width(clean(model.name)) for model in models), default=0)
    width = min(max(longest, len("model")), _NAME_MOST, max(12, layout.width // 2))
    return [RouteRow(model.name, "model", model.name, _cells(model, width, layout)) for model in models]


def model_header() -> Cells:
    """Title above those lines."""
    return (Cell("   model", "title"),)


def _cells(model: KnownModel, width: int, layout: RouteLayout) -> Cells:
    parts: list[tuple[str, Tone]] = []
    if model.loaded:
        parts.append((f"loaded on {model.loaded}", "good"))
    if model.installed:
        parts.append((f"installed on {model.installed}", "plain"))
    if model.declared:
        parts.append((f"declared by {count(model.declared, 'file')}", "dim"))
    if model.is_in_catalog and not parts:
        parts.append(("in the catalog", "dim"))
    mark = Cell(layout.glyphs.tagged, "accent") if model.here else Cell(" ")
    name = fit(clean(model.name), width, layout.glyphs.ellipsis)
    cells: list[Cell] = [mark, Cell("  "), Cell(name, "strong" if model.loaded else "plain")]
    for text, tone in parts:
        cells += [Cell("   " if len(cells) == 3 else "  "), Cell(text, tone)]
    return in_signs(tuple(cells), layout)
