"""JSON text -> values by the C scanner that json itself uses, without the package around it.

`import json` brings `re` and `enum` along: a tenth of what a warm `--route` imports, and it writes no JSON.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

try:
    import _json
except ImportError:  # not every Python has it
    _make_scanner: Any = None
else:
    _make_scanner = _json.make_scanner


class _Options:
    """What the scanner asks a `json.JSONDecoder` for."""

    __slots__ = (
        "memo",
        "object_hook",
        "object_pairs_hook",
        "parse_constant",
        "parse_float",
        "parse_int",
        "strict",
    )

    def __init__(self, object_hook: Any, parse_float: Any) -> None:
        self.strict = True
        self.object_hook = object_hook
        self.object_pairs_hook = None
        self.parse_float = parse_float
        self.parse_int = int
        self.parse_constant = float
        self.memo: dict[str, str] = {}


def read_json(
    text: str | bytes,
    *,
    object_hook: Callable[[dict[str, Any]], Any] | None = None,
    parse_float: Callable[[str], Any] = float,
) -> Any:
    """What `json.loads` gives for the text, and raises: what is not plainly JSON goes to it."""
    if _make_scanner is not None and isinstance(text, str):
        try:
            value, end = _make_scanner(_Options(object_hook, parse_float))(text, 0)
        except (StopIteration, SystemError):  # no JSON; the words for it are those of json.decoder
            pass
        else:
            if end == len(text):
                return value
    import json

    return json.loads(text, object_hook=object_hook, parse_float=parse_float)
