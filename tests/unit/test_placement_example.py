"""The worked example of docs/placement.md, with the whole expected plan."""

from __future__ import annotations

from fleettui.decide.placement.plan import plan
from fleettui.model.catalog import Catalog, CatalogEngine, CatalogModel
from fleettui.model.placement import Assignment, PlacementPlan, PlanGpu, PlanNode, PlanRole

NODES = (
    PlanNode("n1", 64, (PlanGpu(0, "", 24, (8, 6)), PlanGpu(1, "", 12, (6, 1)))),
    PlanNode("n2", 128, (PlanGpu(0, "", 24, (8, 9)),)),
    PlanNode("n3", 256),
)
CATALOG = Catalog(
    (
        CatalogModel("chat-a", vram_gib=20.0, engines=("vllm",)),
        CatalogModel("chat-b", vram_gib=21.0, engines=("vllm",)),
        CatalogModel("voice", "tts", 4.0, engines=("pytorch",)),
        CatalogModel("rank", "reranker", 2.0, engines=("pytorch",)),
    ),
    (CatalogEngine("pytorch", (7, 5), True), CatalogEngine("vllm", (7, 0))),
)
ROLES = (
    PlanRole("chat", ("vllm",), 20, prefer="largest", count=2, priority=1),
    PlanRole("embed", ("pytorch",), 4, priority=2, cpu_fallback=True),
    PlanRole("tts", ("pytorch",), 4, share_with="chat", priority=3),
    PlanRole("rerank", ("pytorch",), gpu=False, priority=4),
)


def test_the_whole_plan() -> None:
    assert plan(NODES, ROLES, CATALOG) == PlacementPlan(
        (
            # tts needs 4 GB of that card: 20 are left
            Assignment("chat", 0, "n1", (0,), models_fitting=("chat-a",)),
            Assignment("chat", 1, "n2", (0,), models_fitting=("chat-b", "chat-a")),
            Assignment("embed", 0, "n3", fallback=True, models_fitting=("voice", "rank")),
            Assignment("tts", 0, "n1", (0,), "chat", models_fitting=("voice", "rank")),
            Assignment("rerank", 0, "n3", models_fitting=("voice", "rank")),
        )
    )
