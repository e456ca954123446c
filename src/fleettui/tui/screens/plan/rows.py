"""All rows of a plan, from top to bottom; those whose parts did not change are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fleettui.decide.natural import natural_key
from fleettui.decide.plan_nodes import NO_PROFILE
from fleettui.model.catalog import Catalog
from fleettui.model.placement import Assignment, PlacementPlan, PlanNode, PlanRole
from fleettui.model.placement_answers import LintFinding
from fleettui.model.snapshot import FleetSnapshot
from fleettui.model.unknown import NOT_READ, Maybe
from fleettui.model.vram import card_memory
from fleettui.tui.screens.plan.what_if import OFF, WhatIf
from fleettui.view.cells import Tone
from fleettui.view.plan_page import gpu_detail, role_detail
from fleettui.view.plan_rows import (
    GpuState,
    PlanLayout,
    PlanRow,
    cpu_row,
    gpu_row,
    heading,
    said_rows,
    unplaced_rows,
)
from fleettui.view.units import count

Used = Mapping[tuple[str, int], Maybe[int]]


def used_now(fleet: FleetSnapshot) -> Used:
    """MiB on each GPU, by (machine, number)."""
    return {
        (machine.name, card.index): card_memory(machine, card).used_mib
        for machine in fleet.machines
        if machine.gpu is not None
        for card in machine.gpu.cards
    }


def state_of(node: PlanNode, index: int | None, used: Used, what_if: WhatIf) -> GpuState:
    """What is to be said of a GPU, or of a machine, beside the plan."""
    gpu = next((gpu for gpu in node.gpus if gpu.index == index), None)
    off = node.unavailable
    is_switched = what_if.is_switched(node.name)
    if gpu is not None:
        is_switched = is_switched or what_if.is_switched(node.name, gpu.index)
        if not off and gpu.disabled:
            is_here = what_if.is_switched(node.name, gpu.index)
            off = OFF if is_here else "disabled"
    used_mib = used.get((node.name, index), NOT_READ) if index is not None else NOT_READ
    return GpuState(used_mib, off, is_switched, node.is_offline)


def about_row(
    row: PlanRow,
    plan: PlacementPlan,
    nodes: Sequence[PlanNode],
    roles: Sequence[PlanRole],
    used: Used,
    what_if: WhatIf,
) -> tuple[str, str] | None:
    """(what a line is about, all that is known of it); None: the line says it all."""
    if row.kind == "role":
        unplaced = next((item for item in plan.unplaced if row.key == f"\nrole {item.role}"), None)
        return None if unplaced is None else role_detail(unplaced)
    node = next((node for node in nodes if node.name == row.machine), None)
    if row.kind not in ("gpu", "cpu") or node is None:
        return None
    mine = [
        item
        for item in plan.assignments
        if item.node == row.machine and (row.gpu in item.gpus if row.gpu is not None else not item.gpus)
    ]
    return gpu_detail(row, mine, {role.name: role for role in roles}, state_of(node, row.gpu, used, what_if))


class PlanRows:
    """Rows by their key."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[object, PlanRow]] = {}
        self.built = 0
        """How many rows of machines were built so far."""

    def of_plan(
        self,
        plan: PlacementPlan,
        nodes: Sequence[PlanNode],
        catalog: Catalog,
        used: Used,
        what_if: WhatIf,
        layout: PlanLayout,
        warnings: Sequence[str],
        findings: Sequence[LintFinding],
    ) -> list[PlanRow]:
        """Machines with their GPUs, then what has no place, then what is odd."""
        mine: dict[str, list[Assignment]] = {}
        for item in plan.assignments:
            mine.setdefault(item.node, []).append(item)
        roles = {role.name: role for role in catalog.roles}
        before, self._kept = self._kept, {}
        rows: list[PlanRow] = []
        for node in sorted(nodes, key=lambda node: natural_key(node.name)):
            rows += self._of_node(node, mine.get(node.name, []), roles, used, what_if, layout, before)
        if plan.unplaced:
            rows.append(heading("unplaced", f"{count(len(plan.unplaced), 'role')} without a place", layout))
        for role in plan.unplaced:
            rows += unplaced_rows(role, layout)
        said: list[tuple[str, Tone]] = [(text, "warn") for text in warnings]
        said += [(item.text, "dim") for item in findings]
        if plan.switched_off:
            said.append((f"switched off (count 0): {', '.join(plan.switched_off)}", "dim"))
        if said:
            rows.append(heading("notes", "to look at", layout))
        return [*rows, *said_rows("note", said, layout)]

    def _of_node(
        self,
        node: PlanNode,
        mine: Sequence[Assignment],
        roles: Mapping[str, PlanRole],
        used: Used,
        what_if: WhatIf,
        layout: PlanLayout,
        before: Mapping[str, tuple[object, PlanRow]],
    ) -> list[PlanRow]:
        rows: list[PlanRow] = []
        for gpu in sorted(node.gpus, key=lambda gpu: gpu.index):
            on_it = tuple(item for item in mine if gpu.index in item.gpus)
            state = state_of(node, gpu.index, used, what_if)
            is_first = not rows
            made_of = (
                layout,
                node.name,
                gpu,
                on_it,
                tuple(roles.get(i.role) for i in on_it),
                state,
                is_first,
            )

            def make(gpu=gpu, on_it=on_it, state=state, is_first=is_first) -> PlanRow:  # type: ignore[no-untyped-def]
                return gpu_row(node, gpu, on_it, roles, state, layout, is_first=is_first)

            rows.append(self._keep(f"{node.name}\n{gpu.index}", made_of, make, before))
        on_cpu = tuple(item for item in mine if not item.gpus)
        if on_cpu or not rows:
            state = state_of(node, None, used, what_if)
            if node.unavailable == NO_PROFILE:
                state = state._replace(off="its hardware is not known")
            is_first = not rows
            made_of_cpu = (layout, node.name, node.memory_gb, on_cpu, state, is_first)

            def make_cpu() -> PlanRow:
                return cpu_row(node, on_cpu, state, layout, is_first=is_first)

            rows.append(self._keep(f"{node.name}\ncpu", made_of_cpu, make_cpu, before))
        return rows

    def _keep(
        self,
        key: str,
        made_of: object,
        make: Callable[[], PlanRow],
        before: Mapping[str, tuple[object, PlanRow]],
    ) -> PlanRow:
        kept = before.get(key)
        if kept is None or kept[0] != made_of:
            self.built += 1
            kept = (made_of, make())
        self._kept[key] = kept
        return kept[1]
