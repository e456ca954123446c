"""Copies as text: size, share on the GPU, context, what is left of their time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from fleettui.model.readings import LoadedModel, ModelState
from fleettui.model.unknown import NOT_READ, Maybe, Unknown, known_or
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.text import clean
from fleettui.view.units import bytes_gib, remaining

Detail = Literal["full", "brief", "share", "name"]
_STATE_TONES: dict[ModelState, Tone] = {"loading": "accent", "stopping": "warn"}
DETAILS: tuple[Detail, ...] = ("full", "brief", "share", "name")
_DOT = Cell(" · ", "faint")


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


class CopyWords(NamedTuple):
    """What can be said of a copy in a row, before it is known how much of that has room."""

    name: Cell
    size: Cell | None
    share: Cell | None
    """`83 % GPU`; None where there is nothing to tell."""
    expiry: Cell
    """Empty where the engine gives no time."""
    has_changing_state: bool
    """It loads or stops, which is said at any length."""

    def cells(self, detail: Detail) -> Cells:
        """`llama3.1:70b 39.6 · 4m`, `qwen2.5:32b 13.6 (83 % GPU) · pinned`."""
        cells = [self.name]
        if detail == "full" and self.size is not None:
            cells.append(self.size)
        if detail != "name" and self.share is not None:
            text, tone = self.share
            cells.append(Cell(f" ({text})" if detail == "full" else f" {text.replace(' ', '')}", tone))
        if self.expiry.text and (self.has_changing_state or detail in {"full", "brief"}):
            cells += [_DOT, self.expiry]
        return tuple(cells)


def copy_words(copy: LoadedModel, now: float, *, is_cpu_normal: bool = False) -> CopyWords:
    """All that is said of a copy at the most."""
    share = share_cell(copy)
    return CopyWords(
        Cell(short_name(copy), "plain"),
        None if isinstance(copy.size_bytes, Unknown) else Cell(f" {bytes_gib(copy.size_bytes)}", "dim"),
        None if share is None or (is_cpu_normal and share.text == "CPU") else share,
        expiry_cell(copy, now),
        copy.state != "loaded",
    )


def copy_line_text(copy: LoadedModel, now: float) -> str:
    """Everything about a copy, the parts at the same place in each line and the most wanted ones first:
    `39.6 GiB  100 % GPU  expires in 4m   ctx 32768  70.6B   Q4_K_M`."""
    parts = zip(copy_parts(copy, now), _PART_WIDTHS, strict=True)
    return "  ".join(
        f"{part:>{-width}}" if width < 0 else f"{part:<{width}}" for part, width in parts
    ).rstrip()


_PART_WIDTHS = (-9, -9, 14, 10, 6, 0)
"""Columns of size, GPU share, expiry, context, parameters, quantisation; negative: right-aligned."""


def context_text(copy: LoadedModel, longest: Maybe[int] = NOT_READ) -> str:
    """`ctx 4096 of 131072`: what it has of what it was made for, where that is known and more."""
    if isinstance(copy.context, Unknown):
        return ""
    more = "" if isinstance(longest, Unknown) or longest <= copy.context else f" of {longest}"
    return f"ctx {copy.context}{more}"


def copy_parts(
    copy: LoadedModel, now: float, longest: Maybe[int] = NOT_READ
) -> tuple[str, str, str, str, str, str]:
    """Size, GPU share, expiry, context (`longest`: what the model was made for), parameters, quantisation;
    empty where unknown."""
    percent = copy.gpu_percent
    return (
        "" if isinstance(copy.size_bytes, Unknown) else f"{bytes_gib(copy.size_bytes)} GiB",
        "" if isinstance(percent, Unknown) else f"{percent} % GPU" if percent else "CPU",
        _expiry_sentence(copy, now),
        context_text(copy, longest),
        "" if isinstance(copy.parameter_size, Unknown) else clean(copy.parameter_size),
        "" if isinstance(copy.quantization, Unknown) else clean(copy.quantization),
    )


def ordered_copies(copies: Sequence[LoadedModel]) -> list[LoadedModel]:
    """The order of every list of copies: largest first, then by name."""
    return sorted(copies, key=lambda copy: (-known_or(copy.size_bytes, 0), copy.name))


def short_name(copy: LoadedModel) -> str:
    """The name for tight cells: `x:latest` is `x` to an engine too."""
    return clean(copy.name).removesuffix(":latest")


def _expiry_sentence(copy: LoadedModel, now: float) -> str:
    text = expiry_text(copy, now)
    return f"expires in {text}" if copy.state == "loaded" and not copy.is_pinned and text else text
