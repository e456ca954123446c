"""What one address of the API is: its parameters declared once, for reading them and for the description."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from fleettui.model.record import dataclass, field
from fleettui.serve.answers import ApiError

if TYPE_CHECKING:
    from starlette.requests import Request

    from fleettui.serve.door import Door

MAX_VALUES = 64
"""Of one parameter that may be repeated."""
_TRUE, _FALSE = ("1", "true", "yes", "on", ""), ("0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of the query string. `-` and `_` in its name are the same."""

    name: str
    text: str
    """One sentence for the description."""
    kind: str = "text"
    """`text`, `flag` or `number`: how the description calls it."""
    read: Callable[[str], Any] = str
    """The value of a text. Raises ValueError with the sentence to answer."""
    default: Any = None
    is_repeatable: bool = False
    is_required: bool = False
    choices: tuple[str, ...] = ()


def flag(name: str, text: str) -> Parameter:
    """On or off; off without it."""
    return Parameter(name, text, "flag", _read_flag, default=False)


def _read_flag(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError(f"{text!r} is neither true nor false")


def positive_count(text: str) -> int:
    """A whole number from 1 on. Raises ValueError."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text)):
        raise ValueError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def positive_seconds(text: str) -> float:
    """`2`, `0.5`, `30s`, `5m`, `1h`. Raises ValueError."""
    unit_s = {"s": 1, "m": 60, "h": 3600, "d": 86_400}.get(text[-1:])
    try:
        value = float(text if unit_s is None else text[:-1]) * (unit_s or 1)
    except ValueError:
        raise ValueError(f"{text!r} is not a number of seconds; 30s and 5m will do, too") from None
    if not 0 < value <= 86_400 * 365:
        raise ValueError(f"{text!r} is not more than 0 seconds, or out of range")
    return value


Values = Mapping[str, Any]
Handler = Callable[["Door", "Request", Values], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address. All are read by GET."""

    path: str
    """As Starlette has it: `/api/machines/{name:path}`."""
    summary: str
    handler: Handler
    parameters: tuple[Parameter, ...] = ()
    answers: Mapping[int, str] = field(default_factory=dict)
    """Statuses beside 200, and when."""
    media_type: str = "application/json"
    refused: Mapping[str, str] = field(default_factory=dict)
    """Parameters that the command line has and this address has not, with why."""

    def read(self, request: Request) -> Values:
        """The parameters of a request, with defaults. Raises ApiError for what is not known or no value."""
        known = {parameter.name: parameter for parameter in self.parameters}
        given: dict[str, list[str]] = {}
        for name, value in request.query_params.multi_items():
            given.setdefault(name.replace("-", "_"), []).append(value)
        for name in given:
            if name not in known:
                raise self._unknown(name, tuple(known))
        return {parameter.name: self._value(parameter, given) for parameter in self.parameters}

    def _value(self, parameter: Parameter, given: Mapping[str, list[str]]) -> Any:
        texts = given.get(parameter.name, [])
        if not texts:
            if parameter.is_required:
                raise self._usage(f"the parameter {parameter.name} is required")
            return () if parameter.is_repeatable else parameter.default
        if len(texts) > (MAX_VALUES if parameter.is_repeatable else 1):
            raise self._usage(f"{parameter.name} stands there {len(texts)} times")
        values = []
        for text in texts:
            try:
                value = parameter.read(text)
                if parameter.choices and value not in parameter.choices:
                    raise ValueError(f"{text!r} is none of {', '.join(parameter.choices)}")
            except ValueError as error:
                raise self._usage(f"{parameter.name}: {error}") from None
            values.append(value)
        return tuple(values) if parameter.is_repeatable else values[0]

    def _unknown(self, name: str, known: tuple[str, ...]) -> ApiError:
        if name in self.refused:
            return self._usage(f"{name}: {self.refused[name]}")
        near = get_close_matches(name, known, 1, 0.5)
        meant = f"; did you mean {near[0]}?" if near else ""
        return self._usage(f"there is no parameter {name[:80]!r}{meant}")

    def _usage(self, what: str) -> ApiError:
        why = "each parameter of the query string is read, none is left aside"
        return ApiError(
            400, "usage", what, where=self.path, why=why, hint="all parameters: GET /api/openapi.json"
        )
