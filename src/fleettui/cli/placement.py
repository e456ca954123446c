"""`fleettui placement plan`: which role belongs on which GPU, and what would change."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable

from fleettui.cli import output
from fleettui.cli.attached_plan import read_served, served_catalog
from fleettui.cli.colors import paint
from fleettui.cli.errors import EXIT_NEGATIVE, EXIT_OK, CommandError
from fleettui.cli.folders import Folders, resolve_folders
from fleettui.cli.placement_inputs import (
    PlanInputs,
    load_plan_catalog,
    load_rates,
    read_inputs,
    read_plan_file,
)
from fleettui.decide.placement.diff import Loading, diff_loaded, diff_plans
from fleettui.decide.placement.kinds import with_likely_models
from fleettui.decide.placement.lint import lint
from fleettui.decide.placement.optimal import compare, on_gpus
from fleettui.decide.placement.plan import plan
from fleettui.decide.placement.sticky import plan_keeping
from fleettui.decide.placement.what_if import lose_each_node
from fleettui.decide.plan_nodes import loaded_now
from fleettui.model.catalog import Catalog
from fleettui.model.placement import PlacementPlan
from fleettui.model.placement_answers import PlanComparison, PlanDiff
from fleettui.model.record import dataclass, replace
from fleettui.view.cells import Cells
from fleettui.view.glyphs import UNICODE, Glyphs, glyphs_of
from fleettui.view.json_values import Document
from fleettui.view.placement_answers_document import diff_document, lint_document, losses_document
from fleettui.view.placement_answers_text import diff_lines, lint_lines, losses_lines
from fleettui.view.placement_document import plan_document
from fleettui.view.placement_text import plan_lines

_SIGNS = f"{UNICODE.bar_left}{UNICODE.bar_parts[-1]}{UNICODE.offline}{UNICODE.dash}"


@dataclass(frozen=True, slots=True)
class _Printer:
    """Text, JSON or YAML, as the command line wants it."""

    arguments: Namespace
    folders: Folders

    @property
    def is_document(self) -> bool:
        """No text is wanted."""
        return bool(self.arguments.json or self.arguments.yaml)

    @property
    def width(self) -> int | None:
        """Of the terminal."""
        return output.terminal_width()

    @property
    def glyphs(self) -> Glyphs:
        """Signs that the terminal has."""
        told = self.folders.appearance.glyphs
        return glyphs_of(told or ("" if output.can_encode(_SIGNS) else "ascii"))

    def print_document(self, document: Document) -> None:
        """As JSON or YAML."""
        if self.arguments.json:
            output.write_document(document)
            return
        from fleettui.config.yaml_text import yaml_text

        output.write_lines(yaml_text(document).splitlines())

    def print_lines(self, lines: Iterable[Cells]) -> None:
        """With colours on a terminal."""
        has_color = output.is_terminal() and self.folders.appearance.has_color
        output.write_lines(paint(line, has_color=has_color) for line in lines)


def placement_command(arguments: Namespace) -> int:
    """Read catalog and machines, plan, print the one answer that was asked for."""
    _check_usage(arguments)
    folders = resolve_folders(arguments)
    served = read_served(arguments, folders)
    catalog = load_plan_catalog(folders) if served is None else served_catalog(arguments, folders, served)
    previous = read_plan_file(arguments.keep) if arguments.keep else None
    before = read_plan_file(arguments.diff) if arguments.diff else None
    inputs = read_inputs(arguments, folders, served)
    printer = _Printer(arguments, folders)
    if arguments.lint:
        return _print_lint(printer, inputs, catalog)
    if arguments.n_1 or arguments.check:
        return _print_losses(printer, inputs, catalog)
    planned, comparison = _make_plan(arguments, inputs, catalog, previous)
    is_gap = arguments.strict and planned.missing > 0
    if arguments.diff_loaded or before is not None:
        loading = Loading(catalog, rates=load_rates(folders) if served is None else served.rates)
        diff = _diff(inputs, catalog, before, planned, loading)
        if printer.is_document:
            printer.print_document(diff_document(diff, comparison))
        else:
            printer.print_lines(diff_lines(diff, printer.width, printer.glyphs, comparison))
        is_gap = is_gap or (arguments.detailed_exitcode and diff.has_changes)
    elif printer.is_document:
        printer.print_document(plan_document(planned, comparison))
    else:
        printer.print_lines(
            plan_lines(
                with_likely_models(planned, catalog),
                inputs.nodes,
                catalog.roles,
                comparison,
                printer.width,
                printer.glyphs,
            )
        )
    return EXIT_NEGATIVE if is_gap else EXIT_OK


def _check_usage(arguments: Namespace) -> None:
    """Nothing that was asked for is left out of the answer unsaid. Raises CommandError."""
    conflict = _conflict(arguments)
    if conflict:
        raise CommandError(conflict, "see: fleettui placement plan --help")


def _conflict(arguments: Namespace) -> str:
    """Options that do not go together; empty: they do."""
    source = "--inventory" if arguments.inventory else "--stored" if arguments.stored else ""
    is_table = arguments.n_1 or arguments.check
    if arguments.detailed_exitcode and not (arguments.diff or arguments.diff_loaded):
        return "--detailed-exitcode goes with --diff FILE or --diff-loaded"
    if source and arguments.diff_loaded:
        return f"--diff-loaded asks what is loaded now, and {source} asks no machine"
    if source and arguments.max_age is not None:
        return f"--max-age is for asking machines, and {source} asks none"
    if arguments.keep and arguments.optimal:
        return "--keep leaves copies where they are, and --optimal moves them: choose one"
    if is_table and arguments.keep:
        return "the N-1 table is made of new plans; leave out --keep"
    if is_table and arguments.strict:
        return "--strict is for plans; to exit 1 where a machine cannot be spared: --check n-1"
    if arguments.lint and (arguments.keep or arguments.optimal):
        option = "--keep" if arguments.keep else "--optimal"
        return f"--lint looks at the catalog and prints no plan; leave out {option}"
    if arguments.lint and arguments.include_unavailable:
        return "--lint looks at all machines; leave out --include-unavailable"
    gone = next((name for name, _ in arguments.disable if name in arguments.without), None)
    return f"--without {gone} takes all of its GPUs out; leave out --disable {gone}:…" if gone else ""


def _make_plan(
    arguments: Namespace, inputs: PlanInputs, catalog: Catalog, previous: PlacementPlan | None
) -> tuple[PlacementPlan, PlanComparison | None]:
    """With how many copies the other way of planning would place, where that is shown."""
    nodes, roles, also = inputs.nodes, catalog.roles, arguments.include_unavailable
    comparison = None
    if arguments.optimal or previous is not None or not (arguments.diff or arguments.diff_loaded):
        comparison = compare(nodes, roles, catalog, include_unavailable=also)
    if previous is not None:
        planned = plan_keeping(previous, nodes, roles, catalog, include_unavailable=also)
        if comparison is not None:
            comparison = replace(comparison, kept_copies=on_gpus(planned))
    elif comparison is not None:
        planned = comparison.optimal if arguments.optimal else comparison.greedy
    else:
        planned = plan(nodes, roles, catalog, include_unavailable=also)
    return replace(planned, warnings=(*inputs.notes, *planned.warnings)), comparison


def _diff(
    inputs: PlanInputs,
    catalog: Catalog,
    before: PlacementPlan | None,
    planned: PlacementPlan,
    loading: Loading,
) -> PlanDiff:
    planned = with_likely_models(planned, catalog)
    if before is not None:
        return diff_plans(with_likely_models(before, catalog), planned, loading)
    names = {node.name for node in inputs.nodes}
    machines = () if inputs.fleet is None else inputs.fleet.machines
    known = (machine for machine in machines if machine.name in names)
    return diff_loaded(loaded_now(known, planned, catalog), planned, loading)


def _print_lint(printer: _Printer, inputs: PlanInputs, catalog: Catalog) -> int:
    found = lint(inputs.nodes, catalog.roles, catalog)
    if printer.is_document:
        printer.print_document(lint_document(found))
    else:
        printer.print_lines(lint_lines(found, printer.width, printer.glyphs))
    return EXIT_NEGATIVE if found and printer.arguments.strict else EXIT_OK


def _print_losses(printer: _Printer, inputs: PlanInputs, catalog: Catalog) -> int:
    arguments = printer.arguments
    losses = lose_each_node(
        inputs.nodes,
        catalog.roles,
        catalog,
        include_unavailable=arguments.include_unavailable,
        optimal=arguments.optimal,
    )
    if printer.is_document:
        printer.print_document(losses_document(losses))
    else:
        printer.print_lines(losses_lines(losses, printer.width, printer.glyphs))
    is_safe = all(item.is_safe for item in losses)
    return EXIT_NEGATIVE if arguments.check and not is_safe else EXIT_OK
