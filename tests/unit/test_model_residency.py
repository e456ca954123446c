"""Which process is which copy, and what nobody explains."""

from __future__ import annotations

from builders import digest_of, make_card, make_copy, make_engine, make_process, make_snapshot
from fleettui.model.residency import cards_of_copy, shares_of
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown


def placed(snapshot: MachineSnapshot) -> dict[str, tuple[int, ...]]:
    """Copy name -> cards it is proven to lie on."""
    shares = shares_of(snapshot)
    return {copy.name: cards_of_copy(shares, copy) for copy in snapshot.loaded}


BIG, SMALL, LIKE = make_copy("big:70b", gib=40), make_copy("small:1b", gib=1), make_copy("like:70b", gib=41)


def test_nothing_is_placed_without_processes() -> None:
    assert placed(make_snapshot(loaded=[BIG])) == {"big:70b": ()}


def test_an_only_copy_lies_where_runners_are() -> None:
    processes = [make_process(0, gib=20), make_process(1, gib=21)]
    assert placed(make_snapshot(loaded=[BIG], processes=processes)) == {"big:70b": (0, 1)}
    stranger = make_process(1, pid=7, name="/usr/bin/python3", command="python3 train.py")
    assert placed(make_snapshot(loaded=[BIG], processes=[processes[0], stranger])) == {"big:70b": (0,)}


def test_a_digest_in_the_command_line_decides() -> None:
    command = f"ollama runner --model /blobs/sha256-{digest_of('like:70b')} --port 1"
    processes = [make_process(1, pid=1, gib=40, command=command), make_process(0, pid=2, gib=40)]
    snapshot = make_snapshot(loaded=[BIG, LIKE], processes=processes)
    assert placed(snapshot) == {"big:70b": (0,), "like:70b": (1,)}


def test_an_id_in_the_command_line_of_another_engine_decides() -> None:
    copies = [
        make_copy(f"org/{name}", engine="vllm", vram_bytes=Unknown(), digest=Unknown()) for name in "ab"
    ]
    process = make_process(1, name="python3", command="vllm serve org/b --port 8000")
    snapshot = make_snapshot(engines=(make_engine(kind="vllm", loaded=copies),), processes=[process])
    assert placed(snapshot) == {"org/a": (), "org/b": (1,)}


def test_sizes_tell_copies_apart_where_only_one_assignment_fits() -> None:
    processes = [
        make_process(0, pid=1, gib=20.5),
        make_process(1, pid=1, gib=20.5),
        make_process(0, pid=2, gib=1.4),
    ]
    assert placed(make_snapshot(loaded=[SMALL, BIG], processes=processes)) == {
        "small:1b": (0,),
        "big:70b": (0, 1),
    }


def test_copies_of_like_size_stay_unplaced() -> None:
    processes = [make_process(0, pid=1, gib=41), make_process(1, pid=2, gib=42)]
    assert placed(make_snapshot(loaded=[BIG, LIKE], processes=processes)) == {"big:70b": (), "like:70b": ()}
    one_missing = make_snapshot(loaded=[BIG, SMALL], processes=processes[:1])
    assert placed(one_missing) == {"big:70b": (), "small:1b": ()}


def test_unknown_figures_place_nothing() -> None:
    processes = [make_process(0, pid=1, used_mib=Unknown("[N/A]")), make_process(1, pid=2, gib=1.2)]
    assert placed(make_snapshot(loaded=[BIG, SMALL], processes=processes)) == {"big:70b": (), "small:1b": ()}
    assert placed(make_snapshot(cards=[make_card(uuid=Unknown())], loaded=[BIG], processes=processes)) == {
        "big:70b": ()
    }
