"""Cells of the columns that speak of GPUs and copies, for a machine and for each of its cards."""

from __future__ import annotations

from fleettui.model.gpu import GpuCard
from fleettui.model.unknown import Maybe, Unknown
from fleettui.model.vram import card_memory
from fleettui.probes.gpu_names import strip_maker
from fleettui.view.bars import bar_cells, fraction_of, tone_for
from fleettui.view.cells import NOTHING, Cell, Cells, Tone, dimmed, fit_cells, join_cells, width_of
from fleettui.view.copies import DETAILS, copy_words, ordered_copies
from fleettui.view.figures import hottest_c, mean_utilisation, total_power_w
from fleettui.view.machine_view import MachineView
from fleettui.view.sparkline import spark_cells
from fleettui.view.text import cell_width, clean
from fleettui.view.units import DASH, celsius, count, gib_short, gib_text, percent, watts

UNKNOWN = (Cell(DASH, "unknown"),)
_COMMA = ", "


_LINES = frozenset({"RTX", "GTX", "Quadro", "Radeon", "Instinct", "Arc"})
"""First words of names that can go where there is no room: the model says the rest."""
_WIDE_VRAM = 28
"""From this width the VRAM column names its unit."""


def short_gpu_name(name: Maybe[str]) -> str:
    """`NVIDIA GeForce RTX 4090` -> `RTX 4090`."""
    if isinstance(name, Unknown):
        return DASH
    text = strip_maker(clean(name))
    words = [word for word in text.split() if not _is_memory_word(word) and word != "Generation"]
    return " ".join(words).removesuffix("-80GB").removesuffix("-40GB") or text


def _is_memory_word(word: str) -> bool:
    """`80GB`, `HBM3`: the figures beside the name say it better."""
    return word.startswith("HBM") or (word.endswith("GB") and word[:-2].isdecimal())


def gpu_name(view: MachineView, card: GpuCard, width: int) -> Cells:
    mig = f" {view.layout.glyphs.dot} MIG" if card.is_mig else ""
    number = Cell(f"   {card.index:>2} ", "dim")
    name = f"{short_gpu_name(card.name)}{mig}"
    line, _, model = name.partition(" ")
    if line in _LINES and len(number.text) + cell_width(name) > width:
        name = model
    return (number, Cell(name, "dim" if view.is_gpu_stale else "plain"))


def gpu_heat(view: MachineView, card: GpuCard, width: int) -> Cells:
    """Temperature and power where they have no column of their own; a fault instead of both."""
    if card.fault is not None:
        return (Cell(f"{view.layout.glyphs.unhealthy} {card.fault.code.replace('_', ' ')}", "bad"),)
    if card.index in view.snapshot.machine.disabled_gpus:
        return (Cell("disabled", "dim"),)
    if width < 8 or view.layout.has("temp"):
        return NOTHING
    parts: list[Cells] = []
    if not isinstance(card.temperature_c, Unknown):
        tone = tone_for(card.temperature_c, view.layout.thresholds.temperature)
        parts.append((Cell(celsius(card.temperature_c), tone if tone != "good" else "dim"),))
    if not isinstance(card.power_w, Unknown):
        parts.append(gpu_power(view, card, width))
    return join_cells(parts, " ", "dim")


def vram(view: MachineView, width: int) -> Cells:
    """Bar and figures of all cards together."""
    if view.has_no_gpu:
        return (Cell("cpu only", "dim"),)
    sums = view.vram
    if sums.card_count == 0 and isinstance(sums.total_mib, Unknown):
        return (Cell("no GPU reading" if view.snapshot.gpu is not None else DASH, "unknown"),)
    return _memory_cells(view, sums.used_mib, sums.total_mib, width, is_unified=view.is_unified)


def gpu_vram(view: MachineView, card: GpuCard, width: int) -> Cells:
    memory = card_memory(view.snapshot, card)
    return _memory_cells(
        view, memory.used_mib, memory.total_mib, width, is_unified=card.is_unified, is_gpu=True
    )


def _memory_cells(
    view: MachineView,
    used: Maybe[int],
    total: Maybe[int],
    width: int,
    *,
    is_unified: bool,
    is_gpu: bool = False,
) -> Cells:
    is_wide = width >= _WIDE_VRAM
    figures_width = 15 if is_wide else 10
    left = gib_text(used) if is_wide else gib_short(used)
    right = gib_short(total) if is_unified or not is_wide else gib_text(total)
    figures = f"{left:>4}/{right}"
    if is_wide:
        figures += " shared" if is_unified else "" if is_gpu else " GiB"
    fraction = fraction_of(used, total)
    glyphs = view.layout.glyphs
    parts = glyphs.card_bar_parts if is_gpu else glyphs.bar_parts
    bar_width = max(4, width - figures_width - 1)
    bar = bar_cells(fraction, bar_width, view.layout.thresholds.memory, glyphs, parts)
    tone: Tone = "unknown" if isinstance(used, Unknown) else "plain"
    cells = (*bar, Cell(f" {figures}", tone))
    return dimmed(cells) if view.is_gpu_stale else cells


def utilisation(view: MachineView, width: int) -> Cells:
    if view.has_no_gpu:
        return NOTHING
    return _utilisation_cells(view, mean_utilisation(view.snapshot), width)


def gpu_utilisation(view: MachineView, card: GpuCard, width: int) -> Cells:
    return _utilisation_cells(view, card.utilisation_percent, width)


def _utilisation_cells(view: MachineView, value: Maybe[float], width: int) -> Cells:
    tone = "dim" if view.is_gpu_stale else tone_for(value, view.layout.thresholds.utilisation)
    return (Cell(percent(value, width), tone),)


def trend(view: MachineView, width: int) -> Cells:
    """The mean over the cards."""
    return NOTHING if view.has_no_gpu else _trend_cells(view, None, width)


def gpu_trend(view: MachineView, card: GpuCard, width: int) -> Cells:
    return _trend_cells(view, card, width)


def _trend_cells(view: MachineView, card: GpuCard | None, width: int) -> Cells:
    if view.trend_of is None:
        return NOTHING
    values, layout = view.trend_of(view.snapshot, card, width), view.layout
    return spark_cells(
        values, width, layout.thresholds.utilisation, layout.glyphs, is_dim=view.is_gpu_stale, is_stacked=True
    )


def temperature(view: MachineView, width: int) -> Cells:
    return NOTHING if view.has_no_gpu else _temperature_cells(view, hottest_c(view.snapshot))


def gpu_temperature(view: MachineView, card: GpuCard, width: int) -> Cells:
    return _temperature_cells(view, card.temperature_c)


def _temperature_cells(view: MachineView, value: Maybe[int]) -> Cells:
    tone = tone_for(value, view.layout.thresholds.temperature)
    tone = "dim" if view.is_gpu_stale else "plain" if tone == "good" else tone
    return (Cell(celsius(value), tone),)


def power(view: MachineView, width: int) -> Cells:
    return NOTHING if view.has_no_gpu else _power_cells(view, total_power_w(view.snapshot))


def gpu_power(view: MachineView, card: GpuCard, width: int) -> Cells:
    """Watts as reported; an implausible figure is marked, and no sum has it."""
    cells = _power_cells(view, card.power_w)
    return (Cell(f"{cells[0].text}!", "warn"),) if "power_w" in card.suspect else cells


def _power_cells(view: MachineView, value: Maybe[float]) -> Cells:
    if isinstance(value, Unknown):
        return UNKNOWN
    return (Cell(watts(value), "dim"),)


def models(view: MachineView, width: int) -> Cells:
    """As many copies as fit, then a count; of an expanded machine the count, its copies stand below."""
    snapshot = view.snapshot
    if snapshot.engines and all(isinstance(engine.loaded, Unknown) for engine in snapshot.engines):
        return (Cell(f"{snapshot.engines[0].kind} {snapshot.engines[0].state.replace('_', ' ')}", "warn"),)
    if not snapshot.engines:
        return UNKNOWN
    if view.is_expanded:
        copies = snapshot.loaded
        return (Cell(count(len(copies), "copy", "copies"), "dim"),) if copies else NOTHING
    joined = _copies_that_fit(view, width)
    return dimmed(joined) if view.is_engine_stale else joined


def _copies_that_fit(view: MachineView, width: int) -> Cells:
    """All copies with less and less said of each until they fit; where even names do not, a count."""
    is_cpu_normal = view.has_no_gpu
    copies = [
        copy_words(copy, view.now, is_cpu_normal=is_cpu_normal)
        for copy in ordered_copies(view.snapshot.loaded)
    ]
    for detail in DETAILS:
        parts = [copy.cells(detail) for copy in copies]
        if sum(map(width_of, parts)) + len(_COMMA) * (len(parts) - 1) <= width:
            return join_cells(parts, _COMMA)
    ellipsis = view.layout.glyphs.ellipsis
    if len(copies) == 1:
        return fit_cells(parts[0], width, "left", ellipsis)
    for kept in range(len(copies) - 1, 0, -1):
        shown = join_cells([*parts[:kept], (Cell(f"+{len(copies) - kept}", "dim"),)], _COMMA)
        if width_of(shown) <= width:
            return shown
    more = Cell(f", +{len(copies) - 1}", "dim")
    return (*fit_cells(parts[0], max(0, width - len(more.text)), "left", ellipsis), more)
