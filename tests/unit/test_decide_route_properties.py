"""What holds for every fleet: more machines or more room never make the answer worse, order never matters."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import (
    NOW,
    judged,
    make_card,
    make_copy,
    make_engine,
    make_fleet,
    make_installed,
    make_offline,
    make_pending,
    make_snapshot,
)
from fleettui.decide.knowledge import RouteKnowledge
from fleettui.decide.model_need import GIB, SeenCopy
from fleettui.decide.ranking import order_key, strict_key
from fleettui.decide.routing import decide_route
from fleettui.model.lease import Lease
from fleettui.model.readings import CopyUse
from fleettui.model.route import RouteDecision, RouteQuery
from fleettui.model.snapshot import DrainFlag, MachineSnapshot, MaintenanceFlag
from fleettui.model.unknown import Unknown

MODEL = "llama3.1:70b"
DIGEST = make_copy().digest
assert isinstance(DIGEST, str)

wishes = st.fixed_dictionaries(
    {},
    optional={
        "context": st.sampled_from([4096, 32768]),
        "min_free_vram_mib": st.integers(0, 30 * 1024),
        "free_scope": st.sampled_from(["gpu", "host"]),
        "require_loaded": st.booleans(),
        "avoid_busy": st.booleans(),
        "allow_pull": st.booleans(),
        "takes_lease": st.booleans(),
        "tags": st.just(("gpu",)),
    },
)


@st.composite
def machines(draw: st.DrawFn, name: str) -> MachineSnapshot:
    """Any machine, eligible or not."""
    kind = draw(st.sampled_from(["gpu"] * 6 + ["cpu", "offline", "pending"]))
    if kind in ("offline", "pending"):
        return make_offline(name) if kind == "offline" else make_pending(name)
    others = draw(st.lists(st.sampled_from(["qwen3:8b", "phi3:mini", "gemma3:12b"]), unique=True))
    copies = [
        make_copy(other, gib=draw(st.integers(1, 20)), is_pinned=draw(st.booleans())) for other in others
    ]
    has = draw(st.sampled_from(["loaded", "loading", "disk", "disk", "nothing"]))
    if has in ("loaded", "loading"):
        vram = draw(st.sampled_from([0.0, 10.0, 40.0]))
        context = draw(st.sampled_from([4096, 32768]))
        copies.append(make_copy(gib=40, vram_gib=vram, context=context, state=has))
    installed = [make_installed(copy.name) for copy in copies]
    installed += [make_installed(gib=35)] if has == "disk" else []
    engine = make_engine(
        loaded=copies,
        installed=installed,
        running=draw(st.sampled_from([Unknown(), 0, 2])),
        uses=tuple(CopyUse(copy.name, NOW - draw(st.integers(1, 5000))) for copy in copies),
    )
    count = 0 if kind == "cpu" else draw(st.integers(1, 3))
    cards = [make_card(index, free_gib=draw(st.integers(0, 48)), total_gib=48) for index in range(count)]
    flags: dict[str, Any] = {}
    if draw(st.integers(0, 5)) == 0:
        flags["maintenance"] = MaintenanceFlag(None, "mia", NOW - 60)
    if draw(st.integers(0, 5)) == 0:
        flags["drain"] = DrainFlag("running", "move", "mia", NOW - 60)
    return judged(
        make_snapshot(
            name,
            gpus=count,
            cards=cards,
            engines=(engine,),
            age_s=draw(st.sampled_from([1, 1, 1, 40])),
            **flags,
        )
    )


@st.composite
def fleets(draw: st.DrawFn) -> list[MachineSnapshot]:
    return [draw(machines(f"m{index}")) for index in range(draw(st.integers(0, 6)))]


@st.composite
def knowledges(draw: st.DrawFn) -> RouteKnowledge:
    """The need is measured, so that a machine more tells nothing new about it."""
    leases = [
        Lease(str(number), f"m{draw(st.integers(0, 6))}", 11434, "ollama", MODEL, kind, NOW - 1, NOW + 9, mib)
        for number, (kind, mib) in enumerate(
            draw(st.lists(st.sampled_from([("resident", 0), ("cold", 9000)]), max_size=3))
        )
    ]
    return RouteKnowledge(tuple(leases), measured={DIGEST: (SeenCopy(41 * GIB, 262_144, 1),)})


def key_of(decision: RouteDecision) -> tuple[Any, ...]:
    """How good the answer is; none at all is the worst."""
    chosen = decision.chosen
    if chosen is None:
        return (1,)
    return (0, *(strict_key(chosen) if decision.query.is_strict else order_key(chosen)))


@given(fleets(), machines("m6"), wishes, knowledges())
def test_one_machine_more_never_makes_the_answer_worse(
    fleet: list[MachineSnapshot], more: MachineSnapshot, wished: dict[str, Any], known: RouteKnowledge
) -> None:
    query = RouteQuery(MODEL, **wished)
    before = decide_route(make_fleet(*fleet), query, NOW, known)
    after = decide_route(make_fleet(*fleet, more), query, NOW, known)
    assert key_of(after) <= key_of(before)
    if after.chosen != before.chosen:
        assert after.chosen is not None
        assert after.chosen.machine == "m6"


@given(fleets(), wishes, knowledges(), st.sampled_from([None, "chat 7"]), st.randoms(use_true_random=False))
def test_the_order_of_the_machines_never_matters(
    fleet: list[MachineSnapshot],
    wished: dict[str, Any],
    known: RouteKnowledge,
    sticky: str | None,
    shuffler: random.Random,
) -> None:
    query = RouteQuery(MODEL, sticky=sticky, **wished)
    unmeasured = replace(known, measured={})
    shuffled = list(fleet)
    shuffler.shuffle(shuffled)
    straight = decide_route(make_fleet(*fleet), query, NOW, unmeasured)
    again = decide_route(make_fleet(*shuffled), query, NOW, unmeasured)
    assert straight.candidates == again.candidates
    assert straight.rejected == again.rejected
    assert (straight.exit_code, straight.nearest) == (again.exit_code, again.nearest)


@given(fleets(), wishes, knowledges(), st.sampled_from([None, "chat 7"]))
def test_every_machine_is_explained_and_a_rejected_one_never_chosen(
    fleet: list[MachineSnapshot], wished: dict[str, Any], known: RouteKnowledge, sticky: str | None
) -> None:
    decision = decide_route(make_fleet(*fleet), RouteQuery(MODEL, sticky=sticky, **wished), NOW, known)
    eligible = [item.machine for item in decision.candidates]
    rejected = [item.machine for item in decision.rejected]
    assert sorted(eligible + rejected) == sorted(item.name for item in fleet)
    assert all(item.rejections for item in decision.rejected)
    assert (decision.chosen is None) == (decision.exit_code != 0) == (not eligible)
    if decision.chosen is not None:
        assert decision.chosen == decision.candidates[0]
        assert decision.chosen.machine not in rejected
    for candidate in decision.candidates:
        assert candidate.reason
        assert candidate.need is None or candidate.need.basis
        assert isinstance(candidate.eta_s, Unknown) == (candidate.eta_basis == "not known")
        assert not (candidate.evicts and candidate.tier not in (3, 5, 6, 7))
        assert {item.model for item in candidate.evicts} <= {"qwen3:8b", "phi3:mini", "gemma3:12b"}


@settings(max_examples=150)
@given(machines("m0"), wishes, knowledges(), st.integers(0, 2), st.integers(1, 40))
def test_more_free_vram_never_worsens_a_tier(
    machine: MachineSnapshot, wished: dict[str, Any], known: RouteKnowledge, index: int, gib: int
) -> None:
    if machine.gpu is None or index >= len(machine.gpu.cards):
        return
    card = machine.gpu.cards[index]
    assert not isinstance(card.free_mib, Unknown)
    freer = replace(card, free_mib=min(48 * 1024, card.free_mib + gib * 1024))
    cards = tuple(freer if item.index == index else item for item in machine.gpu.cards)
    roomier = replace(machine, gpu=replace(machine.gpu, cards=cards))
    query = RouteQuery(MODEL, **wished)
    before, after = (
        decide_route(make_fleet(item), query, NOW, known).candidates for item in (machine, roomier)
    )
    assert len(after) >= len(before)
    if before:
        assert after[0].tier <= before[0].tier
