"""`/api/openapi.json`: the description of the API, made of the declarations that requests are read by."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fleettui import __version__
from fleettui.serve.action import Action
from fleettui.serve.endpoint import MAX_VALUES, Endpoint, Parameter

_TYPES = {"flag": {"type": "boolean"}, "number": {"type": "string"}, "text": {"type": "string"}}
"""Numbers are text: 30s and 5m are seconds too."""

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "what", "where", "why", "next"],
            "properties": {name: {"type": "string"} for name in ("code", "what", "where", "why", "next")},
        }
    },
}
_EVERYWHERE = {
    400: "a parameter is not known or has no such value",
    401: "the token is wrong, or reading takes one",
    403: "Host or Origin of another machine",
    413: "the request has a body",
    429: "too many requests, or wrong tokens, of one client",
    431: "request line and headers are too long",
    503: "too many requests at once, or the server ends",
}
_OF_ACTIONS = {
    400: "the body is no JSON object, a field is not known or has no such value",
    401: "a token is missing, or wrong",
    403: "actions are off, the token only allows reading, or Host or Origin of another machine",
    413: "the body is too long",
    415: "the body is not JSON by its Content-Type",
    429: "too many changes, requests or wrong tokens of one client",
}


def describe(endpoints: Sequence[Endpoint], actions: Sequence[Action] = ()) -> dict[str, Any]:
    """OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(_path(endpoint.path), {})["get"] = _operation(endpoint)
    for action in actions:
        paths.setdefault(_path(action.path), {})[action.method.lower()] = _change(action)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "fleettui",
            "version": __version__,
            "description": "A fleet of GPU machines that serve models; null is unknown. What changes "
            "something is refused unless the server was started with --allow-actions.",
        },
        "paths": paths,
        "security": [{}, {"token": []}],
        "components": {
            "schemas": {"Error": _ERROR, "Document": {"type": "object"}},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _path(path: str) -> str:
    return re.sub(r"{(\w+):\w+}", r"{\1}", path)


def _name(path: str) -> str:
    return re.sub(r"[^a-z]+", "_", _path(path).removeprefix("/api/")).strip("_")


def _in_path(path: str) -> list[dict[str, Any]]:
    return [
        {"name": word, "in": "path", "required": True, "schema": {"type": "string"}}
        for word in re.findall(r"{(\w+)", path)
    ]


def _errors(answers: Mapping[int, str]) -> dict[str, Any]:
    return {
        str(status): {
            "description": text,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
        for status, text in sorted(answers.items())
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    schema: dict[str, Any] = {"$ref": "#/components/schemas/Document"}
    if endpoint.media_type != "application/json":
        schema = {"type": "string"}
    content = {endpoint.media_type: {"schema": schema}}
    if any(parameter.name == "format" for parameter in endpoint.parameters):
        content["text/plain"] = {"schema": {"type": "string"}}
    return {
        "operationId": f"get_{_name(endpoint.path)}",
        "summary": endpoint.summary,
        "parameters": [*_in_path(endpoint.path), *(_parameter(item) for item in endpoint.parameters)],
        "responses": {
            "200": {"description": "the answer", "content": content},
            **_errors({**_EVERYWHERE, **endpoint.answers}),
        },
    }


def _change(action: Action) -> dict[str, Any]:
    done = {
        "description": "done",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Document"}}},
    }
    answers = {**_EVERYWHERE, **_OF_ACTIONS, **action.answers}
    begun = answers.pop(202, None)
    operation = {
        "operationId": f"{action.method.lower()}_{_name(action.path)}",
        "summary": action.summary,
        "parameters": _in_path(action.path),
        "security": [{"token": []}, {}],
        "responses": {
            "200": done,
            **({} if begun is None else {"202": {**done, "description": begun}}),
            **_errors(answers),
        },
    }
    if action.method == "POST":
        fields = {
            item.name: {**_schema(item, is_body=True), "description": item.text} for item in action.parameters
        }
        required = [item.name for item in action.parameters if item.is_required]
        body = {"type": "object", "properties": fields, "required": required, "additionalProperties": False}
        operation["requestBody"] = {
            "required": bool(required),
            "content": {"application/json": {"schema": body}},
        }
    return operation


def _schema(parameter: Parameter, *, is_body: bool = False) -> dict[str, Any]:
    schema: dict[str, Any] = dict(_TYPES[parameter.kind])
    if is_body and parameter.kind == "number":
        schema = {"type": ["number", "string"]}
    if parameter.choices:
        schema["enum"] = list(parameter.choices)
    if parameter.is_repeatable:
        schema = {"type": "array", "items": schema}
        if is_body:
            schema["maxItems"] = MAX_VALUES
    return schema


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.is_required,
        "description": parameter.text,
        "schema": _schema(parameter),
    }
