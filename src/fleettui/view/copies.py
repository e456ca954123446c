"""Copies as text: size, share on the GPU, context, what is left of their time."""

from __future__ import annotations

from typing import Literal

from fleettui.model.readings import LoadedModel, ModelState
from fleettui.model.unknown import Unknown
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.text import clean
from fleettui.view.units import bytes_gib, remaining

Detail = Literal["full", "brief", "share", "name"]
_STATE_TONES: dict[ModelState, Tone] = {"loading": "accent", "stopping": "warn"}
DETAILS: tuple[Detail, ...] = ("full", "brief", "share", "name")


def expiry_text(copy: LoadedModel, now: float) -> str:
    """`4m`, `pinned`, `stopping`, `loading`; empty where the engine gives no time."""
    if copy.state != "loaded":
        return copy.state
    if copy.is_pinned:
        return "pinned"
    if isinstance(copy.expires_at, Unknown):
        return ""
    return remaining(copy.expires_at - now)


def expiry_cell(copy: LoadedModel, now: float) -> Cell:
    """The same with its tone."""
    return Cell(expiry_text(copy, now), _STATE_TONES.get(copy.state, "dim"))


def share_cell(copy: LoadedModel) -> Cell | None:
    """`83 % GPU` of a copy that is partly in RAM, `CPU` of one that is wholly; None where all is well."""
    percent = copy.gpu_percent
    if isinstance(percent, Unknown) or percent >= 100:
        return None
    return Cell(f"{percent} % GPU" if percent > 0 else "CPU", "warn")


def copy_cells(
    copy: LoadedModel, now: float, detail: Detail = "full", *, is_cpu_normal: bool = False
) -> Cells:
    """`llama3.1:70b 39.6 · 4m`, `qwen2.5:32b 13.6 (83 % GPU) · pinned`."""
    cells = [Cell(clean(copy.name), "plain")]
    if detail == "full" and not isinstance(copy.size_bytes, Unknown):
        cells.append(Cell(f" {bytes_gib(copy.size_bytes)}", "dim"))
    share = share_cell(copy)
    if detail != "name" and share is not None and not (is_cpu_normal and share.text == "CPU"):
        cells.append(
            Cell(f" ({share.text})" if detail == "full" else f" {share.text.replace(' ', '')}", share.tone)
        )
    expiry = expiry_cell(copy, now)
    if expiry.text and (detail in {"full", "brief"} or copy.state != "loaded"):
        cells += [Cell(" · ", "faint"), expiry]
    return tuple(cells)


def copy_line_text(copy: LoadedModel, now: float) -> str:
    """Everything about a copy in one line: `39.6 GiB · 100 % GPU · ctx 32768 · Q4_K_M · 4m`."""
    percent = copy.gpu_percent
    parts = [
        "" if isinstance(copy.size_bytes, Unknown) else f"{bytes_gib(copy.size_bytes)} GiB",
        "" if isinstance(percent, Unknown) else f"{percent} % GPU" if percent else "CPU",
        "" if isinstance(copy.context, Unknown) else f"ctx {copy.context}",
        "" if isinstance(copy.parameter_size, Unknown) else clean(copy.parameter_size),
        "" if isinstance(copy.quantization, Unknown) else clean(copy.quantization),
        _expiry_sentence(copy, now),
    ]
    return " · ".join(part for part in parts if part)


def _expiry_sentence(copy: LoadedModel, now: float) -> str:
    text = expiry_text(copy, now)
    return f"expires in {text}" if copy.state == "loaded" and not copy.is_pinned and text else text
