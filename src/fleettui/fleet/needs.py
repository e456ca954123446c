"""Which sources a caller needs, and how often each is asked."""

from __future__ import annotations

from collections.abc import Iterable

from fleettui.model.record import dataclass, replace

FAST_FACTS = ("stat", "load", "uptime", "mem", "net")
"""Asked on every tick: `read` builtins on the machine, no process is started."""

RATE_FACTS = ("stat", "load", "uptime", "net")
"""Those of them that rates are made of."""

SYSTEM_FACTS = ("uname", "os", "cpu", "host")
"""Asked once for each connection."""

LATER_FACTS = ("blocks", "runtime")
"""Asked once too, but not before the first answer: they start tools."""

MEMORY_FACTS = ("cgroup", "arc", "psi", "swaps")
"""What MemAvailable does not say; files only."""

MINUTE_FACTS = ("links", "clock", "servers")
"""Network cards come and go; clocks drift; servers of models are started by hand."""

SOCKET_FACTS = ("sockets",)
"""Ports that are listened on, and how many connections each has."""

SETTINGS_FACTS = ("ollama",)
"""How an engine was set up: changes when its service is started anew."""

MEMORY_PERIOD_S = 10.0
MINUTE_PERIOD_S = 60.0
SOCKETS_PERIOD_S = 10.0
SETTINGS_PERIOD_S = 600.0

DISKS_PERIOD_S = 30.0
PROCESSES_PERIOD_S = 10.0
CONDITION_PERIOD_S = 60.0
"""Condition of the cards, MIG instances, kernel log: two to four calls of nvidia-smi."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Sources to ask. A dashboard needs all; `--route` only what decides."""

    facts: bool = True
    rates: bool = True
    """CPU and network rates, which take two samples."""
    disks: bool = True
    gpu: bool = True
    processes: bool = True
    condition: bool = True
    """Of the cards: persistence, link, ECC, Xid."""
    engines: bool = True
    busy: bool = False
    """Who is busy, also of engines where asking has a price: llama.cpp's idle timers start anew."""
    discovery: bool = False
    """Engines that machine files do not name."""
    profiles: bool = True
    """Stored profiles: health knows by them which cards are gone."""

    def awaited(self, engine_paths: Iterable[tuple[str, ...]]) -> set[str]:
        """Names of what must answer before a machine counts as polled once: sources, and paths of engines."""
        names = {name for paths in engine_paths for name in paths}
        if self.facts:
            names |= {"cpu", "memory", "net", "system"}
        for name in ("rates", "disks", "gpu", "processes", "condition"):
            if getattr(self, name):
                names.add(name)
        return names


EVERYTHING = Needs(discovery=True)

ROUTING = Needs(facts=False, rates=False, disks=False, processes=False, condition=False, profiles=False)

AVOIDING_BUSY = replace(ROUTING, facts=True, rates=True, busy=True)
"""What routes around busy copies: connections to engines that say nothing come with the second sample."""

FITTING = Needs(disks=False, condition=False)
"""What tells whether a model fits: memory and cards, what lies on them, what engines hold, and how they are
set up, which comes with the second sample."""

ENGINES = replace(ROUTING, gpu=False)

CHOOSING = Needs(rates=False, disks=False, processes=False, condition=False)
"""What an operator chooses a machine by: free VRAM, models, whether it is well."""

PLANNING = Needs(rates=False, disks=False, processes=False, engines=False)
"""What a machine is made of; the condition of its cards tells their compute capability."""

PLANNING_CHANGES = replace(PLANNING, processes=True, engines=True)
"""What is loaded, too, and on which cards."""
