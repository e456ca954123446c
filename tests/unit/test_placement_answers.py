"""What is made of plans: explanations, keeping, what-if, N-1, differences, lint. By hand."""

from __future__ import annotations

import pytest

from fleettui.decide.placement.diff import Loading, diff_loaded, diff_plans
from fleettui.decide.placement.lint import lint
from fleettui.decide.placement.optimal import compare, plan_optimal
from fleettui.decide.placement.plan import plan
from fleettui.decide.placement.sticky import plan_keeping
from fleettui.decide.placement.what_if import disable_gpu, lose_each_node, with_nodes, without_node
from fleettui.model.catalog import Catalog, CatalogEngine, CatalogModel
from fleettui.model.placement import GpuMiss, PlacementPlan, PlanGpu, PlanNode, PlanRole, UnplacedRole
from fleettui.model.placement_answers import LoadedCopy, PlanDiff
from fleettui.model.unknown import Unknown

R = PlanRole
ENGINES = (CatalogEngine("vllm", (7, 0)), CatalogEngine("pytorch", (7, 5), True))
CATALOG = Catalog(
    (
        CatalogModel("large", vram_gib=18.0, engines=("vllm",)),
        CatalogModel("little", vram_gib=6.0, engines=("vllm",)),
        CatalogModel("voice", "tts", 2.0, engines=("pytorch",)),
    ),
    ENGINES,
)


def node(name: str, *cards: int, ram: int = 64, cc: tuple[int, int] = (8, 6), **more: object) -> PlanNode:
    gpus = tuple(PlanGpu(index, f"Card {gb}", gb, cc) for index, gb in enumerate(cards))
    return PlanNode(name, ram, gpus, **more)  # type: ignore[arg-type]


def placed(made: PlacementPlan) -> list[str]:
    return [f"{item.label} {item.place}" for item in made.assignments]


def only(made: PlacementPlan) -> UnplacedRole:
    (left,) = made.unplaced
    return left


# -- explanations ------------------------------------------------------------------------------------


def test_a_move_that_would_help() -> None:
    nodes = (node("pve1", 24), node("pve46", 12))
    roles = (R("small", min_vram_gb=4, prefer="largest", priority=1), R("big", min_vram_gb=20))
    left = only(plan(nodes, roles))
    assert left == UnplacedRole(
        "big",
        1,
        "all_taken",
        "2 GPUs: 1 too small, 1 taken by small",
        (
            GpuMiss("pve1", 0, ("all_taken",), "taken by small/0"),
            GpuMiss("pve46", 0, ("vram",), "12 GB of the 20 GB"),
        ),
        "pve1/0 (Card 24): taken by small/0",
        ("if small/0 moved to pve46/0", "with one more GPU of 20 GB or more"),
    )
    both = compare(nodes, roles)
    assert (both.greedy_copies, both.optimal_copies) == (1, 2)
    assert placed(both.optimal) == ["small/0 pve46/0", "big/0 pve1/0"]


def test_a_chain_of_moves_in_the_order_they_can_be_made() -> None:
    nodes = (node("n1", 48), node("n2", 24), node("n3", 12))
    roles = (
        R("a", min_vram_gb=20, prefer="largest", priority=1),
        R("b", min_vram_gb=4, prefer="largest", priority=2),
        R("c", min_vram_gb=40, priority=3),
    )
    assert only(plan(nodes, roles)).fixes[0] == "if b/0 moved to n3/0 and a/0 moved to n2/0"
    assert placed(plan_optimal(nodes, roles)) == ["a/0 n2/0", "b/0 n3/0", "c/0 n1/0"]


def test_a_holder_moves_only_where_its_share_fits_too() -> None:
    nodes = (node("n1", 24), node("n2", 12))
    roles = (
        R("small", min_vram_gb=8, prefer="largest", priority=1),
        R("tts", min_vram_gb=5, share_with="small", priority=2),
        R("big", min_vram_gb=20, priority=3),
    )
    assert only(plan(nodes, roles)).fixes == ("with one more GPU of 20 GB or more",)
    assert placed(plan_optimal(nodes, roles)) == ["small/0 n1/0", "tts/0 n1/0"]


def test_a_share_is_kept_by_moving_its_target() -> None:
    nodes = (node("n1", 24), node("n2", 12))
    roles = (
        R("small", min_vram_gb=8, priority=1),
        R("tts", min_vram_gb=5, share_with="small", priority=2),
        R("other", min_vram_gb=4, priority=3),
    )
    assert placed(plan(nodes, roles)) == ["small/0 n2/0", "other/0 n1/0"]
    assert placed(plan_optimal(nodes, roles)) == ["small/0 n1/0", "tts/0 n1/0", "other/0 n2/0"]


def test_what_is_switched_off_or_away_or_nearly_large_enough() -> None:
    nodes = (
        PlanNode("n1", 64, (PlanGpu(0, "A", 24, (8, 6), disabled=True),)),
        node("n2", 24, unavailable="maintenance"),
        node("n3", 15),
        node("n4", 24, cc=(6, 1)),
        PlanNode("n5", 64, (PlanGpu(0, "", 24),)),
    )
    left = only(plan(nodes, (R("big", ("vllm",), 16, min_cc=(8, 0), max_cc=(8, 9)),), CATALOG))
    assert left.code == "vram"  # one each of three: the order of the codes decides
    assert left.reason == (
        "5 GPUs: 1 too small, 1 below cc 8.0, 1 of unknown cc, 1 disabled, 1 excluded (maintenance)"
    )
    assert [miss.codes for miss in left.per_gpu] == [
        ("disabled",),
        ("excluded",),
        ("vram",),
        ("cc_low", "engine"),
        ("cc_unknown",),
    ]
    assert left.nearest == "n1/0 (A): disabled"
    assert left.fixes == (
        "if n1/0 were enabled",
        "if n2 were available (maintenance)",
        "with min_vram_gb 15 (n3/0 is free)",
        "with one more GPU of 16 GB and cc 8.0 or more up to cc 8.9",
    )


def test_all_codes_of_one_gpu_are_told() -> None:
    nodes = (node("n1", 12, cc=(6, 1)),)
    roles = (R("first", priority=1), R("big", ("pytorch",), 20, min_cc=(7, 0)))
    (miss,) = only(plan(nodes, roles, CATALOG)).per_gpu
    assert miss.codes == ("vram", "cc_low", "engine", "all_taken")
    assert miss.reason == (
        "12 GB of the 20 GB; cc 6.1 is below 7.0; cc 6.1 is below 7.5 of pytorch; taken by first/0"
    )


def test_shares_and_cpus_are_explained() -> None:
    nodes = (node("n1", 24, ram=16), PlanNode("n2", 8, cpu_roles=False))
    roles = (
        R("main", min_vram_gb=20, priority=1),
        R("tts", min_vram_gb=6, share_with="main", count=2, priority=2),
        R("rank", gpu=False, min_ram_gb=32, priority=3),
        R("embed", min_vram_gb=4, min_ram_gb=32, cpu_fallback=True, priority=4),
    )
    tts, rank, embed = plan(nodes, roles).unplaced
    assert tts.reason == "shares with main: 1 without room beside main, 1 more than the 1 of main"
    assert [(miss.codes, miss.reason) for miss in tts.per_gpu] == [
        (("share_full",), "20 of 24 GB are needed by main")
    ]
    assert (rank.code, rank.reason) == (
        "ram",
        "2 nodes: 1 with cpu_roles: false, 1 with less than 32 GB RAM left",
    )
    assert [(miss.codes, miss.reason) for miss in rank.per_gpu] == [
        (("ram",), "n1 has 16 of its 16 GB RAM left, 32 GB are needed")
    ]
    assert rank.fixes == ("with one more node of 32 GB RAM or more",)
    assert (embed.code, embed.reason) == (
        "ram",
        "1 GPU: 1 taken by main; on CPUs: 2 nodes: 1 with cpu_roles: false, 1 with less than 32 GB RAM left",
    )


# -- keeping -----------------------------------------------------------------------------------------


def test_a_copy_stays_where_it_was() -> None:
    roles = (R("a", min_vram_gb=8, priority=1), R("b", min_vram_gb=8, priority=2))
    before = plan((node("n2", 24, 24),), roles)
    assert placed(before) == ["a/0 n2/0", "b/0 n2/1"]
    more = (node("n1", 12), node("n2", 24, 24))
    assert placed(plan(more, roles)) == ["a/0 n1/0", "b/0 n2/0"]
    assert placed(plan_keeping(before, more, roles)) == ["a/0 n2/0", "b/0 n2/1"]


def test_a_new_role_goes_round_those_that_stand_unless_it_has_no_other_place() -> None:
    nodes = (node("n1", 12, 24), node("n2", 24))
    old = (R("low", min_vram_gb=4, priority=5), R("mid", min_vram_gb=20, priority=4))
    before = plan(nodes, old)
    assert placed(before) == ["mid/0 n1/1", "low/0 n1/0"]
    new = R("new", min_vram_gb=4, priority=1)
    assert placed(plan_keeping(before, nodes, (*old, new))) == ["new/0 n2/0", "mid/0 n1/1", "low/0 n1/0"]
    many = R("new", min_vram_gb=4, count=2, priority=1)
    # the second copy takes the place of the last in the queue, and low finds none
    made = plan_keeping(before, nodes, (*old, many))
    assert placed(made) == ["new/0 n2/0", "new/1 n1/0", "mid/0 n1/1"]
    assert only(made).role == "low"


def test_a_place_that_no_longer_suits_is_left() -> None:
    roles = (R("a", min_vram_gb=8), R("c", gpu=False, min_ram_gb=60, priority=200))
    before = plan((node("n2", 12, ram=64), node("n3", ram=32)), roles)
    assert placed(before) == ["a/0 n2/0", "c/0 n2"]
    nodes = (node("n1", 24, ram=128), node("n2", 12, ram=64))
    bigger = (R("a", min_vram_gb=16), roles[1])
    assert placed(plan_keeping(before, nodes, bigger)) == ["a/0 n1/0", "c/0 n2"]
    gone = (node("n1", 24, ram=128),)
    assert placed(plan_keeping(before, gone, bigger)) == ["a/0 n1/0", "c/0 n1"]


def test_copies_of_several_gpus_stay_together() -> None:
    roles = (R("a", gpus=2),)
    before = plan((node("n2", 24, 24),), roles)
    more = (node("n1", 12, 12), node("n2", 24, 24))
    assert placed(plan_keeping(before, more, roles)) == ["a/0 n2/0+1"]
    assert placed(plan_keeping(before, disable_gpu(more, "n2", 1), roles)) == ["a/0 n1/0+1"]


# -- what if -----------------------------------------------------------------------------------------


def test_what_if() -> None:
    nodes = (node("n1", 24), node("n2", 12, 12))
    assert [item.name for item in without_node(nodes, "n1")] == ["n2"]
    assert [gpu.disabled for gpu in disable_gpu(nodes, "n2", 1)[1].gpus] == [False, True]
    assert [item.memory_gb for item in with_nodes(nodes, (node("n2", ram=8), node("n3", ram=9)))] == [
        64,
        8,
        9,
    ]
    with pytest.raises(LookupError, match="no machine is called 'n9'; there are n1, n2"):
        without_node(nodes, "n9")
    with pytest.raises(LookupError, match="n2 has no GPU 7; it has 0, 1"):
        disable_gpu(nodes, "n2", 7)


def test_the_loss_of_each_node() -> None:
    nodes = (node("n1", 24), node("n2", 24), node("n3", 12), node("n4", 8))
    roles = (R("main", min_vram_gb=20, count=2, priority=1), R("small", min_vram_gb=10, priority=2))
    table = lose_each_node(nodes, roles)
    told = [
        (
            row.node,
            [item.label for item in row.lost],
            [(loss.role, loss.missing) for loss in row.left_unplaced],
        )
        for row in table
    ]
    assert told == [
        ("n1", ["main/0"], [("main", 1)]),
        ("n2", ["main/1"], [("main", 1)]),
        ("n3", ["small/0"], [("small", 1)]),
        ("n4", [], []),
    ]
    assert [row.is_safe for row in table] == [False, False, False, True]
    spare = (*nodes, node("n5", 48))
    rows = lose_each_node(spare, roles)
    assert all(row.is_safe for row in rows)
    assert [row.moved for row in rows] == [1, 0, 0, 0, 0]  # without n1, main/0 goes to n2 and main/1 to n5


# -- differences -------------------------------------------------------------------------------------


def told(diff: PlanDiff) -> list[str]:
    return [
        f"{item.kind} {item.role or item.model}"
        + (f" {item.before.place}" if item.before else "")
        + (f" -> {item.after.place}" if item.after and item.kind != "keep" else "")
        for item in diff.changes
    ]


def test_copies_of_a_role_are_alike() -> None:
    roles = (R("main", ("vllm",), 20, count=2, priority=1), R("voice", ("pytorch",), 2, priority=2))
    before = plan((node("n1", 24), node("n2", 24), node("n3", 8)), roles, CATALOG)
    after = plan((node("n0", 24), node("n2", 24)), roles[:1], CATALOG)
    diff = diff_plans(before, after, Loading(CATALOG, rates={"n0": 2e9}))
    assert told(diff) == ["move main n1/0 -> n0/0", "keep main n2/0", "remove voice n3/0"]
    assert diff.has_changes
    assert [diff.count(kind) for kind in ("keep", "move", "add", "remove")] == [1, 1, 0, 1]  # type: ignore[arg-type]
    assert diff.load_gb == 18
    assert diff.seconds == pytest.approx(2 + 18 * 2**30 / 2e9)
    assert not diff_plans(after, after, Loading(CATALOG)).has_changes


def test_nodes_load_side_by_side() -> None:
    roles = (R("main", ("vllm",), 20, count=3),)
    after = plan((node("n1", 24, 24), node("n2", 24)), roles, CATALOG)
    diff = diff_plans(PlacementPlan(), after, Loading(CATALOG, {"main": "little"}))
    assert told(diff) == ["add main -> n1/0", "add main -> n1/1", "add main -> n2/0"]
    assert (diff.load_gb, diff.unknown) == (18, 0)
    assert diff.seconds == pytest.approx(2 * (2 + 6 * 2**30 / 1.5e9))
    nobody_knows = diff_plans(PlacementPlan(), after, Loading(CATALOG, {"main": "other"}))
    assert (nobody_knows.load_gb, nobody_knows.unknown) == (0, 3)
    assert isinstance(nobody_knows.changes[0].load_gb, Unknown)


def test_what_is_loaded_now_stands_for_copies() -> None:
    roles = (R("main", ("vllm",), 16, count=3, priority=1), R("voice", ("pytorch",), 2, priority=2))
    after = plan((node("n1", 24, 24), node("n2", 24, 8)), roles, CATALOG)
    loaded = (
        LoadedCopy("n1", "large", (1,), "vllm", 18.5),
        LoadedCopy("n2", "little", (), "vllm"),  # nobody knows on which GPU
        LoadedCopy("n9", "large", (0,), "vllm", 18.5),
        LoadedCopy("n1", "stray", (0,), "ollama", 5.0),
    )
    diff = diff_loaded(loaded, after, Loading(CATALOG))
    assert told(diff) == [
        "move main n9/0 -> n1/0",
        "keep main n1/1",
        "keep main n2",
        "add voice -> n2/1",
        "remove stray n1/0",
    ]
    assert diff.load_gb == 18 + 2


# -- lint --------------------------------------------------------------------------------------------


def test_lint_finds_what_is_hardly_meant() -> None:
    catalog = Catalog(
        (CatalogModel("m", vram_gib=15.0, engines=("vllm",)), CatalogModel("n", engines=("vllm",))),
        (*ENGINES, CatalogEngine("spare")),
    )
    nodes = (node("n1", 15, ram=8), node("n2", 45, ram=8), node("n3", 140, ram=8))
    roles = (
        R("small", ("vllm",), 4, prefer="largest", priority=1),
        R("big", ("vllm",), 80, priority=2),
        R("almost", ("vllm",), 48, priority=3),
        R("voice", ("pytorch",), 4, priority=4),
        R("cpu", ("vllm",), gpu=False, priority=5),
        R("off", ("spare",), 16, count=0),
    )
    found = [(item.code, item.subject, item.text) for item in lint(nodes, roles, catalog)]
    assert [item[:2] for item in found] == [
        ("hair_above", "almost"),
        ("no_model", "voice"),
        ("no_model", "cpu"),
        ("cpu_engine", "cpu"),
        ("largest_blocks", "small"),
        ("no_vram", "n"),
    ]
    texts = [item[2] for item in found]
    assert texts[0] == (
        "role almost: min_vram_gb 48 is a hair above the 45 GB of 1 GPU (Card 45); "
        "write that if they are meant"
    )
    assert "with smallest_fitting these would have more copies: big (1)" in texts[4]
    assert lint(nodes, roles[1:2], Catalog(catalog.models[:1], ENGINES[:1])) == ()


def test_lint_tells_of_an_engine_that_no_role_names() -> None:
    catalog = Catalog((CatalogModel("m", vram_gib=4.0, engines=("vllm",)),), ENGINES)
    (finding,) = lint((node("n1", 24),), (R("a", ("vllm",), 4),), catalog)
    assert (finding.code, finding.subject) == ("unused_engine", "pytorch")
    assert lint((node("n1", 24),), (R("a", min_vram_gb=4),), catalog) == ()  # any engine may serve it
