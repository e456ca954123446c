"""What one changing address of the API is: declared once, for reading its body, for asking whether the caller
may, for the timeline and for the description."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from fleettui.model.record import dataclass, field
from fleettui.probes.clean import clean_text
from fleettui.serve.answers import ApiError
from fleettui.serve.endpoint import MAX_VALUES, Parameter, Values
from fleettui.serve.permission import Caller, caller_of

if TYPE_CHECKING:
    from fleettui.serve.door import Door

_HINT = "all fields: GET /api/openapi.json"

ActionHandler = Callable[["Door", Caller, str, Values], Awaitable[Response]]
"""With the name in the address, and the fields of the body. Raises ApiError."""


@dataclass(frozen=True, slots=True)
class Action:
    """One address that changes something, asked by POST."""

    path: str
    """As Starlette has it: `/api/machines/{name:path}/drain`."""
    word: str
    """In the timeline: `drain`."""
    summary: str
    handler: ActionHandler
    parameters: tuple[Parameter, ...] = ()
    """Fields of the JSON object that is the body."""
    answers: Mapping[int, str] = field(default_factory=dict)
    """Statuses beside 200, and when."""
    method: str = "POST"

    async def answer(self, door: Door, request: Request) -> Response:
        """Of a request."""
        name = str(request.path_params.get("name", ""))
        return await self.perform(door, caller_of(request.scope), name, lambda: self._read_body(request))

    async def perform(
        self,
        door: Door,
        caller: Caller,
        name: str,
        load: Callable[[], Awaitable[Mapping[str, Any]]],
        way: str = "HTTP",
    ) -> Response:
        """Ask whether the caller may, only then load the fields, do it, and tell the timeline; for any way
        in which somebody asks, which the timeline names. Raises ApiError."""
        self.admit(door, caller, way)
        known = name if door.service.snapshot.find(name) is not None else ""
        word, reason = self.word, None
        try:
            values = self.read(await load())
            word, reason = self._word_of(values), _reason_of(values)
            answer = await self.handler(door, caller, name, values)
        except ApiError as error:
            what = error.error["what"]
            door.audit.note(caller.name, known, word, error.status, why=what, reason=reason, way=way)
            raise
        except BaseException as error:
            what = "it was cut off" if isinstance(error, asyncio.CancelledError) else type(error).__name__
            door.audit.note(caller.name, known, word, 500, why=what, reason=reason, way=way)
            raise
        what = "" if answer.status_code < 400 else json.loads(bytes(answer.body))["error"]["what"]
        door.audit.note(caller.name, known, word, answer.status_code, why=what, reason=reason, way=way)
        return answer

    def admit(self, door: Door, caller: Caller, way: str = "HTTP") -> None:
        """Raises ApiError unless the caller may, now; a refusal is told."""
        try:
            caller.check_acting(self.path)
            wait_s = door.action_rate.take(caller.name)
            if wait_s:
                raise ApiError(
                    429, "too_many_actions", "one caller may not change so much at once",
                    where=self.path, why="more changes come than are taken", hint="ask again later",
                    headers={"retry-after": str(int(wait_s) + 1)},
                )  # fmt: skip
        except ApiError as error:
            door.audit.note_refusal(caller.name, caller.address, self.word, error, way)
            raise

    def _word_of(self, values: Values) -> str:
        """`maintenance off`, `drain preview`, `lease of llama3.1:70b`."""
        if "model" in values:
            return f"{self.word} of {values['model']}"
        if "on" in values:
            return f"{self.word} {'on' if values['on'] else 'off'}"
        return f"{self.word} preview" if values.get("dry_run") else self.word

    async def _read_body(self, request: Request) -> Mapping[str, Any]:
        """The JSON object of a request; `Guard` limits its length. Raises ApiError."""
        if self.method != "POST":
            return {}
        kind, _, _ = request.headers.get("content-type", "").partition(";")
        if kind.strip().lower() != "application/json" or "content-encoding" in request.headers:
            raise ApiError(
                415, "content_type", "the body is not JSON as it stands", where=self.path,
                why="a form of a web page could change the fleet otherwise",
                hint="send Content-Type: application/json, and no Content-Encoding",
            )  # fmt: skip
        try:
            body = await request.body()
        except ClientDisconnect:
            raise ApiError(400, "body", "the body ended too early", where=self.path) from None
        if not body.strip():
            return {}
        try:
            found = json.loads(
                body.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse_constant
            )
        except (ValueError, RecursionError) as error:
            why = "it is nested too deep" if isinstance(error, RecursionError) else str(error)[:200]
            raise ApiError(
                400, "body", "the body is no JSON object", where=self.path, why=why, hint=_HINT
            ) from None
        if not isinstance(found, dict):
            raise ApiError(400, "body", "the body is no JSON object", where=self.path, hint=_HINT)
        return found

    def read(self, body: Mapping[str, Any]) -> Values:
        """The fields of a body, with defaults; null is as if it were not there. Raises ApiError."""
        known = {parameter.name: parameter for parameter in self.parameters}
        given = {name: value for name, value in body.items() if value is not None}
        for name in given:
            if name not in known:
                near = get_close_matches(name, known, 1, 0.5)
                self._refuse(
                    f"there is no field {name[:80]!r}" + (f"; did you mean {near[0]}?" if near else "")
                )
        return {name: self._value(parameter, given) for name, parameter in known.items()}

    def _value(self, parameter: Parameter, given: Mapping[str, Any]) -> Any:
        if parameter.name not in given:
            if parameter.is_required:
                self._refuse(f"the field {parameter.name} is required")
            return () if parameter.is_repeatable else parameter.default
        value = given[parameter.name]
        try:
            if not parameter.is_repeatable:
                return _read_one(parameter, value)
            if not isinstance(value, list) or len(value) > MAX_VALUES:
                raise ValueError(f"it is a list of at most {MAX_VALUES}")
            return tuple([_read_one(parameter, item) for item in value])
        except ValueError as error:
            self._refuse(f"{parameter.name}: {error}")

    def _refuse(self, what: str) -> NoReturn:
        why = "each field of the body is read, none is left aside"
        raise ApiError(400, "usage", what, where=self.path, why=why, hint=_HINT)


def _read_one(parameter: Parameter, value: Any) -> Any:
    """Raises ValueError."""
    if parameter.kind == "flag":
        if not isinstance(value, bool):
            raise ValueError("it is true or false")
        return value
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError("it is a text" if parameter.kind == "text" else "it is a number, or a text as 5m")
    if not isinstance(value, str):
        if parameter.kind == "text":
            raise ValueError("it is a text")
        value = f"{value}"
    if not value.isprintable():
        raise ValueError("it has control characters")
    read = parameter.read(value)
    if parameter.choices and read not in parameter.choices:
        raise ValueError(f"{value[:80]!r} is none of {', '.join(parameter.choices)}")
    return read


def _reason_of(values: Values) -> str | None:
    reason = values.get("reason")
    return " ".join(clean_text(reason, 200).split()) or None if isinstance(reason, str) else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two readers of one body must not see two things."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field stands there twice")
    return found


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")
