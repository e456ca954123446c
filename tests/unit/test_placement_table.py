"""Every row of the algorithm by a fleet small enough to be planned by hand."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from fleettui.decide.placement.plan import plan
from fleettui.model.catalog import Catalog, CatalogEngine, CatalogModel
from fleettui.model.placement import (
    Assignment,
    DisabledGpu,
    ExcludedNode,
    PlacementPlan,
    PlanGpu,
    PlanNode,
    PlanRole,
)
from fleettui.model.unknown import Unknown

ENGINES = (
    CatalogEngine("vllm", (7, 0)),
    CatalogEngine("pytorch", (7, 5), True),
    CatalogEngine("ollama", None, True),
)
CATALOG = Catalog((), ENGINES)


def gpus(text: str) -> tuple[PlanGpu, ...]:
    """`24@8.6 12@?`: GiB and capability of GPUs 0, 1, …; a `!` behind it is disabled."""
    found = []
    for index, word in enumerate(text.split()):
        memory, _, cc = word.rstrip("!").partition("@")
        known = Unknown("old driver") if cc == "?" else tuple(map(int, cc.split(".")))
        found.append(PlanGpu(index, "", int(memory), known, word.endswith("!")))  # type: ignore[arg-type]
    return tuple(found)


def node(name: str, ram: int, cards: str = "", **more: object) -> PlanNode:
    return PlanNode(name, ram, gpus(cards), **more)  # type: ignore[arg-type]


def placed(made: PlacementPlan) -> list[str]:
    """`tts/0 n1/0 with chat`, `embed/0 n3 fallback`."""
    return [
        f"{item.label} {item.place}"
        + (f" with {item.shared_with}" if item.shared_with else "")
        + (" fallback" if item.fallback else "")
        for item in made.assignments
    ]


def unplaced(made: PlacementPlan) -> list[str]:
    """`big 2 vram`."""
    return [f"{item.role} {item.missing} {item.code}" for item in made.unplaced]


@dataclass(frozen=True)
class Case:
    name: str
    nodes: tuple[PlanNode, ...]
    roles: tuple[PlanRole, ...]
    placed: list[str]
    unplaced: list[str] = field(default_factory=list)


R = PlanRole
CASES = [
    # 1: pool
    Case(
        "natural order of nodes, then index",
        (node("n10", 8, "24@8.6"), node("n2", 8, "24@8.6 24@8.6")),
        (R("a", count=3),),
        ["a/0 n2/0", "a/1 n2/1", "a/2 n10/0"],
    ),
    Case(
        "a disabled GPU takes nothing",
        (node("n1", 8, "24@8.6! 24@8.6"),),
        (R("a", count=2),),
        ["a/0 n1/1"],
        ["a 1 all_taken"],
    ),
    Case("only disabled GPUs", (node("n1", 8, "24@8.6!"),), (R("a"),), [], ["a 1 no_gpu"]),
    Case(
        "a node in maintenance takes nothing",
        (node("n1", 64, "24@8.6", unavailable="maintenance"), node("n2", 8, "8@8.6")),
        (R("a", min_vram_gb=20), R("b", gpu=False)),
        ["b/0 n2"],
        ["a 1 vram"],
    ),
    Case(
        "an offline node stays in", (node("n1", 8, "24@8.6", is_offline=True),), (R("a"),), ["a/0 n1/0"]
    ),
    # 2: queue
    Case(
        "priority before place in the file",
        (node("n1", 8, "24@8.6"),),
        (R("a", priority=2), R("b", priority=1)),
        ["b/0 n1/0"],
        ["a 1 all_taken"],
    ),
    Case(
        "equal priorities go by place in the file",
        (node("n1", 8, "24@8.6"),),
        (R("a", position=2), R("b", position=1)),
        ["b/0 n1/0"],
        ["a 1 all_taken"],
    ),
    Case(
        "a role waits for the target it shares with",
        (node("n1", 8, "24@8.6 24@8.6"),),
        (R("a", min_vram_gb=4, share_with="b", priority=1), R("c", priority=2), R("b", priority=3)),
        ["c/0 n1/0", "b/0 n1/1", "a/0 n1/1 with b"],
    ),
    Case(
        "a chain that waits comes in its own order, before what is next",
        (node("n1", 8, "24@8.6 24@8.6"),),
        (
            R("a", min_vram_gb=1, share_with="b", priority=1),
            R("b", min_vram_gb=1, share_with="c", priority=2),
            R("c", priority=3),
            R("d", priority=4),
        ),
        ["c/0 n1/0", "b/0 n1/0 with c", "a/0 n1/0 with c", "d/0 n1/1"],
    ),
    # 3: GPU roles
    Case(
        "smallest that fits, inclusive",
        (node("n1", 8, "80@8.0 24@8.6 20@8.9"),),
        (R("a", min_vram_gb=20, count=2),),
        ["a/0 n1/2", "a/1 n1/1"],
    ),
    Case(
        "largest",
        (node("n1", 8, "24@8.6 80@8.0"), node("n2", 8, "80@6.0")),
        (R("a", prefer="largest", count=2),),
        ["a/0 n1/1", "a/1 n2/0"],
    ),
    Case(
        "cc is a filter, never a tie-break",
        (node("n1", 8, "24@7.0"), node("n2", 8, "24@9.0")),
        (R("a", min_cc=(7, 0)),),
        ["a/0 n1/0"],
    ),
    Case(
        "8.9 is less than 8.10",
        (node("n1", 8, "24@8.9"), node("n2", 8, "24@8.10"), node("n3", 8, "24@12.0")),
        (R("a", min_cc=(8, 10), count=3),),
        ["a/0 n2/0", "a/1 n3/0"],
        ["a 1 all_taken"],
    ),
    Case(
        "min_cc and max_cc are inclusive",
        (node("n1", 8, "24@8.0 24@8.6 24@8.9 24@9.0"),),
        (R("a", min_cc=(8, 6), max_cc=(8, 9), count=4),),
        ["a/0 n1/1", "a/1 n1/2"],
        ["a 2 all_taken"],
    ),
    Case("above max_cc", (node("n1", 8, "24@9.0"),), (R("a", max_cc=(8, 9)),), [], ["a 1 cc_high"]),
    Case("below min_cc", (node("n1", 8, "24@7.5"),), (R("a", min_cc=(8, 0)),), [], ["a 1 cc_low"]),
    Case(
        "the engine's bound binds", (node("n1", 8, "24@7.0"),), (R("a", ("pytorch",)),), [], ["a 1 engine"]
    ),
    Case(
        "the lowest of several engines binds",
        (node("n1", 8, "24@7.0"),),
        (R("a", ("pytorch", "vllm")),),
        ["a/0 n1/0"],
    ),
    Case(
        "an engine without a bound binds nothing",
        (node("n1", 8, "24@3.5"),),
        (R("a", ("pytorch", "ollama")),),
        ["a/0 n1/0"],
    ),
    Case(
        "unknown cc fails a bound of the engine",
        (node("n1", 8, "24@?"),),
        (R("a", ("vllm",)),),
        [],
        ["a 1 cc_unknown"],
    ),
    Case(
        "unknown cc fails an upper bound",
        (node("n1", 8, "24@?"),),
        (R("a", max_cc=(8, 9)),),
        [],
        ["a 1 cc_unknown"],
    ),
    Case("unknown cc does without bounds", (node("n1", 8, "24@?"),), (R("a"),), ["a/0 n1/0"]),
    Case("no GPU at all", (node("n1", 8),), (R("a"),), [], ["a 1 no_gpu"]),
    Case(
        "several GPUs of one node, all or nothing",
        (node("n1", 8, "24@8.6"), node("n2", 8, "24@8.6 48@8.9 24@8.6"), node("n3", 8, "24@8.6")),
        (R("a", gpus=2, count=2), R("b", priority=200, count=3)),
        ["a/0 n2/0+2", "b/0 n1/0", "b/1 n3/0", "b/2 n2/1"],
        ["a 1 all_taken"],
    ),
    Case(
        "no node has so many",
        (node("n1", 8, "24@8.6"), node("n2", 8, "24@8.6")),
        (R("a", gpus=2),),
        [],
        ["a 1 no_gpu"],
    ),
    Case(
        "several of the largest",
        (node("n1", 8, "80@8.0 24@8.6"), node("n2", 8, "48@8.9 48@8.9 80@8.0")),
        (R("a", gpus=2, prefer="largest"),),
        ["a/0 n2/0+2"],
    ),
    # 4: shares
    Case(
        "copy i goes to copy i of the target",
        (node("n1", 8, "24@8.6"), node("n2", 8, "24@8.6")),
        (R("a", min_vram_gb=20, count=2, priority=1), R("b", min_vram_gb=4, count=2, share_with="a")),
        ["a/0 n1/0", "a/1 n2/0", "b/0 n1/0 with a", "b/1 n2/0 with a"],
    ),
    Case(
        "the sum of min_vram_gb counts, of all that share",
        (node("n1", 8, "24@8.6 24@8.6"),),
        (
            R("a", min_vram_gb=16, priority=1),
            R("b", min_vram_gb=8, share_with="a", priority=2),
            R("c", min_vram_gb=1, share_with="a", priority=3),
        ),
        ["a/0 n1/0", "b/0 n1/0 with a"],
        ["c 1 share_full"],
    ),
    Case(
        "fractions that fill a card fit",
        (node("n1", 8, "1@8.6"),),
        (
            R("a", min_vram_gb=0.7, priority=1),
            R("b", min_vram_gb=0.2, share_with="a", priority=2),
            R("c", min_vram_gb=0.1, share_with="a", priority=3),
        ),
        ["a/0 n1/0", "b/0 n1/0 with a", "c/0 n1/0 with a"],
    ),
    Case(
        "a share has bounds of its own",
        (node("n1", 8, "24@7.0"),),
        (
            R("a", ("vllm",), priority=1),
            R("b", ("pytorch",), share_with="a"),
            R("c", min_cc=(8, 0), share_with="a"),
        ),
        ["a/0 n1/0"],
        ["b 1 engine", "c 1 cc_low"],
    ),
    Case(
        "surplus copies of a share",
        (node("n1", 8, "24@8.6 24@8.6"),),
        (R("a", priority=1), R("b", share_with="a", count=2)),
        ["a/0 n1/0", "b/0 n1/0 with a"],
        ["b 1 share_full"],
    ),
    Case(
        "an unplaced target",
        (node("n1", 8, "24@8.6"),),
        (R("a", min_vram_gb=80, priority=1), R("b", share_with="a")),
        [],
        ["a 1 vram", "b 1 share_unplaced"],
    ),
    Case(
        "a target on a CPU gives no GPU",
        (node("n1", 8),),
        (R("a", cpu_fallback=True, priority=1), R("b", share_with="a")),
        ["a/0 n1 fallback"],
        ["b 1 share_unplaced"],
    ),
    Case(
        "a share that finds no room falls back by itself",
        (node("n1", 8, "24@8.6"), node("n2", 64)),
        (
            R("a", min_vram_gb=24, priority=1),
            R("b", min_vram_gb=1, share_with="a", count=2, cpu_fallback=True),
        ),
        ["a/0 n1/0", "b/0 n2 fallback", "b/1 n1 fallback"],
    ),
    Case(
        "gpu: false shares the node of a GPU",
        (node("n1", 8, "24@8.6"), node("n2", 64)),
        (R("a", priority=1), R("b", gpu=False, share_with="a", min_ram_gb=8)),
        ["a/0 n1/0", "b/0 n1 with a"],
    ),
    Case(
        "gpu: false shares only where RAM is left",
        (node("n1", 8, "24@8.6"), node("n2", 64)),
        (R("a", priority=1), R("b", gpu=False, share_with="a", min_ram_gb=9)),
        ["a/0 n1/0"],
        ["b 1 ram"],
    ),
    Case(
        "a target that is switched off",
        (node("n1", 8, "24@8.6"),),
        (R("a", count=0), R("b", share_with="a")),
        [],
        ["b 1 share_unplaced"],
    ),
    # 5: CPUs
    Case(
        "most RAM left first, distinct nodes, RAM reserved",
        (node("n1", 64, "24@8.6"), node("n2", 100), node("n3", 96, cpu_roles=False)),
        (
            R("a", gpu=False, min_ram_gb=40, count=3, priority=1),
            R("b", gpu=False, min_ram_gb=50, priority=2),
            R("c", gpu=False, priority=3),
        ),
        ["a/0 n2", "a/1 n1", "b/0 n2", "c/0 n1"],
        ["a 1 no_cpu_node"],
    ),
    Case(
        "too little RAM", (node("n1", 64),), (R("a", gpu=False, min_ram_gb=65),), [], ["a 1 ram"]
    ),
    Case(
        "equal RAM goes by node",
        (node("n10", 64), node("n9", 64)),
        (R("a", gpu=False, count=2),),
        ["a/0 n9", "a/1 n10"],
    ),
    Case(
        "unknown RAM comes last and has none to reserve",
        (PlanNode("n1"), node("n2", 4)),
        (R("a", gpu=False, count=2, priority=1), R("b", gpu=False, count=2, min_ram_gb=1)),
        ["a/0 n2", "a/1 n1", "b/0 n2"],
        ["b 1 ram"],
    ),
    Case(
        "copies without a GPU fall back",
        (node("n1", 8, "24@8.6"), node("n2", 64), node("n3", 32)),
        (R("a", count=3, cpu_fallback=True),),
        ["a/0 n1/0", "a/1 n2 fallback", "a/2 n3 fallback"],
    ),
    Case(
        "nowhere to fall back to",
        (node("n1", 8, "24@8.6", cpu_roles=False),),
        (R("a", count=2, cpu_fallback=True),),
        ["a/0 n1/0"],
        ["a 1 no_cpu_node"],
    ),
    # 6: partial counts
    Case(
        "what fits is placed",
        (node("n1", 8, "24@8.6 24@8.6 8@8.6"),),
        (R("a", min_vram_gb=20, count=5),),
        ["a/0 n1/0", "a/1 n1/1"],
        ["a 3 all_taken"],
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_row(case: Case) -> None:
    made = plan(case.nodes, case.roles, CATALOG)
    assert placed(made) == case.placed
    assert unplaced(made) == case.unplaced


def test_roles_that_share_in_a_circle_are_unplaced() -> None:
    made = plan((node("n1", 8, "24@8.6"),), (R("a", share_with="b"), R("b", share_with="a")))
    assert unplaced(made) == ["a 1 share_unplaced", "b 1 share_unplaced"]


MODELS = (
    CatalogModel("big", vram_gib=20.0, engines=("vllm",)),
    CatalogModel("mid", vram_gib=8.0, engines=("vllm", "pytorch")),
    CatalogModel("a-small", vram_gib=4.0, engines=("pytorch",)),
    CatalogModel("small", vram_gib=4.0),
    CatalogModel("new", vram_gib=3.0, min_cc=(8, 9), engines=("vllm",)),
    CatalogModel("unknown", engines=("vllm",)),
)


@pytest.mark.parametrize(
    ("cards", "roles", "models"),
    [
        ("24@8.6", (R("a", ("vllm",)),), ("big", "mid", "small")),
        ("24@8.9", (R("a", ("vllm",)),), ("big", "mid", "small", "new")),
        ("24@8.6", (R("a", ("pytorch",)),), ("mid", "a-small", "small")),
        ("24@8.6", (R("a"),), ("big", "mid", "a-small", "small")),
        # mid by vllm, which asks for less than pytorch; a-small needs pytorch
        ("24@7.0", (R("a", ("pytorch", "vllm")),), ("big", "mid", "small")),
        ("24@?", (R("a"),), ("small",)),
        ("8@8.6", (R("a", ("vllm",)),), ("mid", "small")),
        # what others on the card need is not there; what the role itself needs is
        ("24@8.6", (R("a", ("vllm",), 16), R("b", min_vram_gb=5, share_with="a")), ("mid", "small")),
        ("24@8.6", (R("a", ("vllm",), 16), R("b", min_vram_gb=4, share_with="a")), ("big", "mid", "small")),
        ("12@8.6 12@8.6", (R("a", ("vllm",), gpus=2),), ("big", "mid", "small")),
    ],
)
def test_models_fitting_on_gpus(cards: str, roles: tuple[PlanRole, ...], models: tuple[str, ...]) -> None:
    made = plan((node("n1", 64, cards),), roles, Catalog(MODELS, ENGINES))
    assert made.assignments[0].models_fitting == models


def test_models_fitting_on_cpus_need_an_engine_for_cpus_and_ram() -> None:
    roles = (
        R("a", ("pytorch",), gpu=False, priority=1),
        R("b", ("vllm",), gpu=False, priority=2),
        R("c", gpu=False, min_ram_gb=4, priority=3),
    )
    made = plan((node("n1", 8),), roles, Catalog(MODELS, ENGINES))
    assert [item.models_fitting for item in made.assignments] == [
        ("a-small", "small"),  # 4 of the 8 GB are kept for c
        (),
        ("mid", "a-small", "small"),
    ]
    assert made.warnings == ("b: no model of the catalog fits on n1",)


def test_a_hand_computed_fleet_with_the_whole_plan() -> None:
    nodes = (
        node("pve2", 128, "24@8.6 24@8.6", is_offline=True),
        node("pve10", 64, "8@6.1 16@8.9!"),
        node("pve1", 32, "48@8.9", unavailable="drained"),
    )
    roles = (
        R("main", ("vllm",), 20, count=2, slots=4, priority=1),
        R("tts", ("pytorch",), 4, share_with="main", priority=2),
        R("small", ("ollama",), 6, count=2, priority=3),
        R("off", count=0),
    )
    made = plan(
        nodes, roles, Catalog((CatalogModel("m", vram_gib=6.0, engines=("vllm", "ollama")),), ENGINES)
    )
    assert made.assignments == (
        Assignment("main", 0, "pve2", (0,), slots=4, models_fitting=("m",)),
        Assignment("main", 1, "pve2", (1,), slots=4, models_fitting=("m",)),
        Assignment("tts", 0, "pve2", (0,), "main"),
        Assignment("small", 0, "pve10", (0,), models_fitting=("m",)),
    )
    assert made.disabled_gpus == (DisabledGpu("pve10", 1),)
    assert made.excluded_nodes == (ExcludedNode("pve1", "drained"),)
    assert made.switched_off == ("off",)
    assert made.warnings == (
        "pve2 is offline: planned by its stored profile",
        "tts: no model of the catalog fits on pve2/0",
    )
    (left,) = made.unplaced
    assert (left.role, left.missing, left.code) == ("small", 1, "all_taken")
    assert left.reason == "5 GPUs: 3 taken by main x2, small, 1 disabled, 1 excluded (drained)"
    assert [(miss.node, miss.gpu_index, miss.codes) for miss in left.per_gpu] == [
        ("pve1", 0, ("excluded",)),
        ("pve2", 0, ("all_taken",)),
        ("pve2", 1, ("all_taken",)),
        ("pve10", 0, ("all_taken",)),
        ("pve10", 1, ("disabled",)),
    ]
    again = plan(nodes, roles, CATALOG, include_unavailable=True)
    assert placed(again) == [
        "main/0 pve2/0",
        "main/1 pve2/1",
        "tts/0 pve2/0 with main",
        "small/0 pve10/0",
        "small/1 pve1/0",
    ]
    assert again.excluded_nodes == ()
    assert again.warnings[1] == "pve1 (drained): planned because unavailable nodes were asked for"
