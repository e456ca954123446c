"""Differences, the N-1 table and findings as text; a document as YAML."""

from __future__ import annotations

import json

import yaml

from fleettui.config.yaml_text import yaml_text
from fleettui.model.placement import Assignment
from fleettui.model.placement_answers import LintFinding, NodeLoss, PlanChange, PlanDiff, RoleLoss
from fleettui.model.unknown import Unknown
from fleettui.view.cells import Cells, text_of
from fleettui.view.glyphs import ASCII
from fleettui.view.placement_answers_text import diff_lines, lint_lines, losses_lines


def told(lines: list[Cells]) -> list[str]:
    return [text_of(line).rstrip() for line in lines]


BEFORE, AFTER = Assignment("chat", 0, "n1", (0, 1)), Assignment("chat", 0, "n2", (2,))
CHANGES = (
    PlanChange("move", "chat", 0, BEFORE, AFTER, "llama", 39.6, 30.4),
    PlanChange("add", "embed", 1, None, Assignment("embed", 1, "n3"), "", Unknown("no model"), Unknown("-")),
    PlanChange("keep", "tts", 0, AFTER, AFTER, "voice", 0.0, 0.0),
    PlanChange("remove", "", 0, Assignment("", 0, "n4"), None, "old\x07", 0.0, 0.0),
)


def test_a_difference() -> None:
    diff = PlanDiff(CHANGES, 39.6, 30.4, 1)
    assert told(diff_lines(diff, 120)) == [
        "diff: 1 to add, 1 to move, 1 to remove, 1 stays; 39.6 GB to load, about 30 s; 1 load of unknown"
        " size",
        "",
        "CHANGE  COPY     MODEL  FROM    TO      GB  SECONDS",
        "move    chat/0   llama  n1/0+1  n2/2  39.6       30",
        "add     embed/1  –              n3       –        –",
        "keep    tts/0    voice  n2/2    n2/2",
        "remove  –        old    n4",
        "",
        "Seconds are by measured rates of loading where there are any, else by 1.5 GB/s; machines load "
        "side by side, each one",
        "copy after another.",
    ]
    assert all(text.isascii() for text in told(diff_lines(diff, glyphs=ASCII)))
    assert max(map(len, told(diff_lines(diff, 60)))) <= 60
    assert told(diff_lines(PlanDiff())) == ["diff: nothing stands and nothing is planned"]
    assert told(diff_lines(PlanDiff(CHANGES[2:3])))[0] == "diff: nothing to do, 1 copy stays"


def test_losses() -> None:
    losses = [
        NodeLoss("n1", (BEFORE,), (RoleLoss("chat", 1), RoleLoss("embed", 3)), 2),
        NodeLoss("n2"),
    ]
    assert told(losses_lines(losses)) == [
        "N-1: 1 of 2 machines cannot be spared: n1",
        "",
        "WITHOUT  COPIES  LEFT UNPLACED   OTHERS THAT MOVE",
        "n1            1  chat, embed x3  2",
        "n2            0  none",
    ]
    assert (
        told(losses_lines([NodeLoss("n2")]))[0] == "N-1: 1 machine can be spared, every role keeps its copies"
    )
    assert told(losses_lines([])) == ["N-1: no machine is planned, so none can be lost"]


def test_findings() -> None:
    found = [LintFinding("hair_above", "chat", "role chat: " + "word " * 20)]
    lines = told(lint_lines(found, 60))
    assert lines[:3] == ["lint: 1 finding", "", "hair_above"]
    assert all(line.startswith("  ") for line in lines[3:])
    assert told(lint_lines([])) == ["lint: nothing to say"]


def test_a_document_as_yaml_is_the_same_document() -> None:
    shared = ["a", "on", "1:30", "8.10", "null", "x" * 300]
    document = {"schema": 1, "one": shared, "two": shared, "none": None, "rows": [{"node": "ü", "gpu": 0}]}
    text = yaml_text(document)
    assert yaml.safe_load(text) == json.loads(json.dumps(document))
    assert "&" not in text, "no anchors"
    assert text.splitlines()[-1] == "- {node: ü, gpu: 0}"
