"""Whether a machine that shall be empty is: what its engines list decides, not what was written down."""

from __future__ import annotations

from fleettui.decide.drain.sources import find_copies
from fleettui.model.clock import day_and_time
from fleettui.model.record import replace
from fleettui.model.unknown import Unknown
from fleettui.model.vram import has_no_gpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fleettui.model.readings import EngineReading
    from fleettui.model.snapshot import DrainFlag, MachineSnapshot
    from fleettui.model.sockets import SocketsReading

_NAMES_TOLD = 3
_ALWAYS_LOADED = frozenset({"vllm", "sglang", "llamacpp"})
"""Engines that serve a model as long as they run."""


def is_empty(snapshot: MachineSnapshot) -> bool:
    """Nothing is loaded, as far as that is certain: every engine says so, or its port is closed, and the GPUs
    have no other process.

    A sleeping copy holds no memory. An engine that was found and is not asked may hold anything.
    """
    if any(not item.is_polled and item.kind in _ALWAYS_LOADED for item in snapshot.found or ()):
        return False
    if snapshot.processes is None and not has_no_gpu(snapshot):
        return False
    return all(_holds_nothing(engine, snapshot.sockets) for engine in snapshot.engines) and not find_copies(
        snapshot
    )


def _holds_nothing(engine: EngineReading, sockets: SocketsReading | None) -> bool:
    if engine.state == "down":
        return sockets is not None and not sockets.is_cut and sockets.find(engine.port) is None
    if engine.state != "ok" or isinstance(engine.loaded, Unknown):
        return False
    return all(copy.state == "sleeping" for copy in engine.loaded)


def loaded_again(engine: EngineReading) -> tuple[str, ...]:
    """Copies that take requests, or will: of a drained machine somebody loaded them since."""
    if engine.state == "down" or isinstance(engine.loaded, Unknown):
        return ()
    return tuple(copy.name for copy in engine.loaded if copy.state in ("loaded", "loading"))


def drained(flag: DrainFlag) -> DrainFlag:
    """The machine is empty, whatever is stored: what was missing is there now."""
    return replace(flag, state="drained", text="")


def refilled(
    flag: DrainFlag, names: tuple[str, ...], since: float, now: float, utc_offset_s: int | None
) -> DrainFlag:
    """It was drained, and is not any more: a client that does not ask the routing had a model loaded."""
    told = ", ".join(names[:_NAMES_TOLD])
    if len(names) > _NAMES_TOLD:
        told += f" and {len(names) - _NAMES_TOLD} more"
    text = f"loaded again since {day_and_time(since, now, utc_offset_s)}: {told}"
    return replace(flag, state="blocked", text=text)
