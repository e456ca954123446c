"""docs/placement.md: its example is planned as it says, its codes are all there are."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from fleettui.config.catalog_roles_file import read_roles_file
from fleettui.decide.placement.optimal import MAX_SEARCHED, compare
from fleettui.model.catalog import Catalog, CatalogEngine
from fleettui.model.placement import PLACEMENT_CODES, PlanGpu, PlanNode
from fleettui.view.cells import text_of
from fleettui.view.placement_document import plan_document
from fleettui.view.placement_text import plan_lines

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "placement.md").read_text(encoding="utf-8")
NODES = (
    PlanNode("n1", 64, (PlanGpu(0, "RTX 3090", 24, (8, 6)), PlanGpu(1, "GTX 1080", 12, (6, 1)))),
    PlanNode("n2", 128, (PlanGpu(0, "RTX 4090", 24, (8, 9)),)),
    PlanNode("n3", 256),
)
CATALOG = Catalog((), (CatalogEngine("pytorch", (7, 5), True), CatalogEngine("vllm", (7, 0))))


def test_the_worked_example() -> None:
    text = PAGE.partition("```yaml\n")[2].partition("```")[0]
    roles, problems = read_roles_file(text.encode(), "roles.yaml", ("vllm", "pytorch"))
    assert problems == ()
    assert roles is not None
    both = compare(NODES, roles, CATALOG)
    shown = PAGE.partition("```\nplan: ")[2].partition("\n```")[0]
    lines = [text_of(line).rstrip() for line in plan_lines(both.greedy, NODES, roles, both, 80)]
    assert "\n".join(lines).startswith(f"plan: {shown}")


def test_every_code_is_told() -> None:
    table = PAGE.partition("| code |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([a-z_]+)`", "".join(re.findall(r"^\| (.*?) \|", table, re.MULTILINE)))) == set(
        PLACEMENT_CODES
    )


def test_every_key_of_the_document_is_told() -> None:
    document = plan_document(compare((), (), CATALOG).greedy, compare((), (), CATALOG))
    told = PAGE.partition("## The document")[2]
    for key in document:
        assert f"`{key}" in told, key
    assert yaml.safe_load(yaml.safe_dump(document)) == document


def test_the_number_of_searched_copies_is_told() -> None:
    assert f"up to {MAX_SEARCHED} of them are searched" in PAGE
