"""A shell on a machine for the operator: which command opens it, and that it verifies the approved key."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from fleettui.decide.trust import Standing
from fleettui.fleet.record import MachineRecord
from fleettui.fleet.trust_desk import TrustDesk
from fleettui.fleet.trust_words import TrustError
from fleettui.model.machine import Machine
from fleettui.model.record import dataclass
from fleettui.model.snapshot import Trust
from fleettui.net.errors import LinkError
from fleettui.net.openssh import key_line, ssh_command, strict_config


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """What to run on the operator's terminal; a context that removes the files it needs."""

    argv: tuple[str, ...]
    where: str
    """`host:port`, or this computer."""
    folder: str | None = None
    """Files of this one call."""

    def __enter__(self) -> ShellCommand:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


class ShellOperations:
    """Prepares shells for machines whose key is approved, and for no others."""

    def __init__(self, desk: TrustDesk, record_of: Callable[[str], MachineRecord | None]) -> None:
        self._desk = desk
        self._record_of = record_of

    async def prepare(self, name: str) -> ShellCommand:
        """The command for a machine. Raises TrustError with the sentence why there is none."""
        record = self._record_of(name)
        if record is None:
            raise TrustError("unknown_name", name, f"{name} is not declared any more")
        machine = record.machine
        if machine.ssh.is_local:
            return ShellCommand((os.environ.get("SHELL") or "/bin/sh",), "this computer (ssh: local)")
        if record.trust != "approved":
            raise _not_approved(name, record.trust)
        if shutil.which("ssh") is None:
            text = f"{name}: there is no ssh in the PATH; install OpenSSH's client"
            raise TrustError("file", name, text)
        try:
            return await self._prepare(machine)
        except LinkError as error:
            raise TrustError("no_contact", name, error.text) from None

    async def _prepare(self, machine: Machine) -> ShellCommand:
        desk, name = self._desk, machine.name
        addresses = desk.connector.addresses_of(machine)
        await desk.refresh(name)
        self._check_jumps(machine)
        pin = machine.ssh.host_key or self._pin_of(machine, addresses[-1])
        public_key = None if pin is None else await desk.connector.read_public_key(machine, pin)
        if pin is None and len(addresses) == 1:
            return ShellCommand(ssh_command(machine), addresses[-1])
        writing = asyncio.create_task(asyncio.to_thread(self._write, machine, public_key, addresses))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            with await writing:  # a thread cannot be cancelled: what it writes goes with us
                raise

    def _pin_of(self, machine: Machine, address: str) -> str | None:
        """The approved fingerprint; None where known_hosts is the approval. Raises TrustError."""
        desk, table = self._desk, self._desk.book.table
        if table is None:
            raise TrustError("state", machine.name, desk.book.error or "decisions cannot be read")
        knows_key = desk.connector.knows_key_of(machine)
        standing: Standing = table.standing(machine, address, desk.clock(), lambda: knows_key)
        if standing.refusal is not None:
            raise _not_approved(machine.name, standing.trust)
        if standing.pins:
            return standing.pins[0]
        if not (standing.counts_known_hosts and knows_key):
            raise _not_approved(machine.name, "pending")
        return None

    def _check_jumps(self, machine: Machine) -> None:
        """ssh knows jump hosts by known_hosts alone. Raises TrustError where that may accept another key."""
        for where, known in self._desk.connector.jump_fingerprints_of(machine).items():
            rule = self._desk.book.jump_rule(where)
            is_same = bool(known) and set(known) <= set(rule.pins)
            if (rule.pins or not rule.counts_known_hosts) and not is_same:
                text = (
                    f"{machine.name}: the key of its jump host {where} was decided about here, and ssh goes "
                    f"by known_hosts, which does not say the same; log in to {where} once with ssh"
                )
                raise TrustError("file_decides", machine.name, text)

    def _write(self, machine: Machine, public_key: str | None, addresses: tuple[str, ...]) -> ShellCommand:
        folder = Path(tempfile.mkdtemp(prefix="fleettui-"))
        try:
            key_file = config_file = None
            if public_key is not None:
                key_file = folder / "known_hosts"
                key_file.write_text(key_line(public_key))
            if len(addresses) > 1:
                config_file = folder / "config"
                config_file.write_text(strict_config(self._desk.connector.settings.ssh_config_files))
            argv = ssh_command(
                machine,
                key_file=None if key_file is None else str(key_file),
                config_file=None if config_file is None else str(config_file),
            )
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return ShellCommand(argv, addresses[-1], str(folder))


def _not_approved(name: str, trust: Trust) -> TrustError:
    words = {"rejected": "was rejected", "key_changed": "CHANGED and is not approved"}
    text = f"{name}: its host key {words.get(trust, 'is not approved')}, so nobody logs in there from here"
    return TrustError("not_shown", name, text)
