"""Answers of the API: JSON documents, and errors that say what failed, where, why and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from fleettui.model.written import dump_json

SCHEMA = 1


class ApiError(Exception):
    """Ends a request with a status and a document."""

    def __init__(
        self,
        status: int,
        code: str,
        what: str,
        *,
        where: str = "",
        why: str = "",
        hint: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(what)
        self.status = status
        self.headers = headers
        self.error = {"code": code, "what": what, "where": where, "why": why, "next": hint}

    def answer(self) -> Response:
        """As the client gets it."""
        return json_answer({"schema": SCHEMA, "error": self.error}, self.status, self.headers)


def encode_document(document: Any) -> bytes:
    """One line of UTF-8; numbers of machine files stand as the operator wrote them, NaN never appears."""
    text = dump_json(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def json_answer(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A document as the body."""
    return bytes_answer(encode_document(document) + b"\n", status, headers)


def bytes_answer(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON that is encoded already."""
    return Response(body, status, headers, media_type="application/json")
