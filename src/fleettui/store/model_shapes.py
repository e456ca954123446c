"""What weights are made of, kept by digest: the same on every machine of every fleet, asked once.

A row of another version is never read as one of this; it is asked again.
"""

from __future__ import annotations

from fleettui.model.model_shape import AttentionShape, ModelShape, StateShape, TensorSums
from fleettui.store.bare_values import BareValues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleettui.store.database import Store

SHAPE_TEXT = BareValues(ModelShape, AttentionShape, StateShape, TensorSums)
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
                shape = SHAPE_TEXT.decode(payload, ModelShape)
                if shape is not None:
                    found[digest] = shape
    return found


def save_shape(store: Store, digest: str, shape: ModelShape, read_at: float) -> None:
    """Keep the shape of these weights; `read_at` in epoch seconds. Raises StoreError."""
    with store.transaction() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO model_shapes (digest, read_at, payload) VALUES (?, ?, ?)",
            (digest, read_at, SHAPE_TEXT.encode(shape)),
        )
