"""The answer of routing as text and JSON. Imports stay light: this is the path of a warm `--route`."""

from __future__ import annotations

from fleettui.model.clock import duration_words, iso_utc
from fleettui.model.literal import Literal
from fleettui.model.route import (
    EXIT_NO_DATA,
    EXIT_UNKNOWN_MODEL,
    RouteCandidate,
    RouteDecision,
    ServingEngine,
)
from fleettui.model.unknown import Maybe, Unknown
from fleettui.model.vram import gib_of_mib
from fleettui.view.text import cell_width, clean, fit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fleettui.model.lease import Lease
    from fleettui.model.unknown import T

AnswerFormat = Literal["address", "host", "name", "url", "tsv", "json", "env"]
ANSWER_FORMATS: tuple[AnswerFormat, ...] = ("address", "host", "name", "url", "tsv", "json", "env")
SCHEMA = 1
_FREE_MAX = 24
"""Columns of `free 1234.5 GiB (GPU 15)`; a reason why it is unknown may be longer."""
_ENV_NAMES = {"ollama": "OLLAMA_HOST"}


def route_lines(decision: RouteDecision, width: int | None = None) -> list[str]:
    """What goes to stderr: a headline, a line per machine, warnings. `width` cuts lines, None does not."""
    lines = [_headline(decision)]
    names = [item.machine for item in decision.candidates] + [item.machine for item in decision.rejected]
    name_width = max((cell_width(clean(name)) for name in names), default=0)
    rank_width = len(str(len(decision.candidates)))
    reasons = [clean(candidate.reason) for candidate in decision.candidates]
    free = [clean(_free_text(candidate)) for candidate in decision.candidates]
    reason_width = max(map(cell_width, reasons), default=0)
    free_width = min(max(map(cell_width, free), default=0), _FREE_MAX)
    for rank, (candidate, reason, text) in enumerate(zip(decision.candidates, reasons, free, strict=True), 1):
        start = f" {rank:>{rank_width}} {fit(clean(candidate.machine), name_width)}  tier {candidate.tier}  "
        rest = f"{_padded(reason, reason_width)}  {_padded(text, free_width)}  {_consequences(candidate)}"
        lines.append(f"{start}{rest}".rstrip())
    for rejected in decision.rejected:
        start = f" {'-':>{rank_width}} {fit(clean(rejected.machine), name_width)}  "
        lines.append(start + clean(rejected.text))
    lines += [f"note: {clean(warning.text)}" for warning in decision.warnings]
    conclusion = _conclusion(decision)
    if conclusion:
        lines.append(conclusion)
    if width is not None:
        lines = [fit(line, width).rstrip() if cell_width(line) > width else line for line in lines]
    return lines


def excluded_lines(decision: RouteDecision) -> list[str]:
    """For stderr: a mistyped `--exclude` would send the caller to the very machine that was not wanted."""
    excluded = decision.query.exclude
    if not excluded:
        return []
    names = {item.machine for item in decision.candidates} | {item.machine for item in decision.rejected}
    unknown = [name for name in dict.fromkeys(excluded) if name not in names]
    return [f"note: --exclude {clean(name)}: no machine has that name" for name in unknown]


def _padded(text: str, width: int) -> str:
    """At least that wide; never cut."""
    return text + " " * (width - cell_width(text))


def _consequences(candidate: RouteCandidate) -> str:
    """`evicts qwen3:8b (idle 41 min)`, and who is on the way there."""
    parts = [f"evicts {eviction_text(candidate)}"] if candidate.evicts else []
    if candidate.leases:
        parts.append("1 lease held" if candidate.leases == 1 else f"{candidate.leases} leases held")
    return ", ".join(parts)


def eviction_text(candidate: RouteCandidate) -> str:
    """`qwen3:8b (idle 41 min), phi3:mini`: what has to go, in that order."""
    texts = []
    for eviction in candidate.evicts:
        idle_s = eviction.idle_s
        about = "" if isinstance(idle_s, Unknown) else f" (idle {duration_words(idle_s)})"
        texts.append(f"{clean(eviction.model)}{about}")
    return ", ".join(texts)


def _headline(decision: RouteDecision) -> str:
    total = len(decision.candidates) + len(decision.rejected)
    asked = clean(decision.query.model)
    if not total:
        return f"route {asked}  (no machine)"
    ages = [item.age_s for item in decision.candidates if item.age_s is not None]
    data = f", data {ages[0]:.1f} s old" if ages else ""
    return f"route {asked}  ({len(decision.candidates)} eligible of {total}{data})"


def _free_text(candidate: RouteCandidate) -> str:
    free = candidate.free_mib
    if isinstance(free, Unknown):
        return f"free unknown: {free.reason}"
    card = f" (GPU {candidate.free_gpu})" if candidate.free_gpu is not None else ""
    return f"free {free / 1024:.1f} GiB{card}"


def _conclusion(decision: RouteDecision) -> str:
    """What a failure means and what to do next; nothing after a success."""
    if decision.chosen is not None:
        return ""
    asked, query = repr(clean(decision.query.model)), decision.query
    nearest = f"; nearest: {', '.join(map(clean, decision.nearest))}" if decision.nearest else ""
    if decision.exit_code == EXIT_UNKNOWN_MODEL:
        return f"error: no machine knows {asked}{nearest}"
    if decision.exit_code == EXIT_NO_DATA:
        return f"error: no machine gave usable data, so nothing is known of {asked}; check the network"
    wishes = f" with {_size(query.min_free_vram_mib)} of free VRAM" if query.min_free_vram_mib else ""
    wishes += f" with a context of {query.context}" if query.context is not None else ""
    verb = "has" if query.require_loaded else "can serve"
    loaded = " loaded" if query.require_loaded else ""
    return f"error: no machine {verb} {asked}{loaded}{wishes} now{nearest}"


def _size(mib: int) -> str:
    """As it was asked for: in GiB where one decimal tells it, else in MiB."""
    gib = f"{mib / 1024:.1f}"
    return f"{gib} GiB" if -(-float(gib) * 1024 // 1) == mib else f"{mib} MiB"


def format_answer(decision: RouteDecision, form: AnswerFormat | str) -> str:
    """The answer for stdout, without a final newline: one line, with `--top` one for each candidate.

    Empty when nothing was chosen, except that `json` always gives its document.
    """
    if form == "json":
        from fleettui.model.written import dump_json

        return dump_json(route_document(decision), ensure_ascii=False)
    top = decision.candidates[: max(1, decision.query.top)]
    return "\n".join(format_one(candidate, form) for candidate in top)


def format_one(candidate: RouteCandidate | ServingEngine, form: str) -> str:
    """One machine as the answer, in any form but `json`; without a tier where no model was asked for."""
    if form == "host":
        return candidate.hostname
    if form == "name":
        return candidate.machine
    if form == "url":
        return candidate.url
    if form == "tsv":
        fields: tuple[str, ...] = (candidate.machine, candidate.hostname, str(candidate.port))
        if isinstance(candidate, RouteCandidate):
            fields = (*fields, str(candidate.tier))
        return "\t".join(clean(field) for field in fields)
    if form == "env":
        name = _ENV_NAMES.get(candidate.engine)
        value = candidate.address if name is not None else f"{candidate.url}/v1"
        return f"export {name or 'OPENAI_BASE_URL'}={_quoted(value)}"
    return candidate.address


def _quoted(value: str) -> str:
    """The value as one word of a POSIX shell; `shlex` costs an import."""
    if (
        value.isascii()
        and value.replace(".", "").replace(":", "").replace("-", "").replace("/", "").isalnum()
    ):
        return value
    return "'" + value.replace("'", "'\\''") + "'"


def lease_line(lease: Lease, now: float) -> str:
    """What goes to stderr of a lease that was taken."""
    return f"lease {lease.id} on {lease.machine} for {lease.until - now:.0f} s"


def route_document(
    decision: RouteDecision, *, took_ms: float | None = None, lease: Lease | None = None
) -> dict[str, Any]:
    """The JSON document of `--json`; `chosen` is null when nothing was chosen. `lease`: as it was taken."""
    chosen = decision.chosen
    taken = None if lease is None else {"id": lease.id, "until": iso_utc(lease.until)}
    ages = {item.machine: _age(item.age_s) for item in decision.candidates}
    ages |= {item.machine: _age(item.age_s) for item in decision.rejected}
    return {
        "schema": SCHEMA,
        "model": {
            "asked": decision.query.model,
            "canonical": decision.canonical,
            "digest": _known(decision.digest),
        },
        "chosen": None if chosen is None else {**_candidate(chosen), "lease": taken},
        "candidates": [
            {"rank": rank, **_candidate(candidate)} for rank, candidate in enumerate(decision.candidates, 1)
        ],
        "rejected": [
            {"name": item.machine, "codes": list(item.codes), "text": item.text} for item in decision.rejected
        ],
        "warnings": [{"code": warning.code, "text": warning.text} for warning in decision.warnings],
        "nearest": list(decision.nearest),
        "exit_code": decision.exit_code,
        "age_s": ages,
        "generated_at": iso_utc(decision.decided_at),
        "took_ms": None if took_ms is None else round(took_ms, 1),
    }


def _candidate(candidate: RouteCandidate) -> dict[str, Any]:
    return {
        "name": candidate.machine,
        "url": candidate.url,
        "address": candidate.address,
        "hostname": candidate.hostname,
        "port": candidate.port,
        "engine": candidate.engine,
        "model": candidate.model,
        "tier": candidate.tier,
        "reason": candidate.reason,
        "resident_ctx": _known(candidate.resident_context),
        "free_vram_gb": gib_of_mib(candidate.free_mib),
        "free_gpu": candidate.free_gpu,
        "need_gb": None if candidate.need is None else round(candidate.need.mib / 1024, 1),
        "need_basis": None if candidate.need is None else candidate.need.basis,
        "need_text": None if candidate.need is None else candidate.need.text or None,
        "gpus": list(candidate.gpus),
        "eta_s": _known(candidate.eta_s),
        "eta_basis": candidate.eta_basis,
        "eta_text": candidate.eta_text or None,
        "evicts": [
            {
                "model": eviction.model,
                "idle_s": _age(_known(eviction.idle_s)),
                "vram_gb": gib_of_mib(eviction.vram_mib),
            }
            for eviction in candidate.evicts
        ],
        "busy": list(candidate.busy),
        "idle_s": _age(_known(candidate.idle_s)),
        "leases": candidate.leases,
    }


def _known(value: Maybe[T]) -> T | None:
    return None if isinstance(value, Unknown) else value


def _age(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
