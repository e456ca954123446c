"""The flag of a machine that shall be empty, as the machine shows it, whatever was written down."""

from __future__ import annotations

from fleettui.model.clock import day_and_time
from fleettui.model.record import replace
from fleettui.model.unknown import Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fleettui.model.readings import EngineReading
    from fleettui.model.snapshot import DrainFlag

_NAMES_TOLD = 3


def loaded_again(engine: EngineReading) -> tuple[str, ...]:
    """Copies that take requests, or will: of a drained machine somebody loaded them since."""
    if engine.state == "down" or isinstance(engine.loaded, Unknown):
        return ()
    return tuple(copy.name for copy in engine.loaded if copy.state in ("loaded", "loading"))


def drained(flag: DrainFlag) -> DrainFlag:
    """The machine is empty, whatever is stored: what was missing is there now."""
    return replace(flag, state="drained", text="")


def refilled(
    flag: DrainFlag,
    names: tuple[str, ...],
    strangers: tuple[str, ...],
    since: float,
    now: float,
    utc_offset_s: int | None,
) -> DrainFlag:
    """It was drained, and is not any more: a client that does not ask the routing had models loaded, or
    somebody began something of his own on its GPUs."""
    moment = day_and_time(since, now, utc_offset_s)
    told = [f"loaded again since {moment}: {_some_of(names)}"] if names else []
    if strangers:
        told.append(f"on its GPUs since {moment}, of no engine that is asked: {_some_of(strangers)}")
    return replace(flag, state="blocked", text="; ".join(told))


def _some_of(names: tuple[str, ...]) -> str:
    more = len(names) - _NAMES_TOLD
    return ", ".join(names[:_NAMES_TOLD]) + (f" and {more} more" if more > 0 else "")
