"""What a language model gets to read of the fleet: few figures, units in their names, null for unknown.

Names and reasons in it come from machines, files and engines. `cleaned` goes over each document last: what
steers a terminal or hides in a text is dropped, and no text is longer than `TEXT_MAX`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fleettui.model.fit import FitReport, MachineFit
from fleettui.model.machine import Machine
from fleettui.model.placement import Assignment, PlacementPlan
from fleettui.model.placement_answers import NodeLoss, PlanComparison
from fleettui.model.route import RouteCandidate, RouteDecision
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import T, Unknown
from fleettui.model.vram import VramSum, free_vram, gib_of_mib, has_no_gpu, vram_sum
from fleettui.probes.clean import clean_text
from fleettui.view.document import machine_document
from fleettui.view.figures import is_answering, mean_utilisation
from fleettui.view.flags import flag_texts
from fleettui.view.json_values import GIB, Document, gib, known, rounded

TEXT_MAX = 240
"""Characters of one text."""
REASONS_MAX = 3
LOADED_MAX = 12
"""Names of loaded models in the summary of a machine."""
WHY_MAX = 20
"""Machines whose reasons are told where none was chosen."""
WARNINGS_MAX = 10
ROWS_MAX = 200
"""Copies of a plan, roles without a place."""


def cleaned(value: Any) -> Any:
    """The same document with every text printable, on one line and bounded."""
    if isinstance(value, str):
        return clean_text(value, TEXT_MAX)
    if isinstance(value, dict):
        return {key: cleaned(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(item) for item in value]
    return value


def _first(items: Sequence[T], most: int) -> tuple[list[T], int]:
    """So many of them, and how many there are beside."""
    return list(items[:most]), max(0, len(items) - most)


# -- machines ---------------------------------------------------------------------------------------------


def declared_document(snapshot: MachineSnapshot) -> Document:
    """A machine as its file declares it, and how it is."""
    machine: Machine = snapshot.machine
    models, more = _first(machine.models, LOADED_MAX)
    return {
        "machine": machine.name,
        "role": machine.role,
        "health": _health(snapshot),
        "address": f"{machine.hostname}:{machine.port}",
        "tags": list(machine.tags),
        "declared_gpus": None if machine.gpus is None else len(machine.gpus),
        "declared_models": models,
        "declared_models_more": more,
    }


def summary_document(snapshot: MachineSnapshot, now: float) -> Document:
    """A machine in a dozen figures. What one that does not answer said last is no figure of now: null."""
    is_online = is_answering(snapshot)
    sums, free = vram_sum(snapshot), free_vram(snapshot)
    loaded = [copy.name for copy in snapshot.loaded if copy.state != "stopping"]
    names, more = _first(loaded, LOADED_MAX)
    reasons = [reason.text for reason in snapshot.reasons][:REASONS_MAX]
    if not is_online and not reasons and snapshot.link.error:
        reasons = [snapshot.link.error]
    age_s = snapshot.age_s(now)
    return {
        "machine": snapshot.name,
        "role": snapshot.machine.role,
        "health": _health(snapshot),
        "reasons": reasons,
        "flags": flag_texts(snapshot, now),
        "gpus": _gpu_count(snapshot, sums) if is_online else None,
        "vram_total_gib": gib_of_mib(sums.total_mib) if is_online else None,
        "vram_free_gib": gib_of_mib(sums.free_mib) if is_online else None,
        "vram_free_on_one_gpu_gib": gib_of_mib(free.best_mib) if is_online else None,
        "gpu_utilisation_percent": rounded(mean_utilisation(snapshot)) if is_online else None,
        "models_loaded": names if is_online else None,
        "models_loaded_more": more if is_online else None,
        "data_age_s": None if age_s is None else round(age_s, 1),
    }


def details_document(snapshot: MachineSnapshot, now: float) -> Document:
    """The summary with each GPU, each loaded copy, processor, memory and disks."""
    summary = summary_document(snapshot, now)
    if not is_answering(snapshot):
        return summary
    whole = machine_document(snapshot, now)
    telemetry: Document = whole["telemetry"]
    return {
        **summary,
        "cpu_percent": telemetry["cpu_percent"],
        "load_1_5_15_min": telemetry["load"],
        "ram_total_gib": telemetry["ram_total_gb"],
        "ram_used_gib": telemetry["ram_used_gb"],
        "ram_free_gib": telemetry["ram_free_gb"],
        "swap_used_gib": telemetry["swap_used_gb"],
        "disks": [
            {"mount": disk["mount"], "free_gib": disk["free_gb"], "total_gib": disk["total_gb"]}
            for disk in (telemetry["disks"] or ())[:8]
        ],
        "gpu_list": [_card(card) for card in (telemetry.get("gpu") or ())[:32]],
        "copies": [_copy(copy) for copy in (whole["loaded"] or ())[:32]],
    }


def totals_document(machines: Iterable[MachineSnapshot]) -> Document:
    """All of these together; those that do not answer count as machines only."""
    total = free = gpus = online = count = 0
    for snapshot in machines:
        count += 1
        if is_answering(snapshot):
            online += 1
            sums = vram_sum(snapshot)
            gpus += sums.card_count
            total += 0 if isinstance(sums.total_mib, Unknown) else sums.total_mib
            free += 0 if isinstance(sums.free_mib, Unknown) else sums.free_mib
    return {
        "machines": count,
        "answering": online,
        "gpus": gpus,
        "vram_total_gib": round(total / 1024, 1),
        "vram_free_gib": round(free / 1024, 1),
    }


def _gpu_count(snapshot: MachineSnapshot, sums: VramSum) -> int | None:
    """None where a machine has GPUs and none of them can be read."""
    return 0 if has_no_gpu(snapshot) else sums.card_count or None


def _health(snapshot: MachineSnapshot) -> str:
    return snapshot.health if snapshot.trust == "approved" else snapshot.trust


def _card(card: Document) -> Document:
    return {
        "index": card["index"],
        "name": card["name"],
        "vram_total_gib": card["vram_total_gb"],
        "vram_free_gib": card["vram_free_gb"],
        "utilisation_percent": card["utilisation"],
        "temperature_c": card["temperature_c"],
        "power_w": card["power_w"],
        "fault": card["fault"],
        "is_disabled": card["disabled"],
    }


def _copy(copy: Document) -> Document:
    return {
        "model": copy["name"],
        "engine": copy["engine"],
        "vram_gib": copy["vram_gb"],
        "on_gpu_percent": copy["gpu_percent"],
        "context_tokens": copy["context"],
        "state": copy["state"],
        "is_pinned": copy["pinned"],
        "expires_at": copy["expires_at"],
        "signs_of_work": copy["busy"],
        "idle_s": copy["idle_s"],
        "gpus": copy["gpus"],
    }


# -- decisions --------------------------------------------------------------------------------------------


def route_choice_document(decision: RouteDecision) -> Document:
    """Where the model should be served, what may do instead, and why others may not."""
    best, others = _first(decision.candidates, max(1, decision.query.top))
    refused, more = _first(decision.rejected, WHY_MAX)
    return {
        "model": decision.query.model,
        "chosen": _candidate(best[0]) if best else None,
        "alternatives": [_candidate(candidate) for candidate in best[1:]],
        "alternatives_more": others,
        "not_eligible": [{"machine": item.machine, "why": item.text} for item in refused],
        "not_eligible_more": more,
        "nearest_names": list(decision.nearest),
        "warnings": [warning.text for warning in decision.warnings][:WARNINGS_MAX],
    }


def _candidate(candidate: RouteCandidate) -> Document:
    return {
        "machine": candidate.machine,
        "address": candidate.address,
        "url": candidate.url,
        "engine": candidate.engine,
        "model_there": candidate.model,
        "tier": candidate.tier,
        "why": candidate.reason,
        "ready_in_s": known(candidate.eta_s),
        "vram_free_gib": gib_of_mib(candidate.free_mib),
        "vram_needed_gib": None if candidate.need is None else round(candidate.need.mib / 1024, 1),
        "evicts": [eviction.model for eviction in candidate.evicts],
        "leases_held": candidate.leases,
        "data_age_s": None if candidate.age_s is None else round(candidate.age_s, 1),
    }


def fit_verdicts_document(report: FitReport, most: int) -> Document:
    """A verdict for each machine, the best first."""
    machines, more = _first(report.machines, most)
    return {
        "model": report.query.model,
        "fits_somewhere": report.exit_code == 0,
        "file_gib": gib(report.file_bytes, GIB),
        "machines_hold_different_weights": report.has_drift,
        "machines": [_verdict(item) for item in machines],
        "machines_more": more,
        "nearest_names": list(report.nearest),
    }


def _verdict(item: MachineFit) -> Document:
    use, need, forecast = item.use, item.need, item.forecast
    return {
        "machine": item.machine,
        "verdict": item.verdict,
        "why": item.text,
        "gpus": list(item.gpus),
        "vram_needed_gib": gib(item.needed_bytes, GIB) if item.needed_bytes else None,
        "vram_free_gib": gib(item.free_bytes, GIB) if item.needed_bytes else None,
        "in_main_memory_gib": gib(item.ram_bytes, GIB) if item.has_data else None,
        "evicts": list(item.evicted),
        "need_basis": None if need is None else need.basis,
        "ollama_predicts_gib": None if forecast is None else gib(forecast.predicted_bytes, GIB),
        "context_tokens": None if use is None else use.context,
        "requests_at_once": None if use is None else use.parallel,
        "is_installed": item.is_installed if item.has_data else None,
        "is_resident": item.resident_context is not None if item.has_data else None,
        "notes": list(item.notes[:REASONS_MAX]),
        "data_age_s": None if item.age_s is None else round(item.age_s, 1),
    }


# -- plans ------------------------------------------------------------------------------------------------


def plan_summary_document(plan: PlacementPlan, comparison: PlanComparison) -> Document:
    """Which copy of which role belongs where, and what has no place."""
    assignments, more = _first(plan.assignments, ROWS_MAX)
    return {
        "method": plan.method,
        "copies_on_gpus_greedy": comparison.greedy_copies,
        "copies_on_gpus_optimal": comparison.optimal_copies,
        "assignments": [_assignment(item) for item in assignments],
        "assignments_more": more,
        "unplaced": [
            {
                "role": item.role,
                "missing_copies": item.missing,
                "why": item.reason,
                "nearest": item.nearest or None,
                "would_help": list(item.fixes[:REASONS_MAX]),
            }
            for item in plan.unplaced[:ROWS_MAX]
        ],
        "excluded_machines": [
            {"machine": item.node, "why": item.reason} for item in plan.excluded_nodes[:ROWS_MAX]
        ],
        "disabled_gpus": [
            {"machine": item.node, "gpu_index": item.gpu_index} for item in plan.disabled_gpus[:ROWS_MAX]
        ],
        "switched_off_roles": list(plan.switched_off[:ROWS_MAX]),
        "warnings": list(plan.warnings[:WARNINGS_MAX]),
        "warnings_more": max(0, len(plan.warnings) - WARNINGS_MAX),
    }


def _assignment(item: Assignment) -> Document:
    return {
        "role": item.role,
        "copy": item.copy,
        "machine": item.node,
        "gpu_indices": list(item.gpus),
        "shares_gpu_with": item.shared_with,
        "is_cpu_fallback": item.fallback,
    }


def loss_rows_document(losses: Sequence[NodeLoss]) -> Document:
    """What the loss of each machine would leave without a place."""
    rows, more = _first(losses, ROWS_MAX)
    return {
        "is_safe": all(item.is_safe for item in losses),
        "machines": [
            {
                "machine": item.node,
                "is_safe": item.is_safe,
                "copies_lost": len(item.lost),
                "copies_moved": item.moved,
                "left_without_a_place": [
                    {"role": loss.role, "missing_copies": loss.missing} for loss in item.left_unplaced
                ],
            }
            for item in rows
        ],
        "machines_more": more,
    }
