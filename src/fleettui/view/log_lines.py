"""A machine's log as lines of cells, and as a document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fleettui.model.clock import iso_utc
from fleettui.model.log import LogGroup, LogLine
from fleettui.model.unknown import Unknown
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.text import fit
from fleettui.view.units import date_and_time

_SOURCE_WIDTH = 14
_TONES: dict[LogGroup, Tone] = {"gpu": "accent", "engine": "strong", "kernel": "plain", "other": "plain"}
FIRST_TITLE = "GPU driver"


def is_alarming(line: LogLine) -> bool:
    """A fault of a card that the driver reports."""
    return line.group == "gpu" and "Xid" in line.text


def first_lines(lines: Iterable[LogLine]) -> tuple[LogLine, ...]:
    """What is to be seen first: what the kernel's GPU driver says, then NVIDIA's services."""
    return tuple(sorted((line for line in lines if line.group == "gpu"), key=_is_service))


def _is_service(line: LogLine) -> bool:
    return line.source != "kernel"


def log_line_cells(line: LogLine, utc_offset_s: int) -> Cells:
    """`2026-03-10 09:15:30  kernel          NVRM: Xid …` at the operator's time."""
    tone: Tone = "bad" if is_alarming(line) else _TONES[line.group]
    source = fit(line.source, max(_SOURCE_WIDTH, min(len(line.source), 30)))
    return (
        Cell(f"{date_and_time(line.at, utc_offset_s)}  ", "dim"),
        Cell(f"{source}  ", "accent" if line.group in ("gpu", "engine") else "dim"),
        Cell(line.text, tone),
    )


def log_rows(lines: Sequence[LogLine], utc_offset_s: int) -> list[Cells]:
    """GPU driver first under a title of its own, then the other lines; without any of it one list."""
    first = first_lines(lines)
    if not first or len(first) == len(lines):
        return [log_line_cells(line, utc_offset_s) for line in lines]
    rest = [line for line in lines if line.group != "gpu"]
    return [
        (Cell(f"-- {FIRST_TITLE} --", "title"),),
        *(log_line_cells(line, utc_offset_s) for line in first),
        (Cell("-- kernel, engines --" if _is_default(rest) else "-- other lines --", "title"),),
        *(log_line_cells(line, utc_offset_s) for line in rest),
    ]


def _is_default(lines: Iterable[LogLine]) -> bool:
    return all(line.group in ("kernel", "engine") for line in lines)


def line_document(line: LogLine) -> dict[str, Any]:
    """One line for JSON; an unknown time is null."""
    return {
        "time": None if isinstance(line.at, Unknown) else iso_utc(line.at),
        "source": line.source,
        "group": line.group,
        "text": line.text,
    }


def log_document(
    machine: str,
    lines: Sequence[LogLine],
    *,
    since_s: int,
    unit: str | None,
    source: str,
    notes: Sequence[str],
) -> dict[str, Any]:
    """The document of `logs --json`, lines in order of time."""
    return {
        "schema": 1,
        "machine": machine,
        "since_s": since_s,
        "unit": unit,
        "from": source,
        "lines": [line_document(line) for line in lines],
        "notes": list(notes),
        "errors": [],
    }
