"""One thing that runs on a machine, as docs/remote-commands.md tells it."""

from __future__ import annotations

from typing import Literal

from fleettui.model.record import dataclass
from fleettui.probes.loops import LoopKind

When = Literal[
    "tick", "memory", "sockets", "disks", "processes", "minute", "settings", "condition", "amd tool",
    "connection", "driver", "asked", "doctor", "engine", "logs", "inventory",
]  # fmt: skip
"""How often; each has a period or an occasion in fleet/needs.py and in scripts/remote_commands.py."""


@dataclass(frozen=True, slots=True)
class RemoteCommand:
    """One section of a loop."""

    loop: LoopKind
    section: str
    """Its name in the script, without arguments."""
    when: When
    runs: tuple[str, ...] = ()
    """Programs with their arguments; empty: the shell reads files itself, no process is started."""
    reads: tuple[str, ...] = ()
    """Files that the shell reads itself."""
    limit_s: int | None = None
    """After that the program is ended; None: it neither waits nor asks anybody."""
    note: str = ""
    """What a reader of the page should know, among it rights that are needed."""
