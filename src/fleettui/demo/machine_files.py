"""The folder of a demo fleet: machine files as an operator would write them, keys, and what to export."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fleettui.demo.fleet_plan import MachinePlan
from fleettui.demo.listeners import LOOPBACK


@dataclass(frozen=True, slots=True)
class FleetFolder:
    """Where things lie below the folder of a demo fleet."""

    root: Path

    @property
    def machines(self) -> Path:
        return self.root / "machines"

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def client_key(self) -> Path:
        return self.root / "client_key"

    @property
    def known_hosts(self) -> Path:
        return self.root / "known_hosts"

    @property
    def environment_file(self) -> Path:
        return self.root / "environment"

    def environment(self) -> dict[str, str]:
        """What another terminal exports to use this fleet."""
        return {"FLEETTUI_MACHINES": str(self.machines), "FLEETTUI_STATE_DIR": str(self.state)}

    def create(self, client_key: bytes) -> None:
        """Makes the folders and the client's key; nobody else may read them."""
        for folder in (self.root, self.machines, self.state):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for stale in self.machines.glob("*.yaml"):
            stale.unlink()
        self.client_key.unlink(missing_ok=True)
        self.client_key.touch(mode=0o600)
        self.client_key.write_bytes(client_key)
        lines = (f"export {name}={shlex.quote(value)}\n" for name, value in self.environment().items())
        self.environment_file.write_text("".join(lines))


def machine_file(
    plan: MachinePlan,
    ssh_port: int,
    engine_port: int,
    identity: Path,
    fingerprint: str | None,
    sides: Sequence[tuple[str, int]] = (),
) -> str:
    """The YAML text of one machine. Without a fingerprint its host key is not trusted yet.

    `sides`: kind and port of engines beside Ollama.
    """
    lines = [
        f"# {plan.note}" if plan.note else "",
        f"name: {plan.name}",
        f"role: {plan.role}",
        "hardware:",
        f"  cpu: {plan.host.cpu_label}",
        f"  ram_gb: {plan.host.memory_gb}",
        *_gpu_lines(plan),
        f"storage_gb: {plan.host.disk_gb}",
        "network:",
        f"  hostname: {LOOPBACK}",
        f"  port: {engine_port:<16} # Ollama",
        *_engine_lines(sides),
        "models:" if plan.declared else "models: []",
        *(f"  - {name}" for name in plan.declared),
        f"tags: [{', '.join(plan.tags)}]",
        "ssh:",
        f"  host: {LOOPBACK}",
        f"  port: {ssh_port}",
        f"  user: {plan.user}",
        f"  identity: {_quoted(str(identity))}",
        f"  host_key: {fingerprint}" if fingerprint else "",
    ]
    return "".join(line + "\n" for line in lines if line)


def _engine_lines(sides: Sequence[tuple[str, int]]) -> list[str]:
    """Where there is more than Ollama."""
    if not sides:
        return []
    lines = ["engines:", "  - kind: ollama           # on network.port"]
    for kind, port in sides:
        lines += [f"  - kind: {kind}", f"    port: {port}"]
    return lines


def _gpu_lines(plan: MachinePlan) -> list[str]:
    if not plan.cards:
        return ["  gpu: []                # CPU only"]
    lines = ["  gpu:"]
    for card in plan.cards:
        lines += [f"    - model: {card.label}", f"      vram_gb: {card.vram_gb}"]
    return lines


def _quoted(text: str) -> str:
    """A YAML scalar: in double quotes where plain text would mean something else."""
    if text.replace("/", "").replace("_", "").replace("-", "").replace(".", "").isalnum():
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
