"""CPU of plans: optimal for 64 GPUs and copies, greedy for a thousand of each, N-1 of 64 machines.

Fleets mix eight kinds of cards, so that copies compete; some copies have no place, which costs explanations.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from functools import partial

from fleettui.decide.placement.optimal import compare, plan_optimal
from fleettui.decide.placement.plan import plan
from fleettui.decide.placement.what_if import lose_each_node
from fleettui.model.catalog import Catalog, CatalogEngine, CatalogModel
from fleettui.model.placement import Capability, PlanGpu, PlanNode, PlanRole
from measure import Report

CARDS: tuple[tuple[str, int, Capability], ...] = (
    ("Tesla P40", 24, (6, 1)),
    ("NVIDIA RTX A2000", 12, (8, 6)),
    ("NVIDIA RTX 4000 Ada Generation", 20, (8, 9)),
    ("NVIDIA GeForce RTX 3090", 24, (8, 6)),
    ("NVIDIA GeForce RTX 4090", 24, (8, 9)),
    ("NVIDIA L40S", 45, (8, 9)),
    ("NVIDIA A100-SXM4-80GB", 80, (8, 0)),
    ("NVIDIA H200", 140, (9, 0)),
)
ENGINES = ("ollama", "vllm", "pytorch")
CATALOG = Catalog(
    tuple(
        CatalogModel(f"model-{number}", vram_gib=2.0 + number * 1.5, engines=(ENGINES[number % 3],))
        for number in range(60)
    ),
    (
        CatalogEngine("ollama", (5, 0), True),
        CatalogEngine("vllm", (7, 0)),
        CatalogEngine("pytorch", (7, 5), True),
    ),
)
OPTIMAL_GOAL_MS, GREEDY_GOAL_MS, LOSS_GOAL_MS = 20.0, 250.0, 1000.0


def make_nodes(gpus: int, per_node: int) -> tuple[PlanNode, ...]:
    """Machines of one kind of card each."""
    chance = random.Random(gpus)
    nodes = []
    for number in range(gpus // per_node):
        name, memory, cc = chance.choice(CARDS)
        cards = tuple(PlanGpu(index, name, memory, cc) for index in range(per_node))
        nodes.append(PlanNode(f"pve{number}", chance.choice((64, 128, 256)), cards))
    return tuple(nodes)


def make_roles(copies: int, count: int) -> tuple[PlanRole, ...]:
    """Roles of `count` copies each, of all sizes and bounds."""
    chance = random.Random(copies + count)
    return tuple(
        PlanRole(
            f"role-{number}",
            (chance.choice(ENGINES),),
            chance.choice((4, 8, 12, 16, 20, 24, 40, 60)),
            chance.choice((None, None, (8, 0), (8, 9))),
            prefer=chance.choice(("largest", "smallest_fitting")),
            count=count,
            priority=number % 10,
            cpu_fallback=number % 7 == 0,
            position=number,
        )
        for number in range(copies // count)
    )


def make_sets(roles: int, count: int) -> tuple[PlanRole, ...]:
    """Roles whose copies take 2 to 4 GPUs of one node."""
    chance = random.Random(roles)
    return tuple(
        PlanRole(
            f"set-{number}",
            ("vllm",),
            chance.choice((12, 20, 40)),
            gpus=chance.choice((2, 3, 4)),
            count=count,
            priority=chance.randrange(10),
            position=1000 + number,
        )
        for number in range(roles)
    )


def median_ms(work: Callable[[], object], repeat: int) -> float:
    """CPU milliseconds of this process for one run."""
    work()
    taken = []
    for _ in range(repeat):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return statistics.median(taken) * 1e3


def main() -> None:
    """Measure and print."""
    report = Report("Placement: CPU of one plan")
    nodes = make_nodes(64, 2)
    for count, words in ((1, "64 roles"), (4, "16 roles of 4 copies")):
        roles = make_roles(64, count)
        both = compare(nodes, roles, CATALOG)
        report.add(
            f"optimal, 64 GPUs x {words}",
            median_ms(partial(plan_optimal, nodes, roles, CATALOG), 30),
            "ms",
            OPTIMAL_GOAL_MS,
            f"greedy {both.greedy_copies}, optimal {both.optimal_copies} copies on GPUs",
        )
    nodes, roles = make_nodes(256, 4), (*make_roles(250, 1), *make_sets(6, 2))
    both = compare(nodes, roles, CATALOG)
    report.add(
        "optimal, 256 GPUs x 262 copies, 12 of them of several GPUs",
        median_ms(partial(plan_optimal, nodes, roles, CATALOG), 5),
        "ms",
        None,
        f"greedy {both.greedy_copies}, {both.optimal.method} {both.optimal_copies}",
    )
    nodes = make_nodes(1000, 4)
    for count, words in ((1, "1,000 roles"), (25, "40 roles of 25 copies")):
        roles = make_roles(1000, count)
        made = plan(nodes, roles, CATALOG)
        report.add(
            f"greedy, 1,000 GPUs x {words}",
            median_ms(partial(plan, nodes, roles, CATALOG), 5),
            "ms",
            GREEDY_GOAL_MS,
            f"{made.missing} copies without a place, each GPU told for each of {len(made.unplaced)} roles",
        )
    nodes, roles = make_nodes(256, 4), make_roles(200, 2)
    for optimal in (False, True):
        report.add(
            f"N-1 of 64 machines, {'optimal' if optimal else 'greedy'}, 256 GPUs x 200 copies",
            median_ms(partial(lose_each_node, nodes, roles, CATALOG, optimal=optimal), 3),
            "ms",
            LOSS_GOAL_MS,
        )
    report.finish()


if __name__ == "__main__":
    main()
