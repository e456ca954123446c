"""A fleet as a running dashboard stored it a moment ago: `--route` answers from it without any machine."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from cli_runner import Cli, write_machine

from builders import NOW, make_copy, make_fleet, make_snapshot
from fleettui.model.lease import Lease
from fleettui.model.snapshot import MachineSnapshot, MaintenanceFlag
from fleettui.store.database import Store
from fleettui.store.flags import change_maintenance
from fleettui.store.leases import load_leases
from fleettui.store.snapshots import save_snapshot

MODEL = "qwen3:8b"


class StoredFleet:
    """Machines, equal but for their names, that have the model loaded; and the command that reads them."""

    def __init__(self, folder: Path, names: Collection[str] = "abcd", ports: Collection[int] = ()) -> None:
        self.machines_dir, self.state_dir = folder / "fleet", folder / "fleet-state"
        self.machines_dir.mkdir()
        self._ports = dict(zip(names, ports, strict=False))
        for name in names:
            port = self._ports.get(name, 11434)
            write_machine(self.machines_dir, name, network=f"{{hostname: 127.0.0.1, port: {port}}}")
        self._names = tuple(names)
        self._store(interval_s=600.0)
        self.cli = Cli(
            {"FLEETTUI_MACHINES": str(self.machines_dir), "FLEETTUI_STATE_DIR": str(self.state_dir)}
        )

    def _store(self, interval_s: float) -> None:
        machines = [self._machine(name) for name in self._names]
        fleet = make_fleet(*machines, machines_dir=str(self.machines_dir))
        fleet = replace(fleet, taken_at=time.time(), interval_s=interval_s)
        with Store.open(str(self.state_dir)) as store:
            save_snapshot(store, fleet, set(self._names))

    def reach_by_ssh(self, port: int, interval_s: float) -> None:
        """Who asks the machines goes there; what is stored is fresh for two intervals from now on."""
        for name in self._names:
            write_machine(
                self.machines_dir,
                name,
                ssh=f"{{host: 127.0.0.1, port: {port}, host_key: 'SHA256:{'A' * 43}'}}",
            )
        self._store(interval_s)

    def _machine(self, name: str) -> MachineSnapshot:
        copy = make_copy(MODEL, gib=6, expires_at=time.time() + 240)
        snapshot = make_snapshot(name, loaded=[copy], age_s=NOW - time.time())
        port = self._ports.get(name, 11434)
        machine = replace(snapshot.machine, hostname="127.0.0.1")
        return replace(
            snapshot, machine=machine, engines=tuple(replace(one, port=port) for one in snapshot.engines)
        )

    def route(self, *options: str) -> str:
        """Name of the machine that the model is routed to."""
        done = self.cli("--route", MODEL, "--format", "name", "-q", *options)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.strip()

    def leases(self) -> tuple[Lease, ...]:
        """Those that hold now."""
        with Store.open(str(self.state_dir)) as store:
            return load_leases(store, str(self.machines_dir), time.time())

    def set_maintenance(self, *names: str, is_on: bool) -> None:
        """As `fleettui maintenance` does."""
        flag = MaintenanceFlag("fan swap", "mia", time.time()) if is_on else None
        with Store.open(str(self.state_dir)) as store:
            change_maintenance(store, str(self.machines_dir), {name: lambda _: flag for name in names})

    @property
    def environment(self) -> dict[str, str]:
        """For processes that are not run by `cli`."""
        return {**os.environ, **self.cli.environment}
