"""Random fleets and roles for tests and benchmarks of placement; a seed gives the same ones for ever."""

from __future__ import annotations

import random
from dataclasses import dataclass

from fleettui.model.catalog import Catalog, CatalogEngine, CatalogModel
from fleettui.model.placement import PlanGpu, PlanNode, PlanRole
from fleettui.model.unknown import Unknown

CARDS = (
    ("NVIDIA GeForce GTX 1080", 8, (6, 1)),
    ("Tesla P40", 24, (6, 1)),
    ("NVIDIA RTX A2000", 12, (8, 6)),
    ("NVIDIA RTX 4000 Ada Generation", 20, (8, 9)),
    ("NVIDIA GeForce RTX 3090", 24, (8, 6)),
    ("NVIDIA L40S", 48, (8, 9)),
    ("NVIDIA A100-SXM4-80GB", 80, (8, 0)),
    ("NVIDIA H200", 140, (9, 0)),
)
CATALOG = Catalog(
    tuple(
        CatalogModel(f"model-{gb}", vram_gib=float(gb), engines=engines)
        for gb, engines in (
            (2, ()),
            (5, ("ollama",)),
            (14, ("vllm", "ollama")),
            (40, ("vllm",)),
            (70, ("vllm",)),
        )
    ),
    (
        CatalogEngine("ollama", (5, 0), True),
        CatalogEngine("vllm", (7, 0)),
        CatalogEngine("pytorch", (7, 5), True),
    ),
)


@dataclass(frozen=True)
class Fleet:
    """What a plan is made from."""

    nodes: tuple[PlanNode, ...]
    roles: tuple[PlanRole, ...]
    catalog: Catalog = CATALOG


def random_fleet(
    seed: int, *, gpus: int = 10, copies: int = 14, shares: bool = False, sets: bool = False
) -> Fleet:
    """About so many GPUs and copies: `shares` lets roles share, `sets` lets copies take several GPUs."""
    chance = random.Random(seed)
    nodes: list[PlanNode] = []
    left = gpus
    while left > 0:
        size = min(left, chance.choice((1, 1, 2, 2, 3, 4) if not sets else (1, 2, 2, 4, 4)))
        left -= size
        card = chance.choice(CARDS)
        cards = [card if chance.random() < 0.7 else chance.choice(CARDS) for _ in range(size)]
        nodes.append(
            PlanNode(
                f"n{len(nodes) + 1}",
                chance.choice((16, 64, 128, 256)),
                tuple(
                    PlanGpu(index, name, memory, cc if chance.random() < 0.95 else Unknown("old driver"))
                    for index, (name, memory, cc) in enumerate(cards)
                ),
            )
        )
    roles: list[PlanRole] = []
    while sum(role.count for role in roles) < copies:
        targets = [role.name for role in roles if role.share_with is None]
        shared = chance.choice(targets) if shares and targets and chance.random() < 0.35 else None
        roles.append(
            PlanRole(
                f"role-{len(roles)}",
                chance.choice(((), ("vllm",), ("pytorch",), ("ollama", "vllm"))),
                chance.choice((0, 4, 8, 12, 20, 24, 40, 80)) if shared is None else chance.choice((2, 4, 8)),
                chance.choice((None, None, (7, 0), (8, 0), (8, 9))),
                chance.choice((None, None, None, (8, 9))),
                gpus=chance.choice((1, 1, 2, 2, 3)) if sets and shared is None else 1,
                prefer=chance.choice(("largest", "smallest_fitting")),
                count=chance.choice((1, 1, 2, 3)),
                priority=len(roles),
                share_with=shared,
                position=len(roles),
            )
        )
    return Fleet(tuple(nodes), tuple(roles))
