"""`/api/openapi.json`: the description of the API, made of the declarations that requests are read by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fleettui import __version__
from fleettui.serve.endpoint import Endpoint, Parameter

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
    403: "Host or Origin of another machine",
    413: "the request has a body",
    431: "request line and headers are too long",
    503: "too many requests at once",
}


def describe(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "fleettui",
            "version": __version__,
            "description": "A fleet of GPU machines that serve models. Reading only; null is unknown.",
        },
        "paths": {_path(endpoint): {"get": _operation(endpoint)} for endpoint in endpoints},
        "components": {"schemas": {"Error": _ERROR, "Document": {"type": "object"}}},
    }


def _path(endpoint: Endpoint) -> str:
    return re.sub(r"{(\w+):\w+}", r"{\1}", endpoint.path)


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    name = re.sub(r"[^a-z]+", "_", _path(endpoint).removeprefix("/api/")).strip("_")
    in_path = [
        {"name": word, "in": "path", "required": True, "schema": {"type": "string"}}
        for word in re.findall(r"{(\w+)", endpoint.path)
    ]
    answers = {**_EVERYWHERE, **endpoint.answers}
    schema: dict[str, Any] = {"$ref": "#/components/schemas/Document"}
    if endpoint.media_type != "application/json":
        schema = {"type": "string"}
    content = {endpoint.media_type: {"schema": schema}}
    if any(parameter.name == "format" for parameter in endpoint.parameters):
        content["text/plain"] = {"schema": {"type": "string"}}
    return {
        "operationId": f"get_{name}",
        "summary": endpoint.summary,
        "parameters": [*in_path, *(_parameter(parameter) for parameter in endpoint.parameters)],
        "responses": {
            "200": {"description": "the answer", "content": content},
            **{
                str(status): {
                    "description": text,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
                }
                for status, text in sorted(answers.items())
            },
        },
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = dict(_TYPES[parameter.kind])
    if parameter.choices:
        schema["enum"] = list(parameter.choices)
    if parameter.is_repeatable:
        schema = {"type": "array", "items": schema}
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.is_required,
        "description": parameter.text,
        "schema": schema,
    }
