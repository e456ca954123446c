"""What stands in each column: of a machine's own line and of the lines of its GPUs."""

from __future__ import annotations

from fleettui.model.readings import GpuCard
from fleettui.model.snapshot import Health, Severity
from fleettui.model.unknown import Maybe, Unknown, known_or
from fleettui.model.vram import card_memory
from fleettui.view.bars import bar_cells, tone_for
from fleettui.view.cells import NOTHING, Cell, Cells, Tone, dimmed, fit_cells, join_cells, width_of
from fleettui.view.copies import DETAILS, copy_cells
from fleettui.view.figures import fullest_disk_percent, hottest_c, mean_utilisation, net_rates, total_power_w
from fleettui.view.flags import flag_cells
from fleettui.view.machine_view import MachineView
from fleettui.view.text import clean
from fleettui.view.units import DASH, gib_short, gib_text, kib_gib, percent
from fleettui.view.units import age as age_text

HEALTH_TONES: dict[Health, Tone] = {
    "healthy": "good",
    "degraded": "warn",
    "unhealthy": "bad",
    "offline": "bad",
    "unknown": "dim",
}
SEVERITY_TONES: dict[Severity, Tone] = {
    "offline": "bad",
    "unhealthy": "bad",
    "degraded": "warn",
    "note": "dim",
}
UNKNOWN = (Cell(DASH, "unknown"),)
_NAME_PREFIXES = ("NVIDIA GeForce ", "NVIDIA ", "GeForce ", "Quadro ", "Tesla ")
_WIDE_VRAM = 28
"""From this width the VRAM column names its unit."""


def short_gpu_name(name: Maybe[str]) -> str:
    """`NVIDIA GeForce RTX 4090` -> `RTX 4090`."""
    if isinstance(name, Unknown):
        return DASH
    text = clean(name)
    for prefix in _NAME_PREFIXES:
        if text.startswith(prefix) and len(text) > len(prefix):
            text = text[len(prefix) :]
            break
    words = [word for word in text.split() if not _is_memory_word(word) and word != "Generation"]
    return " ".join(words).removesuffix("-80GB").removesuffix("-40GB") or text


def _is_memory_word(word: str) -> bool:
    """`80GB`, `HBM3`: the figures beside the name say it better."""
    return word.startswith("HBM") or (word.endswith("GB") and word[:-2].isdecimal())


def machine_name(view: MachineView, width: int) -> Cells:
    glyphs = view.layout.glyphs
    mark = glyphs.expanded if view.is_expanded else glyphs.collapsed
    tone: Tone = "dim" if view.is_stale else "strong"
    return (Cell(f" {mark} ", "faint"), Cell(clean(view.snapshot.name), tone))


def gpu_name(view: MachineView, card: GpuCard, width: int) -> Cells:
    name = Cell(f" {short_gpu_name(card.name)}", "dim" if view.is_gpu_stale else "plain")
    return (Cell(f"   {card.index:>2}", "dim"), name)


def health(view: MachineView, width: int) -> Cells:
    """Sign and word; a flag behind them marks maintenance and drain. Offline in maintenance is expected."""
    snapshot, glyphs = view.snapshot, view.layout.glyphs
    tone, word, sign = HEALTH_TONES[snapshot.health], snapshot.health, glyphs.of_health(snapshot.health)
    words: str = word
    if snapshot.trust != "approved":
        words = snapshot.trust.replace("_", " ")
        tone = "bad" if snapshot.trust == "key_changed" else "warn" if snapshot.trust == "pending" else "dim"
    is_flagged = snapshot.maintenance is not None or snapshot.drain is not None
    if word == "offline" and is_flagged:
        tone = "dim"
    if width < 8:
        return (Cell(sign, tone),)
    cells = (Cell(f"{sign} {words}", tone),)
    return (*cells, Cell(f" {glyphs.flag}", "accent")) if is_flagged else cells


def gpu_heat(view: MachineView, card: GpuCard, width: int) -> Cells:
    """Temperature and power where they have no column of their own; a fault instead of both."""
    if card.fault is not None:
        return (Cell(f"{view.layout.glyphs.unhealthy} {card.fault.code.replace('_', ' ')}", "bad"),)
    if card.index in view.snapshot.machine.disabled_gpus:
        return (Cell("disabled", "dim"),)
    if width < 8 or view.layout.has("temp"):
        return NOTHING
    parts = []
    if not isinstance(card.temperature_c, Unknown):
        tone = tone_for(card.temperature_c, view.layout.thresholds.temperature)
        parts.append((Cell(f"{card.temperature_c}°C", tone if tone != "good" else "dim"),))
    if not isinstance(card.power_w, Unknown):
        parts.append((Cell(f"{card.power_w:.0f} W", "dim"),))
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
    fraction = None
    if not isinstance(used, Unknown) and not isinstance(total, Unknown) and total > 0:
        fraction = used / total
    bar = bar_cells(
        fraction, max(4, width - figures_width - 1), view.layout.thresholds.memory, view.layout.glyphs
    )
    tone: Tone = "unknown" if isinstance(used, Unknown) else "plain"
    cells = (*bar, Cell(f" {figures}", tone))
    return dimmed(cells) if view.is_gpu_stale else cells


def utilisation(view: MachineView, width: int) -> Cells:
    if view.has_no_gpu:
        return NOTHING
    return _utilisation_cells(view, mean_utilisation(view.snapshot))


def gpu_utilisation(view: MachineView, card: GpuCard, width: int) -> Cells:
    return _utilisation_cells(view, card.utilisation_percent)


def _utilisation_cells(view: MachineView, value: Maybe[float]) -> Cells:
    tone = "dim" if view.is_gpu_stale else tone_for(value, view.layout.thresholds.utilisation)
    return (Cell(percent(value), tone),)


def temperature(view: MachineView, width: int) -> Cells:
    return NOTHING if view.has_no_gpu else _temperature_cells(view, hottest_c(view.snapshot))


def gpu_temperature(view: MachineView, card: GpuCard, width: int) -> Cells:
    return _temperature_cells(view, card.temperature_c)


def _temperature_cells(view: MachineView, value: Maybe[int]) -> Cells:
    tone = tone_for(value, view.layout.thresholds.temperature)
    tone = "dim" if view.is_gpu_stale else "plain" if tone == "good" else tone
    return (Cell(DASH if isinstance(value, Unknown) else str(value), tone),)


def power(view: MachineView, width: int) -> Cells:
    return NOTHING if view.has_no_gpu else _power_cells(view, total_power_w(view.snapshot))


def gpu_power(view: MachineView, card: GpuCard, width: int) -> Cells:
    return _power_cells(view, card.power_w)


def _power_cells(view: MachineView, value: Maybe[float]) -> Cells:
    if isinstance(value, Unknown):
        return UNKNOWN
    return (Cell(f"{value:.0f} W", "dim"),)


def models(view: MachineView, width: int) -> Cells:
    """As many copies as fit, then a count; what is slow or stopping comes first to the eye by its tone."""
    snapshot = view.snapshot
    if snapshot.engines and all(isinstance(engine.loaded, Unknown) for engine in snapshot.engines):
        return (Cell(f"{snapshot.engines[0].kind} {snapshot.engines[0].state.replace('_', ' ')}", "warn"),)
    if not snapshot.engines:
        return UNKNOWN
    joined = _copies_that_fit(view, width)
    return dimmed(joined) if view.is_engine_stale else joined


def _copies_that_fit(view: MachineView, width: int) -> Cells:
    """All copies with less and less said of each until they fit; where even names do not, a count."""
    copies = sorted(view.snapshot.loaded, key=lambda copy: -known_or(copy.size_bytes, 0))
    is_cpu_normal = view.has_no_gpu
    for detail in DETAILS:
        parts = [copy_cells(copy, view.now, detail, is_cpu_normal=is_cpu_normal) for copy in copies]
        joined = join_cells(parts, ", ")
        if width_of(joined) <= width:
            return joined
    ellipsis = view.layout.glyphs.ellipsis
    if len(copies) == 1:
        return fit_cells(joined, width, "left", ellipsis)
    for kept in range(len(copies) - 1, 0, -1):
        shown = join_cells([*parts[:kept], (Cell(f"+{len(copies) - kept}", "dim"),)], ", ")
        if width_of(shown) <= width:
            return shown
    more = Cell(f", +{len(copies) - 1}", "dim")
    return (*fit_cells(parts[0], max(0, width - len(more.text)), "left", ellipsis), more)


def gpu_models(view: MachineView, card: GpuCard, width: int) -> Cells:
    """Copies that processes prove to lie on the card, with what they take there."""
    parts = [
        (
            Cell(clean(share.copy.name), "plain"),
            Cell("" if isinstance(share.used_mib, Unknown) else f" {gib_text(share.used_mib)}", "dim"),
        )
        for share in view.shares
        if share.gpu_index == card.index
    ]
    joined = join_cells(parts, ", ")
    return dimmed(joined) if view.is_gpu_stale else joined


def cpu(view: MachineView, width: int) -> Cells:
    reading = view.snapshot.cpu
    if reading is None or isinstance(reading.busy_percent, Unknown):
        return UNKNOWN
    return (Cell(percent(reading.busy_percent), "dim" if view.is_stale else "plain"),)


def ram(view: MachineView, width: int) -> Cells:
    memory = view.snapshot.memory
    if memory is None or isinstance(memory.total_kib, Unknown):
        return UNKNOWN
    text = f"{kib_gib(memory.used_kib)}/{kib_gib(memory.total_kib)}"
    if view.is_stale or isinstance(memory.used_kib, Unknown):
        return (Cell(text, "dim"),)
    tone = tone_for(memory.used_kib * 100 / max(1, memory.total_kib), view.layout.thresholds.memory)
    return (Cell(text, "plain" if tone == "good" else tone),)


def disk(view: MachineView, width: int) -> Cells:
    full = fullest_disk_percent(view.snapshot)
    if isinstance(full, Unknown):
        return UNKNOWN
    return (Cell(percent(full), "warn" if full > 95 else "dim"),)


def net(view: MachineView, width: int) -> Cells:
    received, sent = net_rates(view.snapshot)
    if isinstance(received, Unknown) and isinstance(sent, Unknown):
        return UNKNOWN
    glyphs = view.layout.glyphs
    return (Cell(f"{glyphs.down}{_megabytes(received)} {glyphs.up}{_megabytes(sent)}", "dim"),)


def _megabytes(value: Maybe[float]) -> str:
    if isinstance(value, Unknown):
        return DASH
    return f"{value / 1e6:.1f}" if value < 99.95e6 else f"{value / 1e6:.0f}"


def age(view: MachineView, width: int) -> Cells:
    """`now` while the machine keeps its pace: a line whose values stay is not painted again for its age."""
    seconds = view.age_s
    if seconds is None:
        return UNKNOWN
    if view.is_answering and seconds <= view.layout.fresh_s:
        return (Cell("now", "dim"),)
    return (Cell(age_text(seconds), "warn" if view.is_answering else "dim"),)


def note(view: MachineView, width: int) -> Cells:
    """Flags, then the most severe reason and how many more there are."""
    parts = [*flag_cells(view.snapshot, view.now, view.layout)]
    reasons = view.snapshot.reasons
    if reasons and not view.is_expanded:  # an expanded machine has a line for each of them
        more = f" (+{len(reasons) - 1})" if len(reasons) > 1 else ""
        first = Cell(clean(reasons[0].text), SEVERITY_TONES[reasons[0].severity])
        room = width - width_of(join_cells(parts, "  ")) - (2 if parts else 0) - len(more)
        ellipsis = view.layout.glyphs.ellipsis
        shown = (
            (first,) if width_of((first,)) <= room else fit_cells((first,), max(0, room), "left", ellipsis)
        )
        parts.append((*shown, Cell(more, "dim")) if more else shown)
    return join_cells(parts, "  ")


def gpu_note(view: MachineView, card: GpuCard, width: int) -> Cells:
    """A fault in words; processes of others."""
    if card.fault is not None:
        return (Cell(clean(card.fault.text), "bad"),)
    processes = view.snapshot.processes
    if processes is None:
        return NOTHING
    proven = {share.pid for share in view.shares}
    others = [
        process
        for process in processes.processes
        if process.gpu_uuid == card.uuid and process.pid not in proven
    ]
    parts = []
    for process in others:
        size = "" if isinstance(process.used_mib, Unknown) else f" {gib_text(process.used_mib)}"
        user = "" if isinstance(process.user, Unknown) else f" ({clean(process.user)})"
        parts.append((Cell(f"{clean(process.short_name)}{size}{user}", "dim"),))
    return join_cells(parts, ", ")


def blank_gpu(view: MachineView, card: GpuCard, width: int) -> Cells:
    """A column that says nothing of a single GPU."""
    return NOTHING
