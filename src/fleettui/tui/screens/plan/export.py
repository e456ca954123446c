"""A plan as a file: the document of `placement plan --json` or `--yaml`, or its table as text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fleettui.decide.placement.kinds import with_likely_models
from fleettui.model.catalog import Catalog
from fleettui.model.placement import PlacementPlan, PlanNode
from fleettui.model.placement_answers import PlanComparison
from fleettui.tui.live import LiveScreen
from fleettui.tui.widgets.prompt import Question
from fleettui.view.cells import Cell, Cells, text_of
from fleettui.view.placement_document import plan_document
from fleettui.view.placement_text import plan_lines
from fleettui.view.text import clean

ENDINGS = (".json", ".yaml", ".yml", ".txt")
DEFAULT_FILE = "plan.yaml"


def path_of(text: str) -> Path:
    """Of what was typed, `~` allowed."""
    return Path(text.strip()).expanduser()


def problem_of(text: str) -> str:
    """Why nothing can be written there; empty: it can."""
    if not text.strip():
        return "name a file"
    path = path_of(text)
    if path.suffix.lower() not in ENDINGS:
        return f"{path.name} has to end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
    if path.is_dir():
        return f"{path} is a folder"
    return "" if path.parent.is_dir() else f"there is no folder {path.parent}"


def hint_of(text: str) -> Cells:
    """What is wrong with what is typed, or that a file is there already."""
    problem = problem_of(text)
    if problem:
        return (Cell(f" {problem}", "warn"),)
    if path_of(text).exists():
        return (Cell(f" {path_of(text)} is there already: Enter writes over it", "warn"),)
    return (Cell(" .json and .yaml as `placement plan` writes them, .txt the table", "dim"),)


def export_text(
    suffix: str,
    plan: PlacementPlan,
    nodes: Sequence[PlanNode],
    catalog: Catalog,
    comparison: PlanComparison,
) -> str:
    """What is to be written."""
    if suffix == ".txt":
        lines = plan_lines(with_likely_models(plan, catalog), nodes, catalog.roles, comparison)
        return "\n".join(text_of(line).rstrip() for line in lines) + "\n"
    document = plan_document(plan, comparison)
    if suffix == ".json":
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    from fleettui.config.yaml_text import yaml_text  # PyYAML takes a while to load

    return yaml_text(document)


class Export(NamedTuple):
    """What is written: the plan as it stood when the operator asked."""

    screen: LiveScreen
    plan: PlacementPlan
    nodes: Sequence[PlanNode]
    catalog: Catalog
    comparison: PlanComparison
    what_if: Sequence[str]

    def ask(self, text: str = "") -> None:
        """Ask for the file, or write the one that was named and is not there yet."""
        if text and not problem_of(text) and not path_of(text).exists():
            self.write(text)
            return
        self.screen.ask(
            Question(
                "write the plan to:",
                self.write,
                text=text or DEFAULT_FILE,
                hint_of=hint_of,
                is_wrong=lambda typed: bool(problem_of(typed)),
            )
        )

    def write(self, typed: str) -> None:
        """Write it off the event loop, and say where it is, or why it is not."""
        self.screen.run_worker(self._write(path_of(typed).absolute()), group="export", exit_on_error=True)

    async def _write(self, path: Path) -> None:
        screen = self.screen
        text = export_text(path.suffix.lower(), self.plan, self.nodes, self.catalog, self.comparison)
        try:
            await asyncio.to_thread(path.write_text, text, encoding="utf-8")
        except OSError as error:
            said = clean(f"{path}: {error.strerror or error}")
            screen.notify(said, title="The plan was not written", severity="error", markup=False)
            return
        otherwise = f" ({', '.join(self.what_if)})" if self.what_if else ""
        screen.notify(clean(f"{path}{otherwise}"), title="The plan was written", markup=False)
