"""VRAM that loads of ours took, kept for each machines folder by machine, weights, context and cards."""

from __future__ import annotations

import os

from fleettui.decide.kv_cache import BYTES_OF_32, CacheTypes
from fleettui.decide.model_need import SeenCopy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleettui.decide.kv_cache import KvType
    from fleettui.store.database import Store

_KEPT_PER_DIGEST = 64
"""Of the newest; a fleet loads one model at a handful of contexts."""


def record_measured_need(
    store: Store, machines_dir: str, digest: str, copy: SeenCopy, measured_at: float
) -> None:
    """Keep what a load took on the machine `copy.where`; a later one of the same kind replaces it.

    Raises StoreError.
    """
    with store.transaction() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO measured_needs (machines_dir, machine, digest, context, gpus, "
            "vram_bytes, parallel, cache_types, measured_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                os.path.realpath(machines_dir),
                copy.where,
                digest,
                copy.context,
                copy.gpus,
                copy.vram_bytes,
                copy.parallel,
                f"{copy.types.key}/{copy.types.value}",
                measured_at,
            ),
        )


def load_measured(store: Store, machines_dir: str, digests: Iterable[str]) -> dict[str, tuple[SeenCopy, ...]]:
    """What loads of these weights took, newest first, by digest. Raises StoreError."""
    folder = os.path.realpath(machines_dir)
    found: dict[str, tuple[SeenCopy, ...]] = {}
    with store.transaction("DEFERRED") as connection:
        if not store.has_table("measured_needs"):
            return found
        for digest in dict.fromkeys(digests):
            rows = connection.execute(
                "SELECT machine, context, gpus, vram_bytes, parallel, cache_types FROM measured_needs "
                "WHERE machines_dir = ? AND digest = ? ORDER BY measured_at DESC LIMIT ?",
                (folder, digest, _KEPT_PER_DIGEST),
            )
            copies = tuple(copy for copy in map(_copy_of, rows) if copy is not None)
            if copies:
                found[digest] = copies
    return found


def _copy_of(row: tuple[str, int, int, int, int | None, str]) -> SeenCopy | None:
    machine, context, gpus, vram_bytes, parallel, types = row
    key, _, value = types.partition("/")
    if key not in BYTES_OF_32 or value not in BYTES_OF_32:
        return None
    return SeenCopy(vram_bytes, context, parallel, CacheTypes(_kv(key), _kv(value)), gpus, machine)


def _kv(name: str) -> KvType:
    return next(kind for kind in BYTES_OF_32 if kind == name)
