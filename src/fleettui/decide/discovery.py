"""Which ports of a machine may be engines that its file does not name, and what each may be.

Three sources, the surest first: a port that stands in the command line of a server of models, the usual port
of an engine, and, where a server runs and no port of it is known (Ollama's stands in its environment), any
other port that is listened on. What listens is found out by asking, never assumed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from fleettui.model.gpu_users import engine_kind_of_text
from fleettui.model.machine import EngineKind
from fleettui.model.record import dataclass
from fleettui.model.sockets import ServerProcess, SocketsReading

MOST_PORTS = 8
FIRST_PORT = 1024
"""Below listen SSH, mail, DNS, web servers and the like: an engine behind port 80 or 443 has a proxy before
it, and its URL belongs in the machine file. Web servers also log each question."""

NOT_HTTP = frozenset(
    {
        *(1433, 1521, 3306, 5432, 6379, 9042, 11211, 27017),  # databases: some take a line as a command
        *(1883, 2379, 2380, 4369, 5672, 9092),  # queues and their like
        *(2049, 2375, 2376, 3389, 6443, 10250),  # NFS, Docker, RDP, Kubernetes
        9100,  # printers print what they are sent
        *range(5900, 5911),  # VNC
        *range(6000, 6011),  # X11
    }
)
"""Never asked unless a server's own command line names it."""

_PORT = re.compile(r"(?:^|\s)--?(?:port|listen)(?:=|\s+)(?:\S*:)?(\d{1,5})(?=\s|$)")
_RUNNER_WORDS = (" runner ", "/blobs/sha256-")
"""Ollama starts those, each with a port of its own on the loopback."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A port worth asking."""

    port: int
    kinds: tuple[EngineKind, ...]
    """Guesses, the likeliest first; empty: none."""


def find_suspects(
    sockets: SocketsReading,
    servers: Sequence[ServerProcess],
    usual: Sequence[tuple[EngineKind, int]],
    known: Collection[int],
    explained: Collection[EngineKind],
    strange: Collection[int] = (),
) -> tuple[Suspect, ...]:
    """Ports to ask, at most MOST_PORTS, the likeliest first.

    `usual`: the default port of each kind; `known`: ports that are asked anyway, or are SSH's; `explained`:
    kinds that answer at a known port, so that their processes are no riddle; `strange`: ports that answer,
    and not as what was asked for there.
    """
    listening = {item.port for item in sockets.listening}
    pids = {server.pid for server in servers}
    children = [server for server in servers if server.parent in pids or _is_runner(server.command)]
    skipped = {*known, *(port for child in children for port in _named_ports(child.command))}
    found: dict[int, list[EngineKind]] = {port: [] for port in strange if port in listening}
    riddles: list[EngineKind] = []
    for server in servers:
        kind = engine_kind_of_text(server.command)
        if kind is None or server in children:
            continue
        ports = _named_ports(server.command) & listening
        for port in ports - skipped:
            found.setdefault(port, []).append(kind)
        at_usual = any(port in listening for usual_kind, port in usual if usual_kind == kind)
        if not ports and not at_usual and kind not in explained and kind not in riddles:
            riddles.append(kind)
    for kind, port in usual:
        if port in listening and port not in skipped:
            found.setdefault(port, []).append(kind)
    if riddles:
        for port in sorted(listening - skipped - NOT_HTTP):
            found.setdefault(port, list(riddles))
    suspects = [Suspect(port, tuple(kinds)) for port, kinds in found.items() if port >= FIRST_PORT]
    return tuple(suspects[:MOST_PORTS])


def _is_runner(command: str) -> bool:
    return any(word in command for word in _RUNNER_WORDS)


def _named_ports(command: str) -> set[int]:
    return {int(port) for port in _PORT.findall(command) if 0 < int(port) < 65536}
