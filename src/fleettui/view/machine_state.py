"""Health, connection and host key of one machine; where its figures come from; what its file says."""

from __future__ import annotations

from fleettui.model.clock import day_and_time, iso_utc
from fleettui.model.unknown import Unknown
from fleettui.view.cells import Cell, Cells, Tone, width_of
from fleettui.view.column_cells import HEALTH_TONES, SEVERITY_TONES
from fleettui.view.flags import flag_cells
from fleettui.view.machine_view import MachineView
from fleettui.view.tables import Line, fields, table
from fleettui.view.text import clean, wrap
from fleettui.view.trouble import next_try_text
from fleettui.view.units import DASH


def state_lines(view: MachineView) -> list[Line]:
    """Health with reasons, flags, the connection."""
    snapshot, glyphs, link = view.snapshot, view.layout.glyphs, view.snapshot.link
    tone = HEALTH_TONES[snapshot.health]
    trust = "" if snapshot.trust == "approved" else f" ({snapshot.trust.replace('_', ' ')})"
    since = view.age_text(view.age_s)
    heard = "never heard" if view.age_s is None else f"heard {since}" + ("" if since == "now" else " ago")
    first: Line = (
        Cell(f"{glyphs.of_health(snapshot.health)} {snapshot.health}{trust}", tone),
        Cell(f"  {heard}", "dim"),
    )
    lines = [first]
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
    text += next_try_text(view) if link.state == "failed" else ""
    joined: Line = (*first, Cell(f", {text}", "dim"))
    if len(lines) == 1 and width_of(joined) <= view.layout.width:
        return [joined]
    return [*lines, (Cell(text, "dim"),)]


def key_lines(view: MachineView) -> list[Line]:
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


def source_lines(view: MachineView) -> list[Line]:
    """Each source with its state and age."""
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


def file_lines(view: MachineView) -> list[Line]:
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
