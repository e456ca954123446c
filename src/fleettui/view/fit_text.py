"""`fleettui fit` as text: a row for each machine, what it is told beside, and how the figures are made."""

from __future__ import annotations

from fleettui.model.fit import FitReport, MachineFit
from fleettui.model.fit_verdict import FitVerdict
from fleettui.model.route import EXIT_NO_DATA, EXIT_UNKNOWN_MODEL
from fleettui.model.unknown import Unknown
from fleettui.view.cells import Cell, Cells, Tone, text_of
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.text import cell_width, clean, clip, fit, wrap
from fleettui.view.units import bytes_gib, count

PIPE_WIDTH = 120
"""Columns where there is no terminal."""
_NAME_MAX = 20
_LEAST_HOW = 24
"""Columns; a terminal with less has the column wrapped below each row."""
_FIGURE = 6
_TONES: dict[FitVerdict, Tone] = {
    "one_gpu": "good",
    "several_gpus": "good",
    "evictions": "warn",
    "cpu_offload": "warn",
    "no": "bad",
    "unknown": "dim",
}
_BASIS_WORDS = {"measured": "", "other machine": "", "tensors": "tensors: ", "catalog": "", "file size": ""}
"""Most texts name their basis themselves."""


def fit_lines(report: FitReport, width: int | None = None, glyphs: Glyphs = UNICODE) -> list[Cells]:
    """Headline, a row for each machine with notes below, how need and prediction are made."""
    total = max(width or PIPE_WIDTH, 60)
    lines: list[Cells] = [*_wrapped(_headline(report), "", total, "strong"), ()]
    if not report.machines or report.exit_code == EXIT_UNKNOWN_MODEL:
        return lines[:1]
    names = [cell_width(clean(item.machine)) for item in report.machines]
    layout = _Layout(min(max(*names, len("MACHINE")), _NAME_MAX, max(8, total - 60)), total, glyphs)
    told = [item for item in report.machines if item.has_data]
    first = told[0].notes if len(told) > 1 else ()
    shared = tuple(note for note in first if all(note in item.notes for item in told))
    lines.append(layout.header())
    for item in report.machines:
        lines += layout.rows(item, shared)
    lines.append(())
    for note in shared:
        lines += _wrapped(f"each machine: {clean(note)}", "", total, "dim")
    lines += [*_need_lines(report, total), *_forecast_lines(report, total)]
    plain = [tuple(Cell(glyphs.plain(cell.text), cell.tone) for cell in line) for line in lines]
    return [_cut(line, total, glyphs) for line in plain]


def conclusion(report: FitReport) -> str:
    """What a failure means; nothing after a success."""
    asked = repr(clean(report.query.model))
    if report.exit_code == EXIT_UNKNOWN_MODEL:
        nearest = f"; nearest: {', '.join(map(clean, report.nearest))}" if report.nearest else ""
        return f"nothing is known of {asked}: no machine has it, no file and no catalog names it{nearest}"
    if report.exit_code == EXIT_NO_DATA:
        return f"no machine gave usable data, so nobody knows where {asked} fits; check the network"
    if report.exit_code:
        return f"{asked} fits on no machine now"
    return ""


def _headline(report: FitReport) -> str:
    query = report.query
    context = "the context each server is set to" if query.context is None else f"context {query.context}"
    told = [item for item in report.machines if item.has_data]
    ages = [item.age_s for item in told if item.age_s is not None]
    data = f", data {max(ages):.1f} s old" if ages else ""
    parallel = "" if query.parallel is None else f" x {query.parallel}"
    machines = count(len(told), "machine")
    drift = "; machines hold different weights of that name" if report.has_drift else ""
    return f"fit {clean(query.model)}  ({context}{parallel}; {machines}{data}{drift})"


class _Layout:
    """Columns of the rows: sign, machine, verdict, need, free, prediction, how."""

    def __init__(self, name_width: int, total: int, glyphs: Glyphs) -> None:
        self._name = name_width
        self._total = total
        self._glyphs = glyphs
        self._verdict = 16
        self._how_at = 2 + name_width + 2 + self._verdict + 3 * (_FIGURE + 2) + 2
        self._is_wrapped = total - self._how_at < _LEAST_HOW

    def header(self) -> Cells:
        figures = "".join(f"  {title:>{_FIGURE}}" for title in ("NEED", "FREE", "OLLAMA"))
        how = "" if self._is_wrapped else "  HOW"
        text = f"  {fit('MACHINE', self._name)}  {fit('FITS', self._verdict)}{figures}{how}  (GiB)"
        return (Cell(text.rstrip(), "title"),)

    def rows(self, item: MachineFit, shared: tuple[str, ...]) -> list[Cells]:
        """The row of a machine, and its notes but for those that every machine has."""
        tone = _TONES[item.verdict]
        figures = "".join(f"  {text:>{_FIGURE}}" for text in _figures(item))
        how = _how(item)
        width = self._total - self._how_at
        parts = [] if not how else [how] if self._is_wrapped else wrap(how, width)
        row: list[Cell] = [
            Cell(f"{self._sign(item.verdict)} ", tone),
            Cell(f"{fit(clean(item.machine), self._name)}  ", "strong"),
            Cell(fit(_verdict(item), self._verdict), tone),
            Cell(figures),
        ]
        if parts and not self._is_wrapped:
            row.append(Cell(f"  {parts[0]}"))
        indent = " " * (self._how_at if not self._is_wrapped else 4)
        below = parts[1:] if not self._is_wrapped else wrap(how, self._total - 4) if how else []
        lines: list[Cells] = [tuple(row), *((Cell(indent + part),) for part in below)]
        for note in item.notes:
            if note not in shared:
                lines += _wrapped(clean(note), "    - ", self._total, "dim")
        return lines

    def _sign(self, verdict: FitVerdict) -> str:
        glyphs = self._glyphs
        if verdict in ("one_gpu", "several_gpus"):
            return glyphs.healthy
        if verdict in ("evictions", "cpu_offload"):
            return glyphs.degraded
        return glyphs.offline if verdict == "no" else glyphs.unknown


def _verdict(item: MachineFit) -> str:
    if item.verdict == "several_gpus":
        return f"on {len(item.gpus)} GPUs"
    if item.verdict == "cpu_offload":
        return "with CPU offload" if item.has_gpu else "on the CPU only"
    return {"one_gpu": "on one GPU", "evictions": "with evictions", "no": "no", "unknown": "not known"}[
        item.verdict
    ]


def _figures(item: MachineFit) -> tuple[str, str, str]:
    """Need, free VRAM, prediction; nothing where they mean nothing."""
    predicted = "" if item.forecast is None else bytes_gib(item.forecast.predicted_bytes)
    if item.need is None:
        return "", "", predicted
    needed = item.needed_bytes or item.need.shared_bytes + item.need.per_gpu_bytes
    free = bytes_gib(item.free_bytes) if item.gpus or item.free_bytes else ""
    return bytes_gib(needed), free, predicted


def _how(item: MachineFit) -> str:
    """Where it lies, what goes for it, what does not fit; or why nothing is known."""
    words = [] if item.is_installed or not item.has_data else ["not installed"]
    if item.verdict == "unknown":
        return "; ".join([clean(item.text), *words])
    if item.gpus and item.has_gpu:
        words.insert(0, _gpus(item.gpus))
    if item.evicted:
        words.append(f"evicts {', '.join(map(clean, item.evicted))}")
    if item.ram_bytes:
        where = "in main memory" if item.verdict == "cpu_offload" else "more than main memory has"
        words.append(f"{bytes_gib(item.ram_bytes)} {where}")
    if item.resident_context is not None:
        context = item.resident_context
        words.append("resident" if isinstance(context, Unknown) else f"resident with ctx {context}")
    return "; ".join(words)


def _gpus(indexes: tuple[int, ...]) -> str:
    return f"GPU {indexes[0]}" if len(indexes) == 1 else f"GPUs {', '.join(map(str, indexes))}"


def _need_lines(report: FitReport, total: int) -> list[Cells]:
    """Each way in which the need was found, with the machines it is true of."""
    found: dict[str, list[str]] = {}
    for item in report.machines:
        need = item.need
        if item.has_data and need is not None:
            words = f"{_BASIS_WORDS[need.basis]}{need.text}"
            follows_context = need.basis not in ("catalog", "file size")
            if item.use is not None and item.use.context_basis != "asked for" and follows_context:
                words += f"; ctx {item.use.context_basis}"
            found.setdefault(words, []).append(item.machine)
    if not found:
        return []
    lines: list[Cells] = [(Cell("need", "title"),)]
    everywhere = len(found) == 1
    for words, machines in found.items():
        head = "" if everywhere else f"{', '.join(map(clean, machines))}: "
        lines += _wrapped(f"{head}{words}", "  ", total, "plain")
    return lines


def _forecast_lines(report: FitReport, total: int) -> list[Cells]:
    """What Ollama counts, and what it does by it."""
    found: dict[str, set[int]] = {}
    for item in report.machines:
        told = item.forecast
        if told is not None:
            file = bytes_gib(told.predicted_bytes - told.kv_bytes)
            found.setdefault(file, set()).add(told.kv_bytes)
    if not found:
        return []
    parts = [
        f"file {file} + f16 cache {', '.join(bytes_gib(size) for size in sorted(caches))}"
        for file, caches in found.items()
    ]
    rule = "where that is more than 80 % of free VRAM it evicts or spreads, whatever the model really takes"
    words = f"{' or '.join(parts)} GiB; {rule}"
    return [(Cell("Ollama predicts", "title"),), *_wrapped(words, "  ", total, "plain")]


def _wrapped(text: str, indent: str, total: int, tone: Tone) -> list[Cells]:
    """Lines of at most `total` columns; the first begins with `indent`, the others as far in."""
    rest = " " * len(indent)
    parts = wrap(text, max(20, total - len(indent)))
    return [(Cell((rest if at else indent) + part, tone),) for at, part in enumerate(parts)]


def _cut(line: Cells, total: int, glyphs: Glyphs) -> Cells:
    """No line is wider than the terminal, whatever a name holds."""
    if cell_width(text_of(line).rstrip()) <= total:
        return line
    left, kept = total, []
    for cell in line:
        text = cell.text if cell_width(cell.text) <= left else clip(cell.text, left, glyphs.ellipsis)
        kept.append(Cell(text, cell.tone))
        left -= cell_width(text)
        if left <= 0:
            break
    return tuple(kept)
