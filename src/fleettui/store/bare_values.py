"""Records as JSON of bare field values behind the checksum of their names.

What another version wrote, with other fields, is never read as ours.
"""

from __future__ import annotations

from zlib import crc32

from fleettui.model.unknown import Unknown
from fleettui.store.json_text import read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class BareValues:
    """Text of records of these classes, which may hold one another, Unknown, and tuples of plain values."""

    def __init__(self, *classes: Any) -> None:
        self._classes = classes
        names = ";".join(",".join(cls.__slots__) for cls in classes)
        self._format = crc32(names.encode())

    def encode(self, record: Any) -> str:
        """JSON text of a record."""
        import json

        return json.dumps([self._format, *self._values_of(record)], separators=(",", ":"))

    def decode(self, text: object, cls: Any) -> Any:
        """The record of that class of `encode`'s text; None for any other. Never raises."""
        try:
            values = read_json(text) if isinstance(text, str) else None
            if not isinstance(values, list) or not values or values[0] != self._format:
                return None
            return self._make(cls, values[1:])
        except (ValueError, TypeError, LookupError, RecursionError):
            return None

    def _values_of(self, record: Any) -> list[Any]:
        return [self._write(getattr(record, name)) for name in record.__slots__]

    def _write(self, value: Any) -> Any:
        """`{"": reason}` for Unknown, `{"n": fields}` for the n-th class, a list for a tuple."""
        if isinstance(value, Unknown):
            return {"": value.reason}
        if isinstance(value, self._classes):
            return {str(self._classes.index(type(value))): self._values_of(value)}
        return list(value) if isinstance(value, tuple) else value

    def _read(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(value)
        if not isinstance(value, dict):
            return value
        ((key, content),) = value.items()
        return Unknown(content) if not key else self._make(self._classes[int(key)], content)

    def _make(self, cls: Any, values: list[Any]) -> Any:
        if len(values) != len(cls.__slots__):
            raise ValueError("another number of fields")
        return cls(*map(self._read, values))
