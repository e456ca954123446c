"""Numbers that keep the digits the operator wrote: `1.10` stays `1.10` on its way through."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MARK = "\ud800"
"""A lone surrogate: no text of ours holds one, so it marks a literal beyond doubt."""


class WrittenNumber(float):
    """A float whose shortest form is not what the file says; counts and compares as the float."""

    __slots__ = ("text",)
    text: str
    """The digits as written; always a valid JSON number."""

    def __new__(cls, text: str) -> WrittenNumber:
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"WrittenNumber({self.text!r})"

    def __reduce__(self) -> tuple[type[WrittenNumber], tuple[str]]:
        return WrittenNumber, (self.text,)


def read_float(text: str) -> float:
    """The float of a JSON number, with its digits where they would get lost. For json's `parse_float`."""
    value = float(text)
    return value if repr(value) == text else WrittenNumber(text)


def dump_json(value: Any, **options: Any) -> str:
    """`json.dumps(value, **options)` that prints every WrittenNumber as written."""
    import json

    if not _holds_written(value):
        return json.dumps(value, **options)
    import re

    text = json.dumps(_mark_written(value), **options)
    return re.sub('"(?:\\\\ud800|\ud800)([-+.0-9eE]+)"', r"\1", text)


def _holds_written(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_holds_written(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(_holds_written(item) for item in value)
    return isinstance(value, WrittenNumber)


def _mark_written(value: Any) -> Any:
    """The value with a marked text in place of each WrittenNumber."""
    if isinstance(value, WrittenNumber):
        return _MARK + value.text
    if isinstance(value, dict):
        return {key: _mark_written(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mark_written(item) for item in value]
    return value
