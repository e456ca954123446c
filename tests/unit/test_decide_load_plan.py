"""How a model would be loaded: the quick verdict is that of the one with words, for any room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fleettui.decide.fit import judge_room
from fleettui.decide.load_plan import place_on_cards, place_partly
from fleettui.decide.model_need import GIB, MIB, ModelNeed
from fleettui.decide.room import CardRoom, IdleCopy, Room
from fleettui.model.unknown import Unknown
from fleettui.model.vram import FreeVram

sizes = st.integers(0, 100).map(lambda quarters: quarters * GIB // 4)
needs = st.builds(
    ModelNeed,
    shared_bytes=sizes,
    per_gpu_bytes=st.sampled_from([GIB // 2, 2 * GIB]),
    basis=st.just("file size"),
    text=st.just(""),
    layer_bytes=st.sampled_from([0, GIB]),
)


@given(
    st.lists(st.tuples(sizes, st.booleans()), max_size=4),
    st.lists(sizes.filter(bool), max_size=3),
    st.one_of(sizes, st.just(Unknown("not read"))),
    needs,
)
def test_both_verdicts_agree(
    cards: list[tuple[int, bool]], idle: list[int], ram: int | Unknown, need: ModelNeed
) -> None:
    room = Room(
        tuple(CardRoom(index, free, is_alone) for index, (free, is_alone) in enumerate(cards)),
        tuple(
            IdleCopy(f"m{number}", size, ((0, size),) if len(cards) == 1 else ())
            for number, size in enumerate(idle)
        ),
        ram,
    )
    joined, alone = _ranked(cards, is_alone=False), _ranked(cards, is_alone=True)
    best = max([*joined, *alone], default=(0, 0))
    summed = max(best[0], sum(size for size, _ in joined))
    free = FreeVram(best[0] // MIB, -best[1] if cards else None, summed // MIB, joined=joined, alone=alone)
    fit = judge_room(room, need)
    verdict, gpus, count, rest = place_on_cards(free, idle, need) or place_partly(free, idle, need, ram)
    assert verdict == fit.verdict
    if verdict in ("one_gpu", "several_gpus", "evictions", "cpu_offload") and cards:
        assert gpus == fit.gpus
    assert tuple(f"m{number}" for number in range(count)) == fit.evicted
    assert rest == fit.ram_bytes


def _ranked(cards: list[tuple[int, bool]], *, is_alone: bool) -> tuple[tuple[int, int], ...]:
    found = [(free, -index) for index, (free, alone) in enumerate(cards) if alone == is_alone]
    return tuple(sorted(found, reverse=True))
