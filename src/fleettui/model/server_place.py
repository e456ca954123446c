"""Where a running `fleettui serve` answers, as the operator writes it: a URL, or `unix:PATH`."""

from __future__ import annotations

from fleettui.model.literal import Literal
from fleettui.model.record import dataclass

Scheme = Literal["http", "https", "unix"]
FORMS = "http://127.0.0.1:3038, https://jump.lan:3038 or unix:/run/fleettui.sock"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """One server."""

    scheme: Scheme
    host: str = ""
    """Without brackets; empty for a socket."""
    port: int = 0
    path: str = ""
    """What stands before each address of the API, without a slash at its end; of a socket its file."""

    @property
    def text(self) -> str:
        """As it was written, tidied."""
        if self.scheme == "unix":
            return f"unix:{self.path}"
        return f"{self.scheme}://{self.netloc}{self.path}"

    @property
    def netloc(self) -> str:
        """For the Host header; a socket's server is this machine."""
        if self.scheme == "unix":
            return "localhost"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def is_private(self) -> bool:
        """Nobody between here and there can read along: TLS, a socket, or this machine."""
        if self.scheme != "http" or self.host in ("localhost", "::1"):
            return True
        parts = self.host.split(".")  # 127.jump.lan is a name
        return parts[0] == "127" and len(parts) == 4 and all(map(str.isdecimal, parts))


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """A server, and how to come in."""

    place: ServerPlace
    token_file: str | None = None
    """Absolute; what it holds goes along with each question."""
    ca_file: str | None = None
    """Absolute; certificates that are trusted instead of the system's."""


def read_server_place(text: str) -> ServerPlace:
    """The place of a text. Raises ValueError with what is wrong."""
    text = text.strip()
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        path = path.removeprefix("//") if path.startswith("///") else path
        if not path or "\0" in path:
            raise ValueError("names no socket; write unix:/run/fleettui.sock")
        return ServerPlace("unix", path=path)
    scheme, separator, rest = text.partition("://")
    netloc, slash, path = rest.partition("/")
    if not separator or scheme not in _PORTS or not netloc or not text.isascii() or not text.isprintable():
        raise ValueError(f"must be a URL such as {FORMS}")
    if " " in text or "?" in text or "#" in text:
        raise ValueError("must be a URL without blanks and without a question in it")
    if "@" in netloc:
        raise ValueError("must hold no name and no password; a token stands in server_token_file")
    host, port = _split(netloc)
    if not host or port is None:
        raise ValueError(f"names no host and port; write {FORMS}")
    return ServerPlace(
        "https" if scheme == "https" else "http", host, port or _PORTS[scheme], f"{slash}{path}".rstrip("/")
    )


def _split(netloc: str) -> tuple[str, int | None]:
    """Host without brackets, and port; 0: there stands none, None: it is no port."""
    if netloc.startswith("["):
        host, bracket, rest = netloc[1:].partition("]")
        colon, port = rest[:1], rest[1:]
        if not bracket or colon not in ("", ":"):
            return "", None
    else:
        host, colon, port = netloc.partition(":")
    if not colon:
        return host, 0
    is_port = port.isdecimal() and len(port) <= 5 and 0 < int(port) <= 65_535
    return host, int(port) if is_port else None
