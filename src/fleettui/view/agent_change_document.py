"""What a language model gets to read of a change: parts of the documents of the API, and lines of them."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.view.json_values import Document

COPIES_MAX = 40
"""Copies of one machine."""
DRAINS_MAX = 50


def maintenance_change_document(whole: Document) -> Document:
    """Of `fleettui maintenance on|off --json`."""
    (item,) = whole["machines"]
    return {
        "machine": item["name"],
        "outcome": item["outcome"],
        "maintenance": item["maintenance"],
        "told": item["text"],
    }


def maintenance_change_lines(document: Document) -> list[str]:
    """Of `set_maintenance`."""
    return [document["told"]]


def drain_preview_document(whole: Document) -> Document:
    """Of `fleettui drain start NAME --dry-run --json`."""
    (item,) = whole["machines"]
    return {
        "machine": item["name"],
        "is_preview": True,
        "would_be_refused_for": list(item["refused"]),
        "problem": item["problem"],
        "seconds": item["seconds"],
        "load_gib": item["load_gb"],
        "copies": [_planned(copy) for copy in item["copies"][:COPIES_MAX]],
        "copies_more": max(0, len(item["copies"]) - COPIES_MAX),
        "left_without_a_copy": list(item["no_copy_left"][:COPIES_MAX]),
        "data_age_s": item["age_s"],
    }


def _planned(copy: Document) -> Document:
    return {
        "model": copy["name"],
        "engine": copy["engine"],
        "vram_gib": copy["vram_gb"],
        "class": copy["class"],
        "target": None if copy["target"] is None else copy["target"]["name"],
        "evicts": [] if copy["target"] is None else [item["model"] for item in copy["target"]["evicts"]],
        "why": copy["text"],
    }


def drain_lines(document: Document) -> list[str]:
    """Of `drain_machine`: a preview, or how it stands."""
    if not document["is_preview"]:
        return drains_lines(document)
    lines = [f"preview of draining {document['machine']}; nothing was changed"]
    for copy in document["copies"]:
        where = f" to {copy['target']}" if copy["target"] else ""
        evicts = f", evicts {', '.join(copy['evicts'])}" if copy["evicts"] else ""
        why = f": {copy['why']}" if copy["why"] else ""
        lines.append(f"{copy['model']}: {copy['class']}{where}{evicts}{why}")
    if not document["copies"]:
        lines.append("no copy is loaded there")
    lines += _more(document["copies_more"], "copies")
    if document["left_without_a_copy"]:
        lines.append(f"no copy would be left of: {', '.join(document['left_without_a_copy'])}")
    if document["problem"]:
        lines.append(f"problem: {document['problem']}")
    if document["would_be_refused_for"]:
        lines.append(f"it would be refused without force_class {_classes(document['would_be_refused_for'])}")
    return [*lines, "to begin: the same with dry_run false and a reason"]


def _classes(names: Sequence[str]) -> str:
    return ", ".join(name.replace("_", "-") for name in names)


def drains_document(whole: Document, names: Sequence[str] = ()) -> Document:
    """Of `fleettui drain status --json`: how drains stand. `names`: only these, with those that have none."""
    found = [item for item in whole["machines"] if not names or item["name"] in names]
    on = [item["name"] for item in found]
    drains = [_drain(item) for item in found[:DRAINS_MAX]]
    drains += [{"machine": name, "state": "off"} for name in names if name not in on]
    return {"is_preview": False, "drains": drains, "drains_more": max(0, len(found) - DRAINS_MAX)}


def _drain(item: Document) -> Document:
    drain = item["drain"]
    if drain["state"] == "off":
        return {"machine": item["name"], "state": "off"}
    copies = item["copies"]
    return {
        "machine": item["name"],
        "state": drain["state"],
        "reason": drain["reason"],
        "by": drain["by"],
        "since": drain["since"],
        "until": drain["until"],
        "told": drain["text"],
        "copies": [
            {
                "model": copy["name"],
                "class": copy["class"],
                "state": copy["state"],
                "target": copy["target"],
                "told": copy["text"],
            }
            for copy in copies[:COPIES_MAX]
        ],
        "copies_more": max(0, len(copies) - COPIES_MAX),
    }


def drains_lines(document: Document) -> list[str]:
    """Of `drain_status`, and of what changes a drain."""
    lines = []
    for item in document["drains"]:
        if item["state"] == "off":
            lines.append(f"{item['machine']}: not drained")
            continue
        told = f": {item['told']}" if item["told"] else ""
        lines.append(f'{item["machine"]}: drain {item["state"]}, "{item["reason"]}" by {item["by"]}{told}')
        for copy in item["copies"]:
            where = f" to {copy['target']}" if copy["target"] else ""
            why = f": {copy['told']}" if copy["told"] else ""
            lines.append(f"  {copy['model']}: {copy['class']}{where}, {copy['state']}{why}")
        lines += _more(item["copies_more"], "copies")
    return (lines or ["no drain is on"]) + _more(document["drains_more"], "drains")


def lease_document(whole: Document) -> Document:
    """Of `fleettui route MODEL --json`: where to send requests, and the lease that was taken."""
    chosen = whole["chosen"]
    lease = chosen["lease"]
    return {
        "lease": None if lease is None else lease["id"],
        "holds_until": None if lease is None else lease["until"],
        "machine": chosen["name"],
        "url": chosen["url"],
        "engine": chosen["engine"],
        "model_there": chosen["model"],
        "tier": chosen["tier"],
        "why": chosen["reason"],
        "warnings": [item["text"] for item in whole["warnings"]][:10],
    }


def lease_lines(document: Document) -> list[str]:
    """Of `take_lease`."""
    lease, until = document["lease"], document["holds_until"]
    first = f"use {document['machine']} at {document['url']} ({document['tier']}): {document['why']}"
    second = "no lease was needed" if lease is None else f"lease {lease} holds until {until}"
    return [first, second, *(f"note: {text}" for text in document["warnings"])]


def released_lines(document: Document) -> list[str]:
    """Of `release_lease`."""
    return [f"lease {document['released']} was released"]


def _more(number: int, what: str) -> list[str]:
    return [f"and {number} more {what}"] if number else []
