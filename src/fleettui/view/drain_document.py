"""Drains as JSON: `drain start --dry-run --json`, `drain status --json`. Shapes: docs/json.md."""

from __future__ import annotations

from fleettui.model.clock import iso_utc
from fleettui.model.drain import (
    CopyProgress,
    Drain,
    DrainOptions,
    DrainPlan,
    DrainStatus,
    JournalEntry,
    PlannedCopy,
    SourceCopy,
)
from fleettui.model.route import RejectedMachine, RouteCandidate
from fleettui.model.vram import gib_of_mib
from fleettui.view.json_values import GIB, Document, gib, known, rounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEMA = 1


def preview_document(
    plans: Iterable[DrainPlan], options: DrainOptions, now: float, *, reason: str | None, exit_code: int
) -> Document:
    """What a drain would do, a machine after another in the order of their names on the command line."""
    return {
        "schema": SCHEMA,
        "machines": [plan_document(plan, options, now) for plan in plans],
        "reason": reason,
        "options": options_document(options),
        "errors": [],
        "exit_code": exit_code,
    }


def plan_document(plan: DrainPlan, options: DrainOptions, now: float) -> Document:
    """The preview of one machine."""
    return {
        "name": plan.machine,
        "copies": [_line(line) for line in plan.copies],
        "excluded": [_rejected(item) for item in plan.excluded],
        "load_gb": round(plan.load_bytes / GIB, 1),
        "seconds": rounded(plan.seconds),
        "targets": plan.targets,
        "no_copy_left": [line.copy.name for line in plan.copies if line.is_lost],
        "evicted_last": list(plan.evicted_last),
        "refused": sorted({line.drain_class for line in plan.refused(options)}),
        "exact": plan.is_exact,
        "problem": plan.problem or None,
        "taken_at": iso_utc(plan.taken_at),
        "age_s": round(max(0.0, now - plan.taken_at), 1),
    }


def _line(line: PlannedCopy) -> Document:
    return {
        **_copy(line.copy),
        "class": line.drain_class,
        "text": line.text or None,
        "target": None if line.target is None else _target(line.target),
        "context_there": known(line.context_there),
        "num_ctx": line.num_ctx,
        "follows": line.follows or None,
        "cold_on": list(line.cold_on),
        "keep": line.keep or None,
        "pull_gb": gib(line.pull_bytes, GIB),
        "rejected": [_rejected(item) for item in line.rejected],
    }


def _copy(copy: SourceCopy) -> Document:
    return {
        "name": copy.name,
        "engine": copy.engine,
        "port": copy.port or None,
        "digest": known(copy.digest),
        "size_gb": gib(copy.size_bytes, GIB),
        "vram_gb": gib(copy.vram_bytes, GIB),
        "context": known(copy.context),
        "pinned": copy.is_pinned,
        "expires_at": None if copy.is_pinned else _time(known(copy.expires_at)),
    }


def _target(target: RouteCandidate) -> Document:
    return {
        "name": target.machine,
        "address": target.address,
        "engine": target.engine,
        "model": target.model,
        "tier": target.tier,
        "reason": target.reason,
        "gpus": list(target.gpus),
        "free_vram_gb": gib_of_mib(target.free_mib),
        "free_gpu": target.free_gpu,
        "need_gb": None if target.need is None else round(target.need.mib / 1024, 1),
        "need_basis": None if target.need is None else target.need.basis,
        "need_text": None if target.need is None else target.need.text or None,
        "evicts": [
            {
                "model": eviction.model,
                "idle_s": rounded(eviction.idle_s),
                "vram_gb": gib_of_mib(eviction.vram_mib),
            }
            for eviction in target.evicts
        ],
        "eta_s": rounded(target.eta_s),
        "eta_basis": target.eta_basis,
    }


def _rejected(item: RejectedMachine) -> Document:
    return {"name": item.machine, "codes": list(item.codes), "text": item.text}


def status_document(statuses: Iterable[DrainStatus], now: float, *, exit_code: int = 0) -> Document:
    """Drains that are on, with all that is stored of them."""
    return {
        "schema": SCHEMA,
        "taken_at": iso_utc(now),
        "machines": [one_status_document(status) for status in statuses],
        "errors": [],
        "exit_code": exit_code,
    }


def off_document(name: str) -> Document:
    """A machine without a drain, in the same list."""
    off = {"state": "off", **dict.fromkeys(("reason", "by", "since", "until", "text", "revision"))}
    return {"name": name, "drain": {**off, "changed_by": None, "changed_at": None, "id": None}}


def one_status_document(status: DrainStatus) -> Document:
    """One of them."""
    lock = status.lock
    return {
        "name": status.drain.machine,
        "drain": drain_flag_document(status.drain),
        "options": options_document(status.drain.options),
        "copies": [progress_document(copy) for copy in status.copies],
        "worker": None
        if lock is None
        else {
            "by": lock.holder,
            "pid": lock.pid,
            "since": _time(lock.taken_at),
            "heard_at": _time(lock.beat_at),
        },
        "journal": [entry_document(entry) for entry in status.journal],
    }


def drain_flag_document(drain: Drain) -> Document:
    """The flag with who changed it last."""
    return {
        "state": drain.state,
        "reason": drain.reason,
        "by": drain.by,
        "since": _time(drain.since),
        "until": _time(drain.until),
        "text": drain.text or None,
        "revision": drain.revision,
        "changed_by": drain.changed_by or None,
        "changed_at": _time(drain.changed_at or None),
        "id": drain.id,
    }


def progress_document(copy: CopyProgress) -> Document:
    """How far a copy is."""
    return {
        **_copy(copy.copy),
        "class": copy.drain_class,
        "state": copy.state,
        "since": _time(copy.since or None),
        "target": copy.target,
        "text": copy.text or None,
        "eta_s": rounded(copy.eta_s),
        "failures": list(copy.failures),
        "moved": copy.is_moved,
    }


def entry_document(entry: JournalEntry) -> Document:
    """A step of the journal."""
    return {
        "at": _time(entry.at),
        "by": entry.by,
        "pid": entry.pid,
        "step": entry.step,
        "copy": entry.copy or None,
        "target": entry.target or None,
        "result": entry.result or None,
        "call": entry.call or None,
    }


def options_document(options: DrainOptions) -> Document:
    """What the operator allowed."""
    return {
        "allow_pull": options.allow_pull,
        "accept_degraded": options.accept_degraded,
        "keep_context": options.keeps_context,
        "idle_wait_s": options.idle_wait_s,
        "deadline_s": options.deadline_s,
        "probe": options.probes,
        "forced": list(options.forced),
        "to": list(options.targets),
        "serial": options.serial or None,
        "skip": list(options.skips),
    }


def _time(epoch_s: float | None) -> str | None:
    return None if epoch_s is None else iso_utc(epoch_s)
