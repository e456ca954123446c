"""Do the cards bear out what an Ollama lists after a load?"""

from __future__ import annotations

from builders import make_card, make_copy, make_process, make_snapshot
from fleettui.fleet.drain.ollama import _missing_vram
from fleettui.fleet.warm_up import WarmedUp
from fleettui.model.snapshot import MachineSnapshot

NEW = make_copy("nomic-embed-text:latest", gib=4.0)


def missing(before: MachineSnapshot, after: MachineSnapshot) -> str:
    return _missing_vram(WarmedUp("ada", NEW, 3.0, before=before, after=after))


def machine(free_gib: float, *pids: int, loaded: bool = True) -> MachineSnapshot:
    processes = [make_process(pid=pid, gib=4.4) for pid in pids]
    copies = [NEW] if loaded else []
    return make_snapshot(cards=[make_card(free_gib=free_gib)], processes=processes, loaded=copies)


def test_memory_that_is_less_free_is_there() -> None:
    assert missing(machine(20.0, loaded=False), machine(15.6)) == ""


def test_a_copy_that_no_card_holds_is_missed() -> None:
    said = missing(machine(20.0, loaded=False), machine(19.9))
    assert said.startswith(
        "nomic-embed-text:latest is listed on ada with 4.0 GiB of VRAM, but its cards hold"
    )


def test_memory_that_an_ended_copy_gives_back_meanwhile_hides_nothing() -> None:
    """It was not listed any more when the load began, and its memory was not back yet."""
    before, after = machine(12.0, 100, loaded=False), machine(15.5, 200)
    assert missing(before, after) == ""
    assert missing(before, machine(15.5, 100)) != "", "no new runner"
