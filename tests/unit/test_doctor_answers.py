"""Answers of the doctor's own sections: right values, and nothing invented from anything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loop_runner import SHELLS, Loop, find_shell

from fleettui.model.unknown import Unknown
from fleettui.probes.clock import parse_epoch
from fleettui.probes.doctor import (
    Account,
    RootMount,
    is_loopback,
    parse_journal,
    parse_listen,
    parse_root,
    parse_who,
)

HINT = (
    b"Hint: You are currently not seeing messages from other users and the system.\n"
    b"      Users in groups 'adm', 'systemd-journal' can see all messages.\n"
    b"      Pass -q to turn off this notice.\n-- No entries --"
)
TCP = (
    b"   0: 0100007F:2CAA 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1\n"
    b"   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2 1\n"
    b"   0: 00000000000000000000000001000000:2CAA 00000000000000000000000000000000:0000 0A 0:0\n"
    b"   1: 0000000000000000FFFF00000A00000A:1F90 00000000000000000000000000000000:0000 0A 0:0\n"
    b"   2: 0100007F:1F90 0100007F:A000 01 00000000:00000000 00:00000000 00000000     0        0 3 1"
)


@pytest.mark.parametrize("shell", SHELLS)
def test_real_shells_answer_every_section(shell: str) -> None:
    loop = Loop("doctor", find_shell(shell))
    try:
        answers = loop.ask("who", "clock", "journal", "journal_ollama", "root", "listen", "disks")
    finally:
        loop.close()
    assert not isinstance(parse_who(answers["who"].payload).user, Unknown)
    assert parse_epoch(answers["clock"].payload) is not None
    assert not isinstance(parse_root(answers["root"].payload), Unknown)
    assert answers["disks"].exit_code == 0
    assert {"journal", "journal_ollama", "listen"} <= set(answers)


def test_who() -> None:
    assert parse_who(b"/usr/bin/fish\nops\nops adm video") == Account(
        "/usr/bin/fish", "ops", ("ops", "adm", "video")
    )
    nobody = parse_who(b"")
    assert isinstance(nobody.user, Unknown)
    assert nobody.groups == ()


@pytest.mark.parametrize(
    ("payload", "exit_code", "state"),
    [
        (b"2026-03-10T09:15:30+0000 ada kernel: usb 1-4: new device", 0, "readable"),
        (b"-- Logs begin at Mon 2026-03-02 --\n2026-03-10T09:15:30 ada kernel: x", 0, "readable"),
        (b"-- No entries --", 0, "empty"),
        (b"-- No entries --", 1, "empty"),
        (HINT, 0, "no_permission"),
        (b"No journal files were opened due to insufficient permissions.", 1, "no_permission"),
        (b"No journal files were found.\n-- No entries --", 0, "no_journal"),
        (b"sh: 1: exec: journalctl: not found", 127, "no_tool"),
        (b"", 124, "failed"),
        (b"Failed to open journal: Bad message", 1, "failed"),
    ],
)
def test_journal(payload: bytes, exit_code: int, state: str) -> None:
    assert parse_journal(payload, exit_code).state == state


def test_root() -> None:
    assert parse_root(b"/dev/sda1 ext4 rw,relatime,errors=remount-ro") == RootMount(
        "/dev/sda1", "ext4", False
    )
    assert parse_root(b"overlay overlay ro,lowerdir=/a:/b") == RootMount("overlay", "overlay", True)
    assert isinstance(parse_root(b""), Unknown)


def test_listening_sockets() -> None:
    assert parse_listen(TCP, 11434) == ("127.0.0.1", "::1")
    assert parse_listen(TCP, 22) == ("0.0.0.0",)
    assert parse_listen(TCP, 8080) == ("10.0.0.10",)
    assert parse_listen(TCP, 9) == ()
    assert isinstance(parse_listen(b"", 22), Unknown)
    assert [is_loopback(address) for address in ("127.0.0.1", "127.1.2.3", "::1", "0.0.0.0", "::")] == [
        True, True, True, False, False,
    ]  # fmt: skip


@given(st.binary(max_size=400), st.integers(0, 255))
def test_any_bytes_are_read_without_an_exception(payload: bytes, number: int) -> None:
    parse_who(payload)
    parse_journal(payload, number)
    parse_root(payload)
    found = parse_listen(payload, number)
    assert isinstance(found, Unknown) or all(address for address in found)
