"""Everything known of one machine, as titled sections of lines."""

from __future__ import annotations

from typing import NamedTuple

from fleettui.model.clock import day_and_time, iso_utc
from fleettui.model.machine import ConfigProblem
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown
from fleettui.view.cells import Cell, Cells, Tone, fit_cells, width_of
from fleettui.view.column_cells import HEALTH_TONES, SEVERITY_TONES
from fleettui.view.flags import flag_cells
from fleettui.view.layout import Layout
from fleettui.view.machine_gpus import gpu_lines, process_lines
from fleettui.view.machine_models import engine_lines, loaded_lines, model_lines
from fleettui.view.machine_system import disk_lines, machine_lines, net_lines
from fleettui.view.machine_view import MachineView
from fleettui.view.problems import problem_line
from fleettui.view.tables import Line, fields, table
from fleettui.view.text import clean, wrap
from fleettui.view.trouble import next_try_text
from fleettui.view.units import DASH


class Section(NamedTuple):
    """A title with its lines; each line fits the layout's width."""

    title: str
    lines: tuple[Line, ...]


def machine_page(
    snapshot: MachineSnapshot, now: float, layout: Layout, problems: tuple[ConfigProblem, ...] = ()
) -> tuple[Section, ...]:
    """The sections that have something to say, most urgent first. `problems`: of the whole fleet."""
    view = MachineView(snapshot, float(int(now)), layout, True)
    own = tuple(problem for problem in problems if problem.file == snapshot.machine.config_file)
    sections: list[tuple[str, list[Line]]] = [
        ("State", _state_lines(view)),
        ("Host key", _key_lines(view)),
        ("Problems in the file", [(Cell(problem_line(problem), "bad"),) for problem in own]),
        ("GPUs", gpu_lines(view)),
        ("GPU processes", process_lines(view)),
        ("Loaded models", loaded_lines(view)),
        ("Declared and installed models", model_lines(view)),
        ("Engines", engine_lines(view)),
        ("Machine", machine_lines(view)),
        ("Disks", disk_lines(view)),
        ("Network", net_lines(view)),
        ("Sources", _source_lines(view)),
        ("File", _file_lines(view)),
    ]
    return tuple(Section(title, tuple(_finish(layout, lines))) for title, lines in sections if lines)


def _finish(layout: Layout, lines: list[Line]) -> list[Line]:
    """No line wider than the layout, in the layout's signs."""
    finished = []
    for raw in lines:
        line = raw
        if layout.glyphs.is_ascii:
            line = tuple(Cell(layout.glyphs.plain(cell.text), cell.tone) for cell in raw)
        is_wide = width_of(line) > layout.width
        finished.append(fit_cells(line, layout.width, "left", layout.glyphs.ellipsis) if is_wide else line)
    return finished


def _state_lines(view: MachineView) -> list[Line]:
    """Health with reasons, flags, the connection."""
    snapshot, glyphs, link = view.snapshot, view.layout.glyphs, view.snapshot.link
    tone = HEALTH_TONES[snapshot.health]
    trust = "" if snapshot.trust == "approved" else f" ({snapshot.trust.replace('_', ' ')})"
    since = view.age_text(view.age_s)
    heard = "never heard" if view.age_s is None else f"heard {since}" + ("" if since == "now" else " ago")
    lines: list[Line] = [
        (
            Cell(f"{glyphs.of_health(snapshot.health)} {snapshot.health}{trust}", tone),
            Cell(f"  {heard}", "dim"),
        )
    ]
    for reason in snapshot.reasons:
        wrapped = wrap(clean(reason.text), max(20, view.layout.width - 4))
        lines += [(Cell(f"  {line}", SEVERITY_TONES[reason.severity]),) for line in wrapped]
    lines += flag_cells(snapshot, view.now, glyphs)
    where = clean(link.address or snapshot.machine.hostname)
    words = {"up": f"connected to {where}", "connecting": f"connecting to {where}", "never": "not asked yet"}
    text = words.get(link.state, f"not connected to {where}")
    if link.since is not None and link.state == "up":
        text += f" since {day_and_time(link.since, view.now, view.layout.utc_offset_s)}"
    if snapshot.machine.ssh.is_local:
        text = "this machine, asked without SSH"
    lines.append((Cell(text + (next_try_text(view) if link.state == "failed" else ""), "dim"),))
    return lines


def _key_lines(view: MachineView) -> list[Line]:
    """The host key that waits for the operator: offered and expected, whole."""
    offer = view.snapshot.link.offer
    if offer is None or view.snapshot.trust == "approved":
        return []
    rows: list[tuple[str, Cells]] = [
        ("offered", (Cell(f"{clean(offer.key_type)} {clean(offer.fingerprint)}", "strong"),)),
        ("code", (Cell(offer.code, "accent"), Cell("  the full fingerprint decides", "dim"))),
    ]
    rows += [("approved", (Cell(clean(known), "bad"),)) for known in offer.expected]
    rows.append(
        (
            "compare",
            (
                Cell("for f in /etc/ssh/ssh_host_*_key.pub; do ssh-keygen -lf $f; done"),
                Cell("  on the machine", "dim"),
            ),
        )
    )
    return fields(rows)


def _source_lines(view: MachineView) -> list[Line]:
    tones: dict[str, Tone] = {"ok": "good", "late": "warn", "error": "bad"}
    return table(
        (),
        [
            (
                (Cell(clean(name)),),
                (Cell(status.state, tones.get(status.state, "dim")),),
                (Cell(view.age_text(status.age_s(view.now)), "dim"),),
                (Cell(clean(status.error) if status.error else "", "warn"),),
            )
            for name, status in view.snapshot.sources.items()
        ],
    )


def _file_lines(view: MachineView) -> list[Line]:
    """Who it is, and every key of the file that the pages above do not show."""
    machine = view.snapshot.machine
    shown = {"name", "role", "hardware", "network", "models", "tags", "ssh", "engines", "storage_gb"}
    rows: list[tuple[str, Cells]] = [
        ("file", (Cell(clean(machine.config_file)),)),
        ("role", (Cell(clean(machine.role)),)),
        ("address", (Cell(clean(f"{machine.hostname}:{machine.port}")),)),
        ("tags", (Cell(clean(", ".join(machine.tags)) or DASH),)),
        ("hardware", (Cell(_hardware(view)),)),
    ]
    rows += [
        (clean(str(key)), (Cell(clean(str(value)), "dim"),))
        for key, value in machine.document.items()
        if key not in shown
    ]
    last = view.snapshot.last_seen
    rows.append(("last heard", (Cell(DASH if last is None else iso_utc(last), "dim"),)))
    return fields(rows)


def _hardware(view: MachineView) -> str:
    """What the file declares."""
    machine = view.snapshot.machine
    gpus = "GPUs not declared" if machine.gpus is None else "no GPU" if not machine.gpus else ""
    if machine.gpus:
        gpus = ", ".join(
            f"{clean(gpu.model)}" + ("" if isinstance(gpu.vram_gb, Unknown) else f" {gpu.vram_gb:g} GiB")
            for gpu in machine.gpus
        )
    parts = [
        "" if isinstance(machine.cpu, Unknown) else clean(machine.cpu),
        "" if isinstance(machine.ram_gb, Unknown) else f"{machine.ram_gb:g} GiB RAM",
        gpus,
        "" if isinstance(machine.storage_gb, Unknown) else f"{machine.storage_gb:g} GB storage",
    ]
    return ", ".join(part for part in parts if part)
