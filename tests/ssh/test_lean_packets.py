"""What is left out of asyncssh's packets: real servers still understand them, nothing else is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import asyncssh
import pytest
from asyncssh.encryption import GCMEncryption
from links import Lines, open_link, until
from sshd_rig import SshdRig

from fleettui.net.connector import Connector
from fleettui.net.errors import HttpFailure
from fleettui.net.lean_packets import MSG_IGNORE, KeptKeyGcm
from fleettui.net.link import HttpAnswer, Link
from fleettui.net.ssh_link import SshLink

Connect = Callable[..., Connector]


def connection_of(link: Link) -> Any:
    assert isinstance(link, SshLink)
    assert link._login is not None
    return link._login.connection


@pytest.mark.parametrize("name", ["aes128-gcm", "aes256-gcm"])
def test_the_kept_key_cipher_is_the_one_of_asyncssh(name: str) -> None:
    key, iv = bytes(range(16 if "128" in name else 32)), b"\xff" * 11 + b"\xfd"  # the counter rolls over
    ours, theirs = KeptKeyGcm.new(name, key, iv), GCMEncryption.new(name, key, iv)
    back_ours, back_theirs = KeptKeyGcm.new(name, key, iv), GCMEncryption.new(name, key, iv)
    for seq in range(5):
        packet = bytes([seq]) * (40 + 16 * seq)
        header = len(packet).to_bytes(4, "big")
        sent = b"".join(ours.encrypt_packet(seq, header, packet))
        assert sent == b"".join(theirs.encrypt_packet(seq, header, packet))
        first, rest, mac = sent[:16], sent[16:-16], sent[-16:]
        for back in (back_ours, back_theirs):
            assert back.decrypt_packet(seq, first, rest, 4, mac) == packet
    assert KeptKeyGcm.new(name, key, iv).decrypt_packet(0, first, rest, 4, bytes(16)) is None


async def test_a_loop_goes_on_over_key_exchanges(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start(options={"RekeyLimit": "16K none"})
    link, losses = await open_link(connect(), sshd_rig.machine(server))
    connection = connection_of(link)
    assert isinstance(connection._send_encryption, KeptKeyGcm)
    first = connection._send_encryption
    lines = await Lines().open(link, "exec /bin/sh -c 'while read -r x; do echo got $x; done'")
    for number in range(60):
        await lines.ask(b"%d %s\n" % (number, b"x" * 2000), b"got %d " % number)
    assert connection._send_encryption is not first  # keys were exchanged anew, and ours again
    assert isinstance(connection._send_encryption, KeptKeyGcm)
    assert losses == []
    await link.close()


@pytest.mark.parametrize(
    ("cipher", "is_lean"),
    [("aes128-gcm@openssh.com", True), ("chacha20-poly1305@openssh.com", True), ("aes256-ctr", False)],
)
async def test_empty_packets_stay_where_the_cipher_may_need_them(
    cipher: str, is_lean: bool, sshd_rig: SshdRig, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    original = asyncssh.connection.SSHConnection.send_packet

    def send_packet(self: Any, pkttype: int, *args: bytes, handler: Any = None) -> None:
        sent.append(pkttype)
        original(self, pkttype, *args, handler=handler)

    monkeypatch.setattr(asyncssh.connection.SSHConnection, "send_packet", send_packet)
    server = sshd_rig.start(options={"Ciphers": cipher})
    link, _ = await open_link(connect(), sshd_rig.machine(server))
    lines = await Lines().open(link)
    sent.clear()
    await lines.ask(b"1\n", b"got 1\n")
    assert (MSG_IGNORE not in sent) is is_lean
    await link.close()


async def test_a_get_without_a_task(sshd_rig: SshdRig, connect: Connect) -> None:
    engine = sshd_rig.ollama()
    link, _ = await open_link(connect(), sshd_rig.machine(sshd_rig.start()))
    answers: list[HttpAnswer | HttpFailure] = []
    assert not link.start_get(engine.port, "/api/ps", answers.append, 5)  # no stream is kept yet
    await link.get(engine.port, "/api/ps", timeout_s=5)
    assert link.start_get(engine.port, "/api/version", answers.append, 5)
    assert not link.start_get(engine.port, "/api/ps", answers.append, 5)  # the one stream is taken
    await until(lambda: answers)
    assert isinstance(answers[0], HttpAnswer)
    assert answers[0].body == b'{"version": "0.12.3"}'
    assert engine.connections == 1

    engine.gate.clear()
    assert link.start_get(engine.port, "/api/version", answers.append, 0.05)
    await until(lambda: len(answers) == 2)
    assert isinstance(answers[1], HttpFailure)
    assert answers[1].kind == "timeout"
    engine.gate.set()
    await link.get(engine.port, "/api/version", timeout_s=5)  # by a stream of its own: that one was dropped
    assert engine.connections == 2

    engine.close_after_answer = True
    await link.get(engine.port, "/api/version", timeout_s=5)
    if link.start_get(engine.port, "/api/version", answers.append, 5):  # its end may not have come here yet
        await until(lambda: len(answers) == 3)
        assert isinstance(answers[2], HttpFailure)
        assert answers[2].kind == "lost"
    await link.close()


async def test_a_frozen_machine_is_noticed_by_keepalives_and_a_living_one_stays(
    sshd_rig: SshdRig, connect: Connect
) -> None:
    living, frozen = sshd_rig.start(), sshd_rig.start()
    connector = connect(silence_s=2.0)
    link, losses = await open_link(connector, sshd_rig.machine(living, "ada"))
    other, other_losses = await open_link(connector, sshd_rig.machine(frozen, "bora"))
    frozen.freeze()
    try:
        await until(lambda: other_losses, 15)
    finally:
        frozen.thaw()
    assert other_losses[0].stage == "silent"
    assert losses == []
    lines = await Lines().open(link)
    await lines.ask(b"1\n", b"got 1\n")
    await link.close()
    await other.close()
