"""A stand-in for nvidia-smi: a shell script that answers any query from a table, as one driver would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from loop_runner import write_tool

CARD = {
    "index": "0",
    "uuid": "GPU-000000a0-0000-4000-8000-0000000000a0",
    "name": "NVIDIA H100 80GB HBM3",
    "driver_version": "570.195.03",
    "memory.total": "81559",
    "memory.used": "11125",
    "memory.free": "69956",
    "utilization.gpu": "97",
    "temperature.gpu": "53",
    "power.draw": "433.78",
    "power.limit": "700.00",
    "fan.speed": "[N/A]",
    "pstate": "P0",
    "pci.bus_id": "00000000:3B:00.0",
    "gpu_recovery_action": "None",
    "mig.mode.current": "Disabled",
    "persistence_mode": "Enabled",
    "pcie.link.width.current": "16",
    "pcie.link.width.max": "16",
    "pcie.link.gen.current": "5",
    "pcie.link.gen.max": "5",
    "ecc.errors.uncorrected.volatile.total": "0",
    "ecc.errors.corrected.volatile.total": "0",
    "retired_pages.pending": "[N/A]",
    "clocks_event_reasons.active": "0x0000000000000000",
    "clocks_throttle_reasons.active": "0x0000000000000000",
    "addressing_mode": "HMM",
    "compute_cap": "9.0",
}
"""Every field of one card of a new driver."""

NEW_FIELDS = (
    "gpu_recovery_action", "addressing_mode", "compute_cap", "clocks_event_reasons.active",
    "mig.mode.current",
)  # fmt: skip
"""What a driver of the 440 branch refuses."""


def write_smi(
    folder: Path,
    cards: Sequence[Mapping[str, str]] = (CARD,),
    *,
    refuses: Sequence[str] = (),
    before: str = "",
    after: str = "",
    apps: str = "",
    listed: str = "",
    xml: str = "",
    version: str = "",
) -> Path:
    """Write `folder/nvidia-smi`. `before`, `after`: shell text that runs around each query of cards."""
    rows = []
    for card in cards:
        known = [f"{name}) v='{value}';;" for name, value in card.items() if name not in refuses]
        rows.append(
            'line=; rest=$fields,; while [ -n "$rest" ]; do f=${rest%%,*}; rest=${rest#*,}; case $f in '
            + " ".join(known)
            + ' *) echo "Field \\"$f\\" is not a valid field to query."; exit 2;; esac;'
            + ' line="$line, $v"; done; echo "${line#, }"'
        )
    texts = {"apps": apps, "list": listed, "xml": xml, "version": version}
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"smi-{name}").write_text(text)
    body = "\n".join([
        "fields=; kind=;",
        "for w; do case $w in",
        "  --query-gpu=*) kind=gpu; fields=${w#*=};;",
        "  --query-compute-apps=*) kind=apps;;",
        "  -L) kind=list;; -x) kind=xml;; --version) kind=version;;",
        "esac; done",
        f'echo "$kind $fields" >>{folder}/smi-calls',
        f'[ "$kind" = gpu ] || {{ cat {folder}/smi-$kind; exit; }}',
        before,
        *rows,
        after,
    ])  # fmt: skip
    return write_tool(folder, "nvidia-smi", body)


def calls(folder: Path, kind: str) -> list[str]:
    """The calls of one kind so far: the fields of each."""
    path = folder / "smi-calls"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line.partition(" ")[2] for line in lines if line.split(" ")[0] == kind]


def suspend_card(folder: Path) -> tuple[Path, tuple[tuple[str, str]]]:
    """A card that sleeps: its runtime_status, and the change of a loop that then looks there."""
    status = folder / "nvidia" / "0000:01:00.0" / "power" / "runtime_status"
    status.parent.mkdir(parents=True)
    status.write_text("suspended\n")
    return status, (("/sys/bus/pci/drivers/nvidia", str(folder / "nvidia")),)
