"""The documents of `agent_document`, cleaned before, as lines: one for each machine, copy or reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fleettui.view.json_values import Document
from fleettui.view.units import count

_NOT_KNOWN = "not known"
_VERDICTS = {
    "one_gpu": "on one GPU",
    "several_gpus": "on several GPUs",
    "evictions": "with evictions",
    "cpu_offload": "with CPU offload",
    "no": "does not fit",
    "unknown": _NOT_KNOWN,
}


def declared_lines(document: Document) -> list[str]:
    """Of `list_machines`."""
    lines = [count(document["machines_total"], "machine")]
    for item in document["machines"]:
        parts = [f"{item['machine']} ({item['role']}): {item['health']}", item["address"]]
        parts += _listed("tags", item["tags"])
        parts += _listed("declares", item["declared_models"], item["declared_models_more"])
        lines.append("; ".join(parts))
    return lines + _more(document["machines_more"], "machines", "ask for more with limit, or use filter")


def fleet_lines(document: Document) -> list[str]:
    """Of `get_infrastructure`."""
    totals = document["totals"]
    lines = [
        f"{count(totals['machines'], 'machine')}, {totals['answering']} answering; "
        f"{count(totals['gpus'], 'GPU')}; VRAM free {_gib(totals['vram_free_gib'])} of "
        f"{_gib(totals['vram_total_gib'])}"
    ]
    for item in document["machines"]:
        lines += machine_lines(item)
    return lines + _more(document["machines_more"], "machines", "ask for more with limit, or use filter")


def machine_lines(item: Document) -> list[str]:
    """One machine in a line, and what is known in detail below it."""
    parts = [f"{item['machine']} ({item['role']}): {item['health']}", *item["flags"]]
    if item["models_loaded"] is not None:
        if item["gpus"] is None:
            parts.append("its GPUs are not known")
        elif item["gpus"]:
            free, total = _gib(item["vram_free_gib"]), _gib(item["vram_total_gib"])
            best = _gib(item["vram_free_on_one_gpu_gib"])
            parts.append(f"{count(item['gpus'], 'GPU')}, VRAM free {free} of {total}, {best} on one GPU")
        else:
            parts.append("no GPU")
        parts += _listed("loaded", item["models_loaded"], item["models_loaded_more"]) or ["nothing loaded"]
    parts += item["reasons"]
    age_s = item["data_age_s"]
    parts.append("never seen" if age_s is None else f"{age_s} s old")
    return ["; ".join(parts), *(f"  {line}" for line in _detail_lines(item))]


def _detail_lines(item: Document) -> list[str]:
    if "gpu_list" not in item:
        return []
    lines = [
        f"CPU {_figure(item['cpu_percent'], '%')}; RAM free {_gib(item['ram_free_gib'])} of "
        f"{_gib(item['ram_total_gib'])}"
    ]
    for card in item["gpu_list"]:
        text = (
            f"GPU {card['index']} {card['name'] or _NOT_KNOWN}: free {_gib(card['vram_free_gib'])} of "
            f"{_gib(card['vram_total_gib'])}, {_figure(card['utilisation_percent'], '%')} busy, "
            f"{_figure(card['temperature_c'], '°C')}"
        )
        text += f", fault: {card['fault']}" if card["fault"] else ""
        lines.append(text + (", disabled" if card["is_disabled"] else ""))
    for copy in item["copies"]:
        text = f"loaded {copy['model']} ({copy['engine']}): VRAM {_gib(copy['vram_gib'])}"
        text += f", context {copy['context_tokens']} tokens" if copy["context_tokens"] is not None else ""
        text += ", works" if copy["signs_of_work"] else ""
        lines.append(text + (f", idle {copy['idle_s']} s" if copy["idle_s"] is not None else ""))
    for disk in item["disks"]:
        lines.append(f"disk {disk['mount']}: free {_gib(disk['free_gib'])} of {_gib(disk['total_gib'])}")
    return lines


def route_choice_lines(document: Document) -> list[str]:
    """Of `find_machine_for_model`."""
    chosen = document["chosen"]
    lines = []
    if chosen is not None:
        lines.append(f"use {chosen['machine']} at {chosen['url']}: {_candidate(chosen)}")
    lines += [
        f"else {item['machine']} at {item['url']}: {_candidate(item)}" for item in document["alternatives"]
    ]
    lines += [f"not {item['machine']}: {item['why']}" for item in document["not_eligible"]]
    lines += _more(document["not_eligible_more"], "machines that cannot", "each has its reason in /api/route")
    return lines + [f"note: {text}" for text in document["warnings"]]


def _candidate(item: Document) -> str:
    parts = [f"{item['why']} (tier {item['tier']})", f"VRAM free {_gib(item['vram_free_gib'])}"]
    if item["vram_needed_gib"] is not None:
        parts.append(f"needs {_gib(item['vram_needed_gib'])}")
    if item["ready_in_s"]:
        parts.append(f"ready in about {item['ready_in_s']:.0f} s")
    parts += _listed("evicts", item["evicts"])
    return "; ".join(parts)


def fit_verdict_lines(document: Document) -> list[str]:
    """Of `fit`."""
    head = "fits" if document["fits_somewhere"] else "fits on no machine now"
    lines = [f"{document['model']} {head}; file {_gib(document['file_gib'])}"]
    for item in document["machines"]:
        parts = [f"{item['machine']}: {_VERDICTS.get(item['verdict'], item['verdict'])}"]
        if item["vram_needed_gib"] is not None:
            parts.append(f"needs {_gib(item['vram_needed_gib'])} of {_gib(item['vram_free_gib'])} free")
        if item["in_main_memory_gib"]:
            parts.append(f"{_gib(item['in_main_memory_gib'])} in main memory")
        parts += _listed("evicts", item["evicts"])
        if item["is_resident"]:
            parts.append("resident")
        elif item["is_installed"] is False:
            parts.append("not installed")
        if item["verdict"] == "unknown":
            parts.append(item["why"])
        lines.append("; ".join([*parts, *item["notes"]]))
    return lines + _more(document["machines_more"], "machines", "name some in machines")


def plan_lines(document: Document) -> list[str]:
    """Of `plan`."""
    lines = [
        f"{document['method']} plan; copies on GPUs: greedy {document['copies_on_gpus_greedy']}, "
        f"optimal {document['copies_on_gpus_optimal']}"
    ]
    for item in document["assignments"]:
        gpus = item["gpu_indices"]
        place = f"GPU {'+'.join(map(str, gpus))}" if gpus else "CPU"
        text = f"{item['role']}/{item['copy']}: {item['machine']} {place}"
        lines.append(text + (f", with {item['shares_gpu_with']}" if item["shares_gpu_with"] else ""))
    lines += _more(document["assignments_more"], "copies", "all of them: fleettui placement plan")
    for item in document["unplaced"]:
        parts = [f"no place: {item['role']} x{item['missing_copies']}: {item['why']}"]
        lines.append("; ".join([*parts, *_listed("would help", item["would_help"])]))
    lines += [f"left out: {item['machine']}: {item['why']}" for item in document["excluded_machines"]]
    return lines + [f"note: {text}" for text in document["warnings"]]


def loss_lines(document: Document) -> list[str]:
    """Of `plan` with what the loss of each machine would do."""
    return [
        "each machine may be lost" if document["is_safe"] else "some machines may not be lost",
        *_rows(document["machines"], _loss),
        *_more(document["machines_more"], "machines", "all of them: fleettui placement plan --n-1"),
    ]


def _loss(item: Document) -> str:
    left = [f"{loss['role']} x{loss['missing_copies']}" for loss in item["left_without_a_place"]]
    lost = count(item["copies_lost"], "copy", "copies")
    after = f"without a place then: {', '.join(left)}" if left else "all find another place"
    return f"{item['machine']}: {lost} there" + (f"; {after}" if item["copies_lost"] else "")


def _rows(items: Sequence[Document], line: Callable[[Document], str]) -> list[str]:
    return [line(item) for item in items]


def _listed(word: str, names: Sequence[str], more: int = 0) -> list[str]:
    """`loaded a, b and 3 more`; nothing without names."""
    beside = f" and {more} more" if more else ""
    return [f"{word} {', '.join(names)}{beside}"] if names else []


def _more(number: int, what: str, hint: str) -> list[str]:
    return [f"and {number} more {what}: {hint}"] if number else []


def _gib(value: float | None) -> str:
    return _NOT_KNOWN if value is None else f"{value} GiB"


def _figure(value: float | None, unit: str) -> str:
    return _NOT_KNOWN if value is None else f"{value:g} {unit}"
