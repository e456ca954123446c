"""VRAM that a cold copy will take. The best basis that is known wins; each says what it is."""

from __future__ import annotations

from collections.abc import Callable

from fleettui.model.readings import InstalledModel
from fleettui.model.route import VramNeed
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown

FILE_SIZE_FACTOR = 1.2
"""Weights plus a default context and the compute graph; a rule of thumb until a measured need exists."""
_MIB = 1024 * 1024

NeedBasis = Callable[[MachineSnapshot, InstalledModel, "int | None"], "VramNeed | None"]
"""(machine, model on its disk, context) -> need, or None where this basis knows nothing."""


def need_from_file_size(
    snapshot: MachineSnapshot, model: InstalledModel, context: int | None
) -> VramNeed | None:
    """File size x 1.2, rounded up to a MiB."""
    if isinstance(model.size_bytes, Unknown) or model.size_bytes <= 0:
        return None
    return VramNeed(int(model.size_bytes * FILE_SIZE_FACTOR / _MIB) + 1, "file size x 1.2 (assumed)")


BASES: tuple[NeedBasis, ...] = (need_from_file_size,)
"""Best first."""


def predict_need(
    snapshot: MachineSnapshot, model: InstalledModel, context: int | None = None
) -> Maybe[VramNeed]:
    """VRAM that `model` will take when it is loaded on that machine."""
    for basis in BASES:
        need = basis(snapshot, model, context)
        if need is not None:
            return need
    return Unknown("file size not reported")
