"""SIGKILL of the program at every step of a drain, and somebody who goes on with it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from arena import SMALL, Arena, MakeArena, wait_until
from observer import Observer

from fleettui.demo.launcher import DemoFleet

EMBEDDING = "nomic-embed-text:latest"
PAIRS = ((12, 18), (14, 20), (19, 13), (15, 9), (30, 32), (36, 38))
"""Source and target; as many drains at a time."""


def prepare(arena: Arena) -> tuple[str, str]:
    """One copy to move, one that the target serves already."""
    source, target = arena.names
    arena.load(source, SMALL, EMBEDDING)
    arena.install(target, SMALL)
    arena.load(target, EMBEDDING)
    return source, target


def kill_at(fleet: DemoFleet, folder: Path, numbers: tuple[int, int], step: int) -> str:
    """A drain that is killed when that many steps are written down, and resumed; what went wrong."""
    arena = Arena(fleet, folder, *(f"gpu-{number:02d}" for number in numbers))
    killed_at: list[str] = []
    try:
        source, target = prepare(arena)
        with Observer(fleet, arena.names, [SMALL, EMBEDDING]) as observer:
            drain = arena.drain(source)
            wait_until(lambda: len(arena.journal()) >= step or drain.process.poll() is not None, "a step")
            ended = drain.process.poll()
            drain.kill()
            killed_at = arena.steps()
            assert not ended, f"it ended by itself: {arena.told(drain)}"
            resumed = arena.start("drain", "status", source, "--follow")
            code = resumed.wait()
        observer.assert_never_without()
        assert code == 0, f"exit code {code}: {arena.told(resumed)}"
        assert arena.state_of(source) == ("drained", ""), arena.told(resumed)
        assert arena.loaded(source) == set()
        assert arena.loaded(target) == {SMALL, EMBEDDING}
    except AssertionError as error:
        return f"killed after {step} steps ({killed_at[-1:]}): {error}"
    finally:
        arena.close()
    return ""


@pytest.mark.timeout(600)
def test_killed_at_every_step_it_goes_on(fleet: DemoFleet, make_arena: MakeArena, tmp_path: Path) -> None:
    """How many steps there are a drain that nobody disturbs tells."""
    whole = make_arena(11, 17)
    prepare(whole)
    drain = whole.drain("gpu-11")
    assert drain.wait() == 0, whole.told(drain)
    count = len(whole.journal())
    assert count >= 8, whole.journal()

    def worker(place: int) -> list[str]:
        steps = range(1 + place, count + 1, len(PAIRS))
        return [kill_at(fleet, tmp_path / f"killed{step}", PAIRS[place], step) for step in steps]

    with ThreadPoolExecutor(len(PAIRS)) as pool:
        told = [text for texts in pool.map(worker, range(len(PAIRS))) for text in texts if text]
    assert not told, "\n\n".join(told)


def test_killed_again_and_again_it_still_ends(make_arena: MakeArena) -> None:
    """Each time after one more step of its own."""
    arena = make_arena(12, 18)
    source, _ = prepare(arena)
    with Observer(arena.fleet, arena.names, [SMALL, EMBEDDING]) as observer:
        run = arena.drain(source)
        for _ in range(4):
            before = len(arena.journal())
            wait_until(
                lambda count=before, run=run: len(arena.journal()) > count or run.process.poll() is not None,  # type: ignore[misc]
                "one more step",
            )
            if run.process.poll() is not None:
                break
            run.kill()
            run = arena.start("drain", "status", source, "--follow")
        assert run.wait() == 0, arena.told(run)
    observer.assert_never_without()
    assert arena.loaded(source) == set()
