"""Machine files and what is wrong with them, as lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fleettui.model.catalog import EMPTY_CATALOG, Catalog
from fleettui.model.machine import ConfigProblem, Machine
from fleettui.model.trust import ListedTrust
from fleettui.view.text import cell_width, clean, fit
from fleettui.view.units import count


def problem_line(problem: ConfigProblem) -> str:
    """`machines/ada.yaml:7: network.hostname: required …`, as compilers write it."""
    place = problem.file if problem.line is None else f"{problem.file}:{problem.line}"
    key = f" {problem.key}:" if problem.key else ""
    return clean(f"{place}:{key} {problem.message}")


def problem_lines(problems: Sequence[ConfigProblem]) -> list[str]:
    """One line for each problem."""
    return [problem_line(problem) for problem in problems]


def check_lines(
    machines: Sequence[Machine],
    problems: Sequence[ConfigProblem],
    machines_dir: str,
    catalog: Catalog = EMPTY_CATALOG,
) -> list[str]:
    """The verdict of `machines check`: every problem, then one sentence."""
    files = len({problem.file for problem in problems})
    good = f"{count(len(machines), 'machine')} in {machines_dir}"
    if catalog.file:
        good += f", {count(len(catalog.models), 'model')} in {catalog.file}"
    if catalog.roles_file:
        good += f", {count(len(catalog.roles), 'role')} in {catalog.roles_file}"
    if not problems:
        return [f"{good}: no problem found" if machines else f"{good}: add one file for each machine"]
    found = f"{count(len(problems), 'problem')} in {count(files, 'file')}"
    return [*problem_lines(problems), f"{found}; {good} can be used"]


def machine_lines(
    machines: Sequence[Machine], trust: Mapping[str, ListedTrust], flags: Mapping[str, str] | None = None
) -> list[str]:
    """A table of the declared machines: name, role, engine's address, trust, GPUs, models, tags, and flags
    where there are any."""
    head: tuple[str, ...] = ("MACHINE", "ROLE", "ADDRESS", "TRUST", "GPUS", "MODELS", "TAGS")
    table = [head, *(_machine_fields(machine, trust.get(machine.name)) for machine in machines)]
    told = [clean((flags or {}).get(machine.name, "")) for machine in machines]
    if any(told):
        head = (*head, "FLAGS")
        table = [(*fields, text) for fields, text in zip(table, ["FLAGS", *told], strict=True)]
    widths = [max(cell_width(row[index]) for row in table) for index in range(len(head))]
    return ["  ".join(map(fit, row, widths)).rstrip() for row in table]


def _machine_fields(machine: Machine, listed: ListedTrust | None) -> tuple[str, ...]:
    gpus = "–" if machine.gpus is None else str(len(machine.gpus)) if machine.gpus else "cpu only"
    if machine.ssh.is_local:
        gpus += " (local)"
    fields = (
        machine.name,
        machine.role,
        f"{machine.hostname}:{machine.port}",
        "–" if listed is None else listed.trust.replace("_", " "),
        gpus,
        str(len(machine.models)),
        ", ".join(machine.tags),
    )
    return tuple(map(clean, fields))
