"""Plans as text and as documents."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from fleettui.decide.placement.diff import Loading, diff_plans
from fleettui.decide.placement.optimal import compare
from fleettui.decide.placement.plan import plan
from fleettui.decide.placement.what_if import lose_each_node
from fleettui.model.catalog import Catalog, CatalogEngine, CatalogModel
from fleettui.model.placement import PlacementPlan, PlanGpu, PlanNode, PlanRole
from fleettui.model.placement_answers import LintFinding
from fleettui.view.cells import Cells, text_of, width_of
from fleettui.view.glyphs import ASCII
from fleettui.view.placement_answers_document import diff_document, lint_document, losses_document
from fleettui.view.placement_document import plan_document, read_plan
from fleettui.view.placement_text import plan_lines

ADA = ("NVIDIA RTX 4000 Ada Generation", 20, (8, 9))
OLD = ("NVIDIA GeForce GTX 1080", 8, (6, 1))


def node(name: str, ram: int, *cards: tuple[str, int, tuple[int, int]], **more: Any) -> PlanNode:
    return PlanNode(name, ram, tuple(PlanGpu(index, *card) for index, card in enumerate(cards)), **more)


NODES = (
    node("pve-ada", 64, ADA, ADA),
    node("pve-old", 128, OLD, is_offline=True),
    node("pve-out", 32, ADA, unavailable="maintenance"),
)
ROLES = (
    PlanRole("llm-main", ("vllm",), 14, prefer="largest", count=3, slots=4, priority=1),
    PlanRole("tts", ("pytorch",), 4, share_with="llm-main", priority=2),
    PlanRole("embed", ("pytorch",), 4, priority=3, cpu_fallback=True),
    PlanRole("gpu-flex", count=0),
)
CATALOG = Catalog(
    (
        CatalogModel("llm", vram_gib=12.0, engines=("vllm",)),
        CatalogModel("voice", vram_gib=3.0, engines=("pytorch",)),
    ),
    (CatalogEngine("vllm", (7, 0)), CatalogEngine("pytorch", (7, 5), True)),
)


ADA_0 = {"role": "llm-main", "copy": 0, "node": "pve-ada", "gpu_index": 0}


def page(lines: list[Cells]) -> str:
    return "\n".join(text_of(line).rstrip() for line in lines)


def test_the_page_at_80_columns() -> None:
    both = compare(NODES, ROLES, CATALOG)
    lines = plan_lines(both.greedy, NODES, ROLES, both, 80)
    assert max(map(width_of, lines)) <= 80
    assert (
        page(lines)
        == """\
plan: 4 of 5 copies placed, 2 of 3 GPUs taken
copies on GPUs: greedy 3, optimal 3

pve-ada  64 GB RAM
   0  RTX 4000 Ada   20 GB ▕█████████ ▏  llm-main/0  14 GB  llm
                                         tts/0        4 GB  with llm-main, voice
   1  RTX 4000 Ada   20 GB ▕███████   ▏  llm-main/1  14 GB  llm
pve-old  128 GB RAM, offline
   0  GTX 1080        8 GB ▕          ▏  free
  CPU                                    embed/0            no GPU free, voice

✗ llm-main: 1 copy unplaced  (all_taken)
  4 GPUs: 1 too small, 2 taken by llm-main x2, 1 excluded (maintenance)
  nearest miss: pve-out/0 (NVIDIA RTX 4000 Ada Generation): pve-out is not
  planned: maintenance
  would fit if pve-out were available (maintenance); or with one more GPU of 14
  GB and cc 7.0 or more

not planned: pve-out (maintenance)
switched off: gpu-flex
warning: pve-old is offline: planned by its stored profile"""
    )


def test_an_ascii_terminal_gets_ascii() -> None:
    both = compare(NODES, ROLES, CATALOG)
    assert page(plan_lines(both.greedy, NODES, ROLES, both, 100, ASCII)).isascii()


@pytest.mark.parametrize("width", [None, 20, 60, 72, 100, 200])
def test_no_line_is_wider_than_the_terminal(width: int | None) -> None:
    nodes = (*NODES, node("a-very-long-name-of-a-machine-that-nobody-should-have-given-to-it" * 2, 4, ADA))
    both = compare(nodes, ROLES, CATALOG)
    lines = plan_lines(both.optimal, nodes, ROLES, both, width)
    assert max(map(width_of, lines)) <= max(width or 100, 60)


def test_an_empty_plan_is_a_page_too() -> None:
    assert (
        page(plan_lines(PlacementPlan(), (), ())).strip() == "plan: 0 of 0 copies placed, 0 of 0 GPUs taken"
    )


def test_the_whole_document() -> None:
    both = compare(NODES, ROLES, CATALOG)
    document = plan_document(both.greedy, both)
    left = document.pop("unplaced")
    assert document == {
        "schema": 1,
        "method": "greedy",
        "copies_on_gpus": {"greedy": 3, "optimal": 3},
        "assignments": [
            ADA_0 | {"slots": 4, "models_fitting": ["llm"]},
            ADA_0 | {"copy": 1, "gpu_index": 1, "slots": 4, "models_fitting": ["llm"]},
            ADA_0 | {"role": "tts", "shared_with": "llm-main", "slots": 1, "models_fitting": ["voice"]},
            {
                "role": "embed",
                "copy": 0,
                "node": "pve-old",
                "fallback": True,
                "slots": 1,
                "models_fitting": ["voice"],
            },
        ],
        "disabled_gpus": [],
        "excluded_nodes": [{"node": "pve-out", "reason": "maintenance"}],
        "switched_off": ["gpu-flex"],
        "warnings": ["pve-old is offline: planned by its stored profile"],
    }  # fmt: skip
    assert [item["code"] for item in left] == ["all_taken"]
    assert left[0]["per_gpu"][2] == {
        "node": "pve-old",
        "gpu_index": 0,
        "code": "vram",
        "codes": ["vram", "engine"],
        "reason": "8 GB of the 14 GB; cc 6.1 is below 7.0 of vllm",
    }
    assert read_plan(json.loads(json.dumps(plan_document(both.greedy, both)))) == both.greedy


def test_several_gpus_are_told_as_a_list() -> None:
    made = plan(NODES, (PlanRole("big", gpus=2),))
    (item,) = plan_document(made)["assignments"]
    assert item["gpu_indices"] == [0, 1]
    assert "gpu_index" not in item
    assert read_plan(plan_document(made)) == made


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (None, "the document is empty; a plan has a map of keys there"),
        ([], "the document is a list; a plan has a map of keys there"),
        ({}, "assignments is missing; is this a plan, as `--json` writes it?"),
        ({"assignments": {}}, "assignments is a map; it must be a list"),
        ({"assignments": [5]}, "assignments[0] is 5; a plan has a map of keys there"),
        ({"assignments": [{"role": "a", "copy": 0}]}, "assignments[0].node is missing; it must be a text"),
        (
            {"assignments": [{"role": "a", "copy": -1, "node": "n"}]},
            "assignments[0].copy is -1; it must be a whole number from 0",
        ),
        (
            {"assignments": [{"role": "a", "copy": True, "node": "n"}]},
            "assignments[0].copy is True; it must be a whole number from 0",
        ),
        (
            {"assignments": [{"role": "a", "copy": 0, "node": "n", "gpu_indices": ["x"]}]},
            "assignments[0].gpu_indices[0] is 'x'; it must be a whole number",
        ),
        ({"assignments": [], "method": "best"}, "method is 'best'; it must be greedy, optimal or heuristic"),
        (
            {"assignments": [], "unplaced": [{"role": "a", "missing": 1, "code": "no"}]},
            "unplaced[0].code is 'no'; it must be one of no_gpu",
        ),
    ],
)
def test_what_is_no_plan_is_told(document: object, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        read_plan(document)


def test_a_document_written_by_hand_needs_little() -> None:
    made = read_plan({"assignments": [{"role": "a", "copy": 0, "node": "n1", "gpu_index": 1, "more": 1}]})
    assert made.assignments[0].place == "n1/1"


def test_documents_of_differences_and_losses() -> None:
    before = plan(NODES, ROLES[:1], CATALOG)
    after = plan(NODES, ROLES[2:3], CATALOG)
    diff = diff_plans(before, after, Loading(CATALOG))
    assert diff_document(diff)["changes"][0] == {
        "kind": "add",
        "role": "embed",
        "copy": 0,
        "model": "voice",
        "from": None,
        "to": {"node": "pve-ada", "gpu_index": 0},
        "load_gb": 3.0,
        "seconds": 4.1,
    }
    losses = lose_each_node(NODES, ROLES, CATALOG)
    document = losses_document(losses)
    assert document["is_safe"] is False
    assert document["nodes"][0]["left_unplaced"] == [
        {"role": "llm-main", "missing": 2},
        {"role": "tts", "missing": 1},
    ]


def test_the_document_of_findings() -> None:
    finding = LintFinding("no_vram", "m", "model m has no vram_gb")
    assert lint_document([finding])["findings"] == [
        {"code": "no_vram", "subject": "m", "text": "model m has no vram_gb"}
    ]
