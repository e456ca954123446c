"""`fleettui status` as plain text, in the tradition of gpustat: no colour, nothing but what was read."""

from __future__ import annotations

from typing import NamedTuple

from fleettui.model.gpu import GpuCard, is_on_card
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot, Reason
from fleettui.model.unknown import Unknown
from fleettui.model.vram import card_memory
from fleettui.view.cells import text_of
from fleettui.view.copies import copy_line_text, ordered_copies
from fleettui.view.flags import flag_texts
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.layout import Layout, make_layout
from fleettui.view.machine_view import MachineView
from fleettui.view.summary import summary_cells
from fleettui.view.text import cell_width, clean, clip, fit, wrap
from fleettui.view.trouble import trouble_cells, trust_steps
from fleettui.view.units import age, celsius, gib_text, kib_gib, percent_prose

_INDENT = "  "
_NAME_MAX = 40
_COPY_NAME_MAX = 26
_PIPE_WIDTH = 120
"""Columns that bars and the summary take where there is no terminal."""
_UNCUT = 10_000
_MIN_WRAP = 20
"""Narrower sentences are cut: wrapped they would fill the screen."""


def status_lines(
    fleet: FleetSnapshot, now: float, width: int | None = None, glyphs: Glyphs = UNICODE
) -> list[str]:
    """Summary, then each machine with GPUs, copies and reasons. `width`: columns of the terminal, where
    sentences wrap and figures are cut; None, where there is no terminal, cuts nothing."""
    layout = make_layout(
        max(width or _PIPE_WIDTH, 40), (), interval_s=fleet.interval_s, glyphs=glyphs, has_hints=False
    )
    names = [clean(snapshot.name) for snapshot in fleet.machines]
    name_width = min(max(map(cell_width, names), default=0), _NAME_MAX)
    copies = [clean(copy.name) for snapshot in fleet.machines for copy in snapshot.loaded]
    widths = _NameWidths(name_width, min(max(map(cell_width, copies), default=0), _COPY_NAME_MAX))
    lines = [_Line("", text_of(summary_cells(fleet, now, width or _PIPE_WIDTH, glyphs)))]
    for snapshot in fleet.machines:
        lines += [_Line("", ""), *_machine_lines(snapshot, now, layout, widths)]
    return [text for line in lines for text in _shaped(line, width, glyphs)]


class _NameWidths(NamedTuple):
    """Columns for names, the same on every machine."""

    machine: int
    copy: int


class _Line(NamedTuple):
    """One line before it meets the terminal's width."""

    head: str
    text: str
    is_sentence: bool = False
    """Wraps beside its head; else it is cut."""


def _shaped(line: _Line, width: int | None, glyphs: Glyphs) -> list[str]:
    head, text = glyphs.plain(line.head), glyphs.plain(line.text)
    if width is None or cell_width(head + text.rstrip()) <= width:
        return [(head + text).rstrip()]
    indent = cell_width(head)
    if not line.is_sentence or width - indent < _MIN_WRAP:
        return [clip(head + text, width, glyphs.ellipsis).rstrip()]
    first, *rest = wrap(text, width - indent)
    return [head + first, *(" " * indent + part for part in rest)]


def _machine_lines(snapshot: MachineSnapshot, now: float, layout: Layout, widths: _NameWidths) -> list[_Line]:
    """All lines of one machine."""
    view = MachineView(snapshot, now, layout)
    lines = [_machine_line(view, widths.machine)]
    lines += [_Line(f"{_INDENT}{layout.glyphs.dot} ", step, True) for step in trust_steps(snapshot)]
    if snapshot.gpu is not None:
        lines += _gpu_lines(view)
    lines += _copy_lines(view, widths.copy)
    # Of an offline machine the line itself has the first reason, and that it is expected.
    reasons = snapshot.reasons if snapshot.health != "offline" else snapshot.reasons[1:]
    reasons = tuple(reason for reason in reasons if reason.code != "expected")
    if snapshot.trust == "approved":
        lines += [_reason_line(reason, layout.glyphs) for reason in reasons]
    return lines


def _machine_line(view: MachineView, name_width: int) -> _Line:
    """`ada  ● healthy   CPU 12 %  RAM 38/128 GiB  1s  ⚑ maintenance …`."""
    snapshot, glyphs = view.snapshot, view.layout.glyphs
    word = snapshot.health if snapshot.trust == "approved" else snapshot.trust.replace("_", " ")
    state = f"{glyphs.of_health(snapshot.health)} {word}"
    start = f"{fit(clean(snapshot.name), name_width)}  {state:<11}"
    if not view.is_answering:
        trouble = text_of(trouble_cells(view, _UNCUT))
        return _Line(f"{start}  ", "  ".join([trouble, *_seen(view), *_flags(view)]), True)
    parts = [start]
    cpu, memory = snapshot.cpu, snapshot.memory
    if cpu is not None and not isinstance(cpu.busy_percent, Unknown):
        parts.append(f"CPU {percent_prose(cpu.busy_percent):>5}")
    if memory is not None and not isinstance(memory.total_kib, Unknown):
        parts.append(f"RAM {kib_gib(memory.used_kib):>4}/{kib_gib(memory.total_kib)} GiB")
    if view.has_no_gpu:
        parts.append("cpu only")
    parts.append(view.age_text(view.age_s))
    if view.is_stale:
        parts.append("stale")
    return _Line("", "  ".join([*parts, *_flags(view)]))


def _seen(view: MachineView) -> list[str]:
    """`last seen 4m ago` of a machine that answered before."""
    return [] if view.age_s is None else [f"(last seen {age(view.age_s)} ago)"]


def _flags(view: MachineView) -> list[str]:
    return [f"{view.layout.glyphs.flag} {text}" for text in flag_texts(view.snapshot, view.now)]


def _gpu_lines(view: MachineView) -> list[_Line]:
    """`[0] NVIDIA GeForce RTX 4090 | 41 °C, 12 % | 18.2 / 24.0 GiB | llama3.1:70b 17.4`, columns aligned."""
    snapshot = view.snapshot
    cards = snapshot.gpu.cards if snapshot.gpu is not None else ()
    names = [clean(str(card.name)) for card in cards]
    name_width = max(map(cell_width, names), default=0)
    memories = [_memory_text(view, card) for card in cards]
    memory_width = max(map(cell_width, memories), default=0)
    index_width = max((len(str(card.index)) for card in cards), default=1)
    status = snapshot.sources.get("gpu")
    old = f" ({age(status.age_s(view.now))} old)" if status is not None and view.is_gpu_stale else ""
    lines = []
    for card, name, memory in zip(cards, names, memories, strict=True):
        heat, load = celsius(card.temperature_c), percent_prose(card.utilisation_percent)
        head = f"{_INDENT}[{card.index:>{index_width}}] {fit(name, name_width)} | {heat:>5}, {load:>5}"
        tail = [f"{fit(memory, memory_width)}{old}", *_card_notes(view, card)]
        lines.append(_Line("", " | ".join([head, *tail])))
    return lines


def _memory_text(view: MachineView, card: GpuCard) -> str:
    memory = card_memory(view.snapshot, card)
    used, total = gib_text(memory.used_mib), gib_text(memory.total_mib)
    return f"{used:>4} / {total} GiB" + (" shared" if card.is_unified else "")


def _card_notes(view: MachineView, card: GpuCard) -> list[str]:
    """What is proven to lie on the card, then processes of others, then what is wrong with it."""
    snapshot = view.snapshot
    shares = view.shares_on(card.index)
    words = [f"{clean(share.copy.name)} {gib_text(share.used_mib)}" for share in shares]
    proven = {share.pid for share in shares}
    for process in snapshot.processes.processes if snapshot.processes is not None else ():
        if is_on_card(process, card) and process.pid not in proven:
            user = "" if isinstance(process.user, Unknown) else f"{clean(process.user)}:"
            words.append(f"{user}{clean(process.short_name)} {gib_text(process.used_mib)}")
    notes = [", ".join(words)] if words else []
    if card.fault is not None:
        notes.append(clean(card.fault.text))
    if card.index in snapshot.machine.disabled_gpus:
        notes.append("disabled in the file")
    return notes


def _copy_lines(view: MachineView, width: int) -> list[_Line]:
    """A line for each copy: size, share on the GPU, time to expiry, context; a longer name shifts them."""
    copies = ordered_copies(view.snapshot.loaded)
    names = [clean(copy.name) for copy in copies]
    return [
        _Line("", f"{_INDENT}{name}{' ' * (width - cell_width(name))}  {copy_line_text(copy, view.now)}")
        for copy, name in zip(copies, names, strict=True)
    ]


def _reason_line(reason: Reason, glyphs: Glyphs) -> _Line:
    signs = {"offline": glyphs.offline, "unhealthy": glyphs.unhealthy, "degraded": glyphs.degraded}
    return _Line(f"{_INDENT}{signs.get(reason.severity, glyphs.dot)} ", clean(reason.text), True)
