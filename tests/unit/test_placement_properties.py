"""What holds of plans for every fleet."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleettui.decide.placement.optimal import compare, plan_optimal
from fleettui.decide.placement.plan import plan
from fleettui.decide.placement.queue import build_queue
from fleettui.decide.placement.sticky import plan_keeping
from fleettui.model.placement import PlacementPlan, PlanGpu, PlanNode, PlanRole
from fleettui.model.record import replace
from fleettui.model.unknown import Unknown
from fleettui.view.placement_document import plan_document, read_plan
from placement_fleets import CARDS, CATALOG, Fleet, random_fleet

capabilities = st.sampled_from([(6, 1), (7, 0), (8, 6), (8, 9), (9, 0)])
SETTINGS = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def gpu_cards(draw: Any, index: int) -> PlanGpu:
    name, memory, cc = draw(st.sampled_from(CARDS))
    is_known = draw(st.integers(0, 9)) > 0
    return PlanGpu(index, name, memory, cc if is_known else Unknown("old"), draw(st.integers(0, 11)) == 0)


@st.composite
def nodes(draw: Any, name: str) -> PlanNode:
    gpus = tuple(draw(gpu_cards(index)) for index in range(draw(st.integers(0, 4))))
    return PlanNode(
        name,
        draw(st.sampled_from([8, 64, 128, Unknown("no profile")])),
        gpus,
        draw(st.booleans()),
        draw(st.sampled_from(["", "", "", "", "maintenance"])),
        draw(st.booleans()),
    )


@st.composite
def fleets(draw: Any, *, shares: bool = True, sets: bool = True) -> Fleet:
    machines = tuple(draw(nodes(f"n{number}")) for number in range(draw(st.integers(0, 5))))
    roles: list[PlanRole] = []
    for number in range(draw(st.integers(1, 7))):
        names = [f"role-{other}" for other in range(number)]
        roles.append(
            PlanRole(
                f"role-{number}",
                tuple(draw(st.sampled_from([(), ("vllm",), ("pytorch",), ("ollama", "vllm")]))),
                draw(st.sampled_from([0, 4, 8, 12, 20, 24, 40])),
                draw(st.none() | capabilities),
                draw(st.none() | capabilities),
                draw(st.integers(0, 5)) > 0,
                draw(st.sampled_from([0, 0, 4, 40])),
                draw(st.sampled_from([1, 1, 1, 2])) if sets else 1,
                draw(st.sampled_from(["largest", "smallest_fitting"])),
                draw(st.integers(0, 3)),
                priority=draw(st.integers(0, 3)),
                share_with=draw(st.none() | st.sampled_from(names)) if shares and names else None,
                cpu_fallback=draw(st.booleans()),
                position=number,
            )
        )
    return Fleet(machines, tuple(roles))


def places(made: PlacementPlan) -> dict[tuple[str, int], tuple[str, tuple[int, ...]]]:
    return {(item.role, item.copy): (item.node, item.gpus) for item in made.assignments}


def on_gpus(made: PlacementPlan) -> set[tuple[str, int]]:
    return {key for key, (_, gpus) in places(made).items() if gpus}


def check_plan(fleet: Fleet, made: PlacementPlan) -> None:
    """What a plan must be, whoever made it."""
    roles = {role.name: role for role in fleet.roles}
    machines = {node.name: node for node in fleet.nodes}
    owners: dict[tuple[str, int], str] = {}
    used: dict[tuple[str, int], float] = {}
    for item in made.assignments:
        role, node = roles[item.role], machines[item.node]
        assert not node.unavailable
        if item.gpus:
            assert role.gpu
            assert len(item.gpus) == role.gpus
        else:
            assert not role.gpu or item.fallback
            assert node.cpu_roles
        for index in item.gpus:
            card = next(card for card in node.gpus if card.index == index)
            assert not card.disabled
            assert card.memory_gb >= role.min_vram_gb
            assert role.min_cc is None or (not isinstance(card.cc, Unknown) and card.cc >= role.min_cc)
            used[item.node, index] = used.get((item.node, index), 0) + role.min_vram_gb
            assert used[item.node, index] <= card.memory_gb or item.shared_with is None
            if item.shared_with is None:
                assert owners.setdefault((item.node, index), item.label) == item.label
            else:
                assert owners[item.node, index] == f"{item.shared_with}/{item.copy}"
    on_cpu = [(item.role, item.node) for item in made.assignments if not item.gpus and not item.shared_with]
    assert len(on_cpu) == len(set(on_cpu))
    counts = {role.name: role.count for role in fleet.roles if role.count}
    for item in made.assignments:
        counts[item.role] -= 1
    assert {left.role: left.missing for left in made.unplaced} == {n: c for n, c in counts.items() if c}
    inventory = sorted((node.name, card.index) for node in fleet.nodes for card in node.gpus)
    for left in made.unplaced:
        assert sorted((miss.node, miss.gpu_index) for miss in left.per_gpu) == inventory
        assert all(miss.codes and miss.reason for miss in left.per_gpu)
        assert left.reason


@SETTINGS
@given(fleets())
def test_every_plan_is_sound(fleet: Fleet) -> None:
    both = compare(fleet.nodes, fleet.roles, fleet.catalog)
    check_plan(fleet, both.greedy)
    check_plan(fleet, both.optimal)
    kept = plan_keeping(both.optimal, fleet.nodes, fleet.roles, fleet.catalog)
    check_plan(fleet, kept)


@SETTINGS
@given(fleets(), st.integers())
def test_input_order_never_changes_a_byte(fleet: Fleet, seed: int) -> None:
    chance = random.Random(seed)
    shuffled_nodes = [
        replace(node, gpus=tuple(chance.sample(node.gpus, len(node.gpus)))) for node in fleet.nodes
    ]
    chance.shuffle(shuffled_nodes)
    shuffled_roles = chance.sample(fleet.roles, len(fleet.roles))
    for make in (plan, plan_optimal):
        one = json.dumps(plan_document(make(fleet.nodes, fleet.roles, CATALOG)))
        other = json.dumps(plan_document(make(shuffled_nodes, shuffled_roles, CATALOG)))
        assert one == other


@SETTINGS
@given(fleets(shares=False, sets=False), st.data())
def test_one_more_gpu_never_unplaces_a_copy(fleet: Fleet, data: st.DataObject) -> None:
    roles = tuple(replace(role, gpu=True, cpu_fallback=False) for role in fleet.roles)
    more = (*fleet.nodes, replace(data.draw(nodes("n9")), gpus=(data.draw(gpu_cards(0)),), unavailable=""))
    for make in (plan, plan_optimal):
        before, after = places(make(fleet.nodes, roles, CATALOG)), places(make(more, roles, CATALOG))
        assert before.keys() <= after.keys()


@SETTINGS
@given(fleets(), st.data())
def test_a_role_of_lower_priority_never_changes_a_higher_one(fleet: Fleet, data: st.DataObject) -> None:
    last = replace(data.draw(fleets(shares=False)).roles[0], name="last", priority=9, position=99)
    one = places(plan(fleet.nodes, fleet.roles, CATALOG))
    other = places(plan(fleet.nodes, (*fleet.roles, last), CATALOG))
    assert one == {key: place for key, place in other.items() if key[0] != "last"}


@SETTINGS
@given(fleets())
def test_optimal_is_never_worse_in_the_order_of_the_queue(fleet: Fleet) -> None:
    both = compare(fleet.nodes, fleet.roles, fleet.catalog)
    if both.optimal.method != "optimal":
        return
    copies = [(role.name, copy) for role in build_queue(fleet.roles).roles for copy in range(role.count)]
    greedy, optimal = ([copy in on_gpus(made) for copy in copies] for made in (both.greedy, both.optimal))
    assert optimal >= greedy
    if not any(role.share_with or role.gpus > 1 for role in fleet.roles):
        assert sum(optimal) == both.optimal_copies >= both.greedy_copies == sum(greedy)


@SETTINGS
@given(fleets())
def test_keeping_a_plan_that_still_holds_changes_nothing(fleet: Fleet) -> None:
    before = plan(fleet.nodes, fleet.roles, CATALOG)
    assert places(plan_keeping(before, fleet.nodes, fleet.roles, CATALOG)) == places(before)


@SETTINGS
@given(fleets())
def test_a_document_is_read_back_whole(fleet: Fleet) -> None:
    made = plan(fleet.nodes, fleet.roles, CATALOG)
    assert read_plan(json.loads(json.dumps(plan_document(made)))) == made


@SETTINGS
@given(fleets(shares=False, sets=False))
def test_moves_that_are_told_give_a_copy_its_place(fleet: Fleet) -> None:
    """`would fit if a/0 moved to n1/0` is true: by those moves a GPU that suits comes free."""
    made = plan(fleet.nodes, fleet.roles, CATALOG)
    best = plan_optimal(fleet.nodes, fleet.roles, CATALOG)
    told = [left.role for left in made.unplaced if any(" moved to " in fix for fix in left.fixes)]
    gained = {left.role: left.missing for left in best.unplaced}
    firsts = [left for left in made.unplaced if left.per_gpu and left.role in told]
    if firsts:
        # the first role in the queue that moves would help has more copies in the optimal plan
        assert gained.get(firsts[0].role, 0) < firsts[0].missing


def test_a_search_that_would_take_too_long_is_labelled_and_still_a_plan() -> None:
    fleet = random_fleet(0, gpus=64, copies=64, shares=True, sets=True)
    both = compare(fleet.nodes, fleet.roles, fleet.catalog)
    assert both.optimal.method == "heuristic"
    assert both.optimal_copies > both.greedy_copies
    check_plan(fleet, both.optimal)
