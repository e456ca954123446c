"""Optimal plans against an exact solver, OR-Tools CP-SAT, that knows the rules but none of our code."""

from __future__ import annotations

from typing import Any

import pytest

from fleettui.decide.placement.optimal import compare
from fleettui.model.placement import PlacementPlan, PlanGpu, PlanRole
from fleettui.model.unknown import Unknown
from placement_fleets import Fleet, random_fleet

cp_model: Any = pytest.importorskip(
    "ortools.sat.python.cp_model",
    reason="OR-Tools is not installed: requirements/solver.txt has no wheel here",
)

Copy = tuple[str, int]


def suits(gpu: PlanGpu, role: PlanRole, fleet: Fleet) -> bool:
    """Bounds of a role on a GPU, written down anew."""
    bounds = {engine.name: engine.min_cc or (0, 0) for engine in fleet.catalog.engines}
    lowest = min((bounds[name] for name in role.engines), default=(0, 0))
    floor = max(role.min_cc or (0, 0), lowest)
    if isinstance(gpu.cc, Unknown):
        return gpu.memory_gb >= role.min_vram_gb and floor == (0, 0) and role.max_cc is None
    is_below = role.max_cc is None or gpu.cc <= role.max_cc
    return gpu.memory_gb >= role.min_vram_gb and gpu.cc >= floor and is_below


def solve(fleet: Fleet, *, by_count: bool = False) -> set[Copy]:
    """The copies with a GPU in the best plan: first copies first, or as many as can be."""
    model = cp_model.CpModel()
    gpus = [(node.name, gpu) for node in fleet.nodes for gpu in node.gpus]
    roles = {role.name: role for role in fleet.roles}
    copies = [(role.name, copy) for role in fleet.roles for copy in range(role.count)]
    kept = {copy: model.new_bool_var(f"keep {copy}") for copy in copies}
    on = {
        (copy, place): model.new_bool_var(f"{copy} on {place}")
        for copy in copies
        for place, (_, gpu) in enumerate(gpus)
        if suits(gpu, roles[copy[0]], fleet)
    }
    for copy in copies:
        role = roles[copy[0]]
        mine = [variable for (owner, _), variable in on.items() if owner == copy]
        model.add(sum(mine) == role.gpus * kept[copy])
        if role.share_with is not None:
            root = (role.share_with, copy[1])
            for place in range(len(gpus)):
                if (copy, place) in on:
                    model.add(on[copy, place] <= on.get((root, place), 0))
        elif role.gpus > 1:
            for node in fleet.nodes:
                is_here = model.new_bool_var(f"{copy} at {node.name}")
                places = [place for place, (name, _) in enumerate(gpus) if name == node.name]
                here = [on[copy, place] for place in places if (copy, place) in on]
                model.add(sum(here) == role.gpus * is_here)
    for place, (_, gpu) in enumerate(gpus):
        owners = [(copy, v) for (copy, where), v in on.items() if where == place]
        model.add(sum(v for copy, v in owners if roles[copy[0]].share_with is None) <= 1)
        model.add(sum(int(roles[copy[0]].min_vram_gb) * v for copy, v in owners) <= gpu.memory_gb)
    order = [copy for name in queue_of(fleet) for copy in copies if copy[0] == name]
    weights = {copy: 1 if by_count else 1 << (len(order) - 1 - place) for place, copy in enumerate(order)}
    model.maximize(sum(weights[copy] * variable for copy, variable in kept.items()))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return {copy for copy, variable in kept.items() if solver.value(variable)}


def queue_of(fleet: Fleet) -> list[str]:
    """Priorities of these fleets are all different, and no target comes after a role that shares with it."""
    return [role.name for role in sorted(fleet.roles, key=lambda role: role.priority)]


def copies_on_gpus(plan: PlacementPlan) -> set[Copy]:
    return {(item.role, item.copy) for item in plan.assignments if item.gpus}


@pytest.mark.parametrize("start", range(0, 120, 40))
def test_single_gpus_equal_the_solver_in_number_and_order(start: int) -> None:
    gained = 0
    for seed in range(start, start + 40):
        fleet = random_fleet(seed)
        both = compare(fleet.nodes, fleet.roles, fleet.catalog)
        assert copies_on_gpus(both.optimal) == solve(fleet), seed
        assert both.optimal_copies == len(solve(fleet, by_count=True)) >= both.greedy_copies, seed
        assert both.optimal.method == "optimal"
        gained += both.optimal_copies - both.greedy_copies
    assert gained > 0  # fleets on which the greedy plan is never worse would prove nothing


@pytest.mark.parametrize("start", range(1000, 1100, 50))
def test_shares_equal_the_solver(start: int) -> None:
    for seed in range(start, start + 50):
        fleet = random_fleet(seed, shares=True)
        both = compare(fleet.nodes, fleet.roles, fleet.catalog)
        assert copies_on_gpus(both.optimal) == solve(fleet), seed


@pytest.mark.parametrize("start", range(2000, 2100, 50))
def test_copies_of_several_gpus_equal_the_solver(start: int) -> None:
    for seed in range(start, start + 50):
        fleet = random_fleet(seed, gpus=14, copies=10, shares=seed % 2 == 0, sets=True)
        both = compare(fleet.nodes, fleet.roles, fleet.catalog)
        assert both.optimal.method == "optimal", seed
        assert copies_on_gpus(both.optimal) == solve(fleet), seed
