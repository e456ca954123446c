"""Channel data the short way: nothing is lost, added or let through that asyncssh would not let through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import asyncssh
import pytest
from links import ECHO_LOOP, Lines, open_link, until
from sshd_rig import SshdRig

from fleettui.net.connector import Connector
from fleettui.net.lean_packets import KeptKeyGcm
from fleettui.net.link import Link
from fleettui.net.ssh_link import SshLink

Connect = Callable[..., Connector]
MANY = "exec /bin/sh -c 'while read -r x; do head -c $x /dev/zero | tr \"\\0\" x; echo; echo got $x; done'"


def connection_of(link: Link) -> Any:
    assert isinstance(link, SshLink)
    assert link._login is not None
    return link._login.connection


@pytest.fixture
def long_ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes each time that asyncssh's own way is taken."""
    taken: list[str] = []
    receive, write = asyncssh.SSHClientConnection._recv_data, asyncssh.channel.SSHChannel.write

    def counting_receive(self: Any) -> None:
        taken.append("receive")
        receive(self)

    def counting_write(self: Any, data: bytes, datatype: int | None = None) -> None:
        taken.append("write")
        write(self, data, datatype)

    monkeypatch.setattr(asyncssh.SSHClientConnection, "_recv_data", counting_receive)
    monkeypatch.setattr(asyncssh.channel.SSHChannel, "write", counting_write)
    return taken


async def test_questions_and_answers_of_a_poll_go_the_short_way(
    sshd_rig: SshdRig, connect: Connect, long_ways: list[str]
) -> None:
    engine = sshd_rig.ollama()
    link, losses = await open_link(connect(), sshd_rig.machine(sshd_rig.start()))
    lines = await Lines().open(link, ECHO_LOOP)
    await link.get(engine.port, "/api/ps", timeout_s=5)
    long_ways.clear()
    for number in range(5):
        await lines.ask(b"%d\n" % number, b"got %d\n" % number)
        await link.get(engine.port, "/api/ps", timeout_s=5)
    assert long_ways == []
    assert losses == []
    await link.close()


@pytest.mark.parametrize("sizes", [(1,), (3, 50, 1), (21, 7, 4000), (100_000,)])
async def test_bytes_may_come_in_any_pieces(
    sizes: tuple[int, ...], sshd_rig: SshdRig, connect: Connect
) -> None:
    link, losses = await open_link(connect(), sshd_rig.machine(sshd_rig.start()))
    lines = await Lines().open(link, ECHO_LOOP)
    connection = connection_of(link)
    receive, pieces = connection.data_received, _pieces(sizes)

    def receive_pieces(data: bytes, datatype: int | None = None) -> None:
        while data:
            size = next(pieces)
            receive(data[:size], datatype)
            data = data[size:]

    connection.data_received = receive_pieces
    for number in range(1, 21):
        await lines.ask(b"%d %s\n" % (number, b"x" * 97 * number), b"got %d " % number)
    assert losses == []
    await link.close()


def _pieces(sizes: tuple[int, ...]) -> Iterator[int]:
    return cycle(sizes)


async def test_several_windows_of_data_come_through(sshd_rig: SshdRig, connect: Connect) -> None:
    link, losses = await open_link(connect(), sshd_rig.machine(sshd_rig.start()))
    lines = await Lines().open(link, MANY)
    for _ in range(4):  # asyncssh's window is 2 MiB
        await lines.ask(b"1500000\n", b"got 1500000\n")
        lines.data = b""
    assert losses == []
    await link.close()


@pytest.mark.parametrize("at", [0, 5, 30, -1])
async def test_a_changed_byte_ends_the_connection(at: int, sshd_rig: SshdRig, connect: Connect) -> None:
    link, losses = await open_link(connect(), sshd_rig.machine(sshd_rig.start()))
    lines = await Lines().open(link, ECHO_LOOP)
    connection = connection_of(link)
    assert isinstance(connection._recv_encryption, KeptKeyGcm)
    receive = connection.data_received

    def receive_changed(data: bytes, datatype: int | None = None) -> None:
        place = at % len(data)
        receive(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :], datatype)

    connection.data_received = receive_changed
    assert lines.channel is not None
    lines.channel.write(b"hello\n")
    await until(lambda: losses)
    assert b"hello" not in lines.data
    await link.close()


async def test_a_packet_that_was_taken_away_ends_the_connection(sshd_rig: SshdRig, connect: Connect) -> None:
    link, losses = await open_link(connect(), sshd_rig.machine(sshd_rig.start()))
    lines = await Lines().open(link, ECHO_LOOP)
    await lines.ask(b"one\n", b"got one\n")
    connection = connection_of(link)
    receive, taken = connection.data_received, bytearray()

    def take_first_packet(data: bytes, datatype: int | None = None) -> None:
        connection.data_received = receive
        end = 4 + int.from_bytes(data[:4], "big") + 16
        taken.extend(data[:end])
        if data[end:]:
            receive(data[end:], datatype)

    connection.data_received = take_first_packet
    assert lines.channel is not None
    lines.channel.write(b"two\n")
    await until(lambda: taken)
    lines.channel.write(b"three\n")
    await until(lambda: losses or b"three" in lines.data)
    assert b"three" not in lines.data
    assert losses
    await link.close()


async def test_data_without_padding_ends_the_connection(sshd_rig: SshdRig, connect: Connect) -> None:
    link, losses = await open_link(connect(), sshd_rig.machine(sshd_rig.start()))
    lines = await Lines().open(link, ECHO_LOOP)
    connection, key, iv = connection_of(link), bytes(16), bytes(12)
    connection._recv_encryption, (number,) = KeptKeyGcm(key, iv), connection._channels
    head = bytes((0, 94)) + number.to_bytes(4, "big") + (6).to_bytes(4, "big")
    packet = head + b"hello\n"
    connection.data_received(
        b"".join(KeptKeyGcm(key, iv).encrypt_packet(0, len(packet).to_bytes(4, "big"), packet))
    )
    await until(lambda: losses)
    assert b"hello" not in lines.data
    await link.close()
