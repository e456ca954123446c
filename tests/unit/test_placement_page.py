"""docs/placement.md: its codes and keys are all there are."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from fleettui.decide.placement.optimal import MAX_SEARCHED, compare
from fleettui.model.catalog import Catalog, CatalogEngine
from fleettui.model.placement import PLACEMENT_CODES
from fleettui.view.placement_document import plan_document

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "placement.md").read_text(encoding="utf-8")
CATALOG = Catalog((), (CatalogEngine("pytorch", (7, 5), True), CatalogEngine("vllm", (7, 0))))


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
