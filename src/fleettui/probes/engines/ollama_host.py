"""Where an Ollama server listens: the text of OLLAMA_HOST, and listening sockets from `ss -ltn`."""

from __future__ import annotations

from fleettui.model.machine import DEFAULT_ENGINE_PORT
from fleettui.model.record import dataclass
from fleettui.probes.clean import clean_text
from fleettui.probes.numbers import is_digits

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class EngineTarget:
    """Where a client connects to."""

    scheme: str
    host: str
    """Without brackets."""
    port: int
    prefix: str = ""
    """Path in front of `/api/…`, without a slash at its end."""


def parse_ollama_host(text: str) -> EngineTarget:
    """The client's target of any OLLAMA_HOST text: bind-all becomes loopback, a bad port the default one.

    Rules: ollama/ollama envconfig.Host.
    """
    text = clean_text(text, 300).strip().strip("\"'").strip()
    scheme, mark, rest = text.partition("://")
    if not mark:
        scheme, rest = "http", text
    default_port = _PORTS.get(scheme, DEFAULT_ENGINE_PORT) if mark else DEFAULT_ENGINE_PORT
    address, slash, path = rest.partition("/")
    host, port = _split_port(address, default_port)
    if host in ("", "0.0.0.0"):  # noqa: S104 - compared, not bound
        host = "127.0.0.1"
    elif host == "::":
        host = "::1"
    return EngineTarget(scheme, host, port, f"/{path}".rstrip("/") if slash else "")


def _split_port(address: str, default_port: int) -> tuple[str, int]:
    if address.startswith("["):
        host, _, rest = address[1:].partition("]")
        port = rest.removeprefix(":")
    elif address.count(":") == 1:
        host, _, port = address.partition(":")
    else:
        host, port = address, ""
    if not port:
        return host, default_port
    number = int(port) if is_digits(port) else -1
    return host, number if 0 <= number <= 65535 else default_port


def parse_listen_targets(payload: bytes, port: int = DEFAULT_ENGINE_PORT) -> tuple[str, ...]:
    """Hosts to forward to for `port`, from rows of `ss -ltn`: 127.0.0.1 first, then ::1, then others."""
    found: set[str] = set()
    for line in payload.decode("utf-8", "replace").split("\n"):
        words = line.split()
        if len(words) < 5 or words[0] != "LISTEN":
            continue
        host, _, number = words[3].rpartition(":")
        if number != str(port):
            continue
        host = clean_text(host, 60).strip("[]").partition("%")[0]
        found.add({"*": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host))  # noqa: S104
    order = {"127.0.0.1": 0, "::1": 1}
    return tuple(sorted(found, key=lambda host: (order.get(host, 2), host)))
