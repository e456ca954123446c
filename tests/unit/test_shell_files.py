"""The files that a shell needs are gone when it is over, and when it was not wanted any more."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from builders import make_machine
from fleettui.fleet import shell
from fleettui.fleet.shell import ShellOperations
from fleettui.model.machine import SshSettings
from fleettui.model.record import replace

FINGERPRINT = "SHA256:" + "A" * 43


def operations() -> ShellOperations:
    """For one approved machine behind a jump host."""

    async def read_public_key(*_: object) -> str:
        return "ssh-ed25519 AAAA"

    async def refresh(_: str) -> None: ...

    connector = SimpleNamespace(
        addresses_of=lambda _: ("jump:22", "ada:22"),
        jump_fingerprints_of=lambda _: {},
        read_public_key=read_public_key,
        settings=SimpleNamespace(ssh_config_files=()),
    )
    machine = replace(make_machine("ada"), ssh=SshSettings(host_key=FINGERPRINT))
    record = SimpleNamespace(machine=machine, trust="approved")
    desk: Any = SimpleNamespace(connector=connector, refresh=refresh)
    return ShellOperations(desk, lambda _: record)  # type: ignore[arg-type, return-value]


def names_in(folder: Path | str) -> set[str]:
    return {path.name for path in Path(folder).iterdir()}


def mode_of(folder: str) -> int:
    return Path(folder).stat().st_mode & 0o777


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/ssh")
    return tmp_path


async def test_only_we_read_the_files_and_they_go_with_the_command(folder: Path) -> None:
    with await operations().prepare("ada") as command:
        assert command.folder is not None
        assert mode_of(command.folder) == 0o700
        assert names_in(command.folder) == {"known_hosts", "config"}
    assert not names_in(folder)


async def test_who_leaves_while_they_are_written_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_go_on = Event(), Event()

    def key_line(_: str) -> str:
        begun.set()
        may_go_on.wait(10)
        return ""

    monkeypatch.setattr(shell, "key_line", key_line)
    preparing = asyncio.create_task(operations().prepare("ada"))
    await asyncio.to_thread(begun.wait, 10)
    preparing.cancel()
    may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await preparing
    assert not names_in(folder)
