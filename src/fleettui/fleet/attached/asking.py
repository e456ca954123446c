"""One question to a running server, and its answer or what is wrong. Light: `--route` goes this way."""

from __future__ import annotations

from _json import encode_basestring_ascii

from fleettui.net.server_client import ServerError, ask_server, no_server
from fleettui.store.json_text import read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from fleettui.model.server_place import ServerAccess

_WORD_CHARS = 1_000
ANSWER_S = 30.0
"""A server that has just started answers when every machine has, 10 s at most."""
_PASSING = frozenset((429, 502, 503, 504))
"""It has too much to do, or only what stands in front of it answers: another time it may."""
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def ask_document(
    access: ServerAccess,
    path: str,
    query: Iterable[tuple[str, object]] = (),
    timeout_s: float = ANSWER_S,
) -> dict[str, Any]:
    """The JSON document of an address. Raises ServerError."""
    body = ask_bytes(access, path, query, timeout_s)
    document = _document(body)
    if document is None:
        raise no_server(access.place, f"{path} is no JSON")
    return document


def change_there(
    access: ServerAccess, path: str, fields: Iterable[tuple[str, object]], timeout_s: float = ANSWER_S
) -> dict[str, Any]:
    """The JSON document of an address that changes something. Raises ServerError."""
    body = f"{{{','.join(f'{json_text(name)}:{json_text(value)}' for name, value in fields)}}}"
    status, answer = ask_server(access, path, timeout_s, body.encode("ascii"))
    if status != 200:
        raise refusal(access, status, answer)
    document = _document(answer)
    if document is None:
        raise no_server(access.place, f"{path} is no JSON")
    return document


def json_text(value: object) -> str:
    """JSON of texts, numbers, flags and lists of them; `import json` takes as long as all the rest."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{','.join(map(json_text, value))}]"
    return encode_basestring_ascii(str(value))


def ask_bytes(
    access: ServerAccess,
    path: str,
    query: Iterable[tuple[str, object]] = (),
    timeout_s: float = ANSWER_S,
) -> bytes:
    """The body of an address. Raises ServerError, with the server's own words where it has some."""
    words = "&".join(f"{name}={quoted(str(value))}" for name, value in query)
    status, body = ask_server(access, f"{path}?{words}" if words else path, timeout_s)
    if status != 200:
        raise refusal(access, status, body)
    return body


def refusal(access: ServerAccess, status: int, body: bytes) -> ServerError:
    """What a server says that does not answer."""
    from fleettui.probes.clean import clean_text

    place, document = access.place, _document(body)
    error = document.get("error") if document is not None else None
    is_absent = status in _PASSING
    if not isinstance(error, dict):
        if not is_absent:
            return no_server(place, f"status {status}")
        text = f"the server {place.text} cannot answer now: status {status}"
        return ServerError(text, is_absent=True, status=status)
    # While the server is away anybody may listen at its port.
    told = {name: clean_text(str(value), _WORD_CHARS) for name, value in error.items()}
    if told.get("code") == "not_found":
        return ServerError(
            f"the server {place.text} is a fleettui of another version, which cannot be attached to",
            "update the older of the two",
        )
    words = ": ".join(told[name] for name in ("what", "why") if told.get(name))
    hints = [told["next"]] if told.get("next") else []
    if status == 401:
        hints = [
            "a file that only you may read holds the token: server_token_file in the settings"
            if access.token_file is None
            else f"the token of {access.token_file} is not one of this server"
        ]
    verb = " refuses" if status in (400, 401, 403) else ""
    text = f"the server {place.text}{verb}: {words}"
    return ServerError(text, *hints, is_absent=is_absent, status=status)


def quoted(text: str) -> str:
    """A value of the query string; urllib would load `re` and more."""
    data = text.encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in data)


def _document(body: bytes) -> dict[str, Any] | None:
    try:
        document = read_json(body.decode("utf-8").rstrip())
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
