"""The catalog as a running fleettui read it last, so that a warm `--route` needs no YAML.

A row is JSON of bare field values behind the checksum of their names, so that one of another version is never
read as one of this: names are then looked for without the catalog, until it is stored anew.
"""

from __future__ import annotations

import os
from zlib import crc32

from fleettui.model.catalog import EMPTY_CATALOG, Catalog, CatalogEngine, CatalogModel
from fleettui.model.unknown import NOT_READ, Unknown
from fleettui.store.json_text import read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fleettui.store.database import Store

_NAMES = ";".join(",".join(cls.__slots__) for cls in (Catalog, CatalogModel, CatalogEngine))
_FORMAT = crc32(f"1;{_NAMES}".encode())


def save_catalog(store: Store, machines_dir: str, catalog: Catalog, written_at: float) -> None:
    """Keep the catalog of that fleet; `written_at` in epoch seconds. Raises StoreError."""
    with store.transaction() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO catalogs (machines_dir, written_at, payload) VALUES (?, ?, ?)",
            (os.path.realpath(machines_dir), written_at, encode_catalog(catalog)),
        )


def load_catalog(store: Store, machines_dir: str) -> Catalog:
    """The catalog of that fleet; an empty one where none is stored. Raises StoreError."""
    with store.transaction("DEFERRED") as connection:
        if not store.has_table("catalogs"):
            return EMPTY_CATALOG
        row = connection.execute(
            "SELECT payload FROM catalogs WHERE machines_dir = ?", (os.path.realpath(machines_dir),)
        ).fetchone()
    return EMPTY_CATALOG if row is None else decode_catalog(row[0])


def encode_catalog(catalog: Catalog) -> str:
    """JSON text of a catalog."""
    models = [
        (
            model.id,
            model.kind,
            _write(model.vram_gib),
            model.min_cc,
            model.engines,
            _write(model.context),
            model.has_lora,
            model.names,
            model.keep,
            model.num_ctx,
        )
        for model in catalog.models
    ]
    engines = [(engine.name, engine.min_cc, engine.runs_on_cpu) for engine in catalog.engines]
    import json

    return json.dumps([_FORMAT, catalog.file, models, engines], separators=(",", ":"))


def decode_catalog(text: object) -> Catalog:
    """The catalog of `encode_catalog`'s text; an empty one for any other. Never raises."""
    try:
        values = read_json(text) if isinstance(text, str) else None
        if not isinstance(values, list) or values[0] != _FORMAT:
            return EMPTY_CATALOG
        _, file, models, engines = values
        return Catalog(
            tuple([_model(*model) for model in models]),
            tuple([CatalogEngine(name, _pair(cc), on_cpu) for name, cc, on_cpu in engines]),
            file,
        )
    except (ValueError, TypeError, LookupError, RecursionError):
        return EMPTY_CATALOG


def _model(
    id: str,
    kind: str,
    vram_gib: Any,
    cc: Any,
    engines: Any,
    context: Any,
    has_lora: bool,
    names: Any,
    keep: int,
    num_ctx: int | None,
) -> CatalogModel:
    return CatalogModel(
        id,
        kind,
        _read(vram_gib),
        _pair(cc),
        tuple(engines),
        _read(context),
        has_lora,
        tuple([(engine, tuple(there)) for engine, there in names]),
        keep,
        num_ctx,
    )


def _pair(cc: Any) -> tuple[int, int] | None:
    return None if cc is None else (cc[0], cc[1])


def _write(value: Any) -> Any:
    return None if isinstance(value, Unknown) else value


def _read(value: Any) -> Any:
    return NOT_READ if value is None else value
