"""What weights are made of, kept by digest: the same on every machine of every fleet, asked once.

A row is JSON of bare field values behind the checksum of their names, so that one of another version is never
read as one of this; it is asked again.
"""

from __future__ import annotations

from zlib import crc32

from fleettui.model.model_shape import AttentionShape, ModelShape, StateShape, TensorSums
from fleettui.model.unknown import Unknown
from fleettui.store.json_text import read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from fleettui.store.database import Store

_PARTS: tuple[Any, ...] = (AttentionShape, StateShape, TensorSums)
_NAMES = ";".join(",".join(cls.__slots__) for cls in (ModelShape, *_PARTS))
_FORMAT = crc32(f"1;{_NAMES}".encode())
_ROWS_AT_ONCE = 500
"""SQLite takes 999 values in one statement where it is old."""


def load_shapes(store: Store, digests: Iterable[str]) -> dict[str, ModelShape]:
    """The shapes of these weights by digest, as far as they are known. Raises StoreError."""
    wanted = list(dict.fromkeys(digests))
    found: dict[str, ModelShape] = {}
    with store.transaction("DEFERRED") as connection:
        if not wanted or not store.has_table("model_shapes"):
            return found
        for start in range(0, len(wanted), _ROWS_AT_ONCE):
            some = wanted[start : start + _ROWS_AT_ONCE]
            rows = connection.execute(
                f"SELECT digest, payload FROM model_shapes WHERE digest IN ({','.join('?' * len(some))})",  # noqa: S608
                some,
            )
            for digest, payload in rows:
                shape = decode_shape(payload)
                if shape is not None:
                    found[digest] = shape
    return found


def save_shape(store: Store, digest: str, shape: ModelShape, read_at: float) -> None:
    """Keep the shape of these weights; `read_at` in epoch seconds. Raises StoreError."""
    with store.transaction() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO model_shapes (digest, read_at, payload) VALUES (?, ?, ?)",
            (digest, read_at, encode_shape(shape)),
        )


def encode_shape(shape: ModelShape) -> str:
    """JSON text of a shape."""
    import json

    return json.dumps([_FORMAT, *_values_of(shape)], separators=(",", ":"))


def decode_shape(text: object) -> ModelShape | None:
    """The shape of `encode_shape`'s text; None for any other. Never raises."""
    try:
        values = read_json(text) if isinstance(text, str) else None
        if not isinstance(values, list) or len(values) != len(ModelShape.__slots__) + 1:
            return None
        return ModelShape(*map(_read, values[1:])) if values[0] == _FORMAT else None
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def _values_of(part: Any) -> list[Any]:
    return [_write(getattr(part, name)) for name in part.__slots__]


def _write(value: Any) -> Any:
    """`{"": reason}` for Unknown, `{"n": fields}` for the n-th part, a list for a tuple."""
    if isinstance(value, Unknown):
        return {"": value.reason}
    if isinstance(value, _PARTS):
        return {str(_PARTS.index(type(value))): _values_of(value)}
    return list(value) if isinstance(value, tuple) else value


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, dict):
        return value
    ((key, content),) = value.items()
    if not key:
        return Unknown(content)
    cls = _PARTS[int(key)]
    if len(content) != len(cls.__slots__):
        raise ValueError("another number of fields")
    return cls(*map(_read, content))
