"""Drains side by side: most of the time of each is spent waiting for the next poll."""

from __future__ import annotations

import inspect
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from arena import Arena

from fleettui.demo.launcher import DemoFleet

PLACES = ((12, 14, 19), (18, 20, 13), (30, 32, 21), (36, 38, 33), (26, 24, 15))
"""Where a drain is played: the machine to empty, with 80 GB; the first choice, with as much; the second."""

Scenario = Callable[..., None]
"""Takes the arena and the names of its machines: two, or three."""


def play_all(fleet: DemoFleet, folder: Path, scenarios: Sequence[Scenario]) -> None:
    """Plays every scenario, each in an arena of its own; fails with all that went wrong."""
    places: queue.Queue[tuple[int, ...]] = queue.Queue()
    for place in PLACES:
        places.put(place)

    def play(scenario: Scenario) -> str:
        count = len(inspect.signature(scenario).parameters) - 1
        place = places.get()
        names = [f"gpu-{number:02d}" for number in place[:count]]
        arena = Arena(fleet, folder / scenario.__name__, *names)
        try:
            scenario(arena, *names)
        except AssertionError as error:
            return f"{scenario.__name__} on {', '.join(names)}: {error}"
        finally:
            arena.close()
            places.put(place)
        return ""

    with ThreadPoolExecutor(len(PLACES)) as pool:
        told = [text for text in pool.map(play, scenarios) if text]
    assert not told, "\n\n".join(told)


def scenarios_of(names: dict[str, object]) -> list[Scenario]:
    """The functions of a module whose name begins with `drain_`."""
    return [item for name, item in names.items() if name.startswith("drain_") and callable(item)]
