"""Who listens on a machine: TCP ports with their connections, processes that may be servers of models."""

from __future__ import annotations

from fleettui.model.machine import EngineKind
from fleettui.model.record import dataclass


@dataclass(frozen=True, slots=True)
class ListeningPort:
    """A TCP port that some process of the machine listens on, with who is connected to it."""

    port: int
    is_loopback: bool
    """Reached from the machine itself only."""
    connections: int = 0
    """Established, seen from the server's side."""
    ours: int = 0
    """How many of them this fleettui holds open itself, through SSH."""


@dataclass(frozen=True, slots=True)
class SocketsReading:
    """TCP servers of a machine; the same object while nothing changes. Source: /proc/net/tcp, tcp6."""

    listening: tuple[ListeningPort, ...] = ()
    """Ascending."""
    is_cut: bool = False
    """There were more ports than are kept."""

    def find(self, port: int) -> ListeningPort | None:
        """That port; None where nothing listens on it, or it was cut."""
        for item in self.listening:
            if item.port == port:
                return item
        return None


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A process whose name or command line has a word of a server of models."""

    pid: int
    parent: int
    command: str


@dataclass(frozen=True, slots=True)
class FoundEngine:
    """An engine that answers and that the machine's file does not name."""

    kind: EngineKind
    port: int
    is_loopback: bool
    """Reached from the machine itself only."""
    is_polled: bool = False
    """The file names no engines, and the one it stands for does not answer: this one takes its place."""
