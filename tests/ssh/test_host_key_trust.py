"""Host keys against real OpenSSH: what is trusted, what is refused, and that nothing is sent before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from links import open_link, refused
from sshd_rig import SshdRig, SshdServer, keygen, run_tool, wait_until

from fleettui.net.connector import Connector

Connect = Callable[..., Connector]


def assert_nothing_was_sent(server: SshdServer) -> None:
    """The server, logging at DEBUG2, saw no user, no key, no command: the key exchange was never finished."""
    wait_until(lambda: len(server.processes()) == 1, what="the server noticed the end")
    log = server.log_text()
    assert "SSH2_MSG_NEWKEYS sent" in log
    for sign in ("KEX done", "userauth", "Accepted", "Failed", "session"):
        assert sign not in log, [line for line in log.splitlines() if sign in line]
    assert not server.remote_processes()


async def test_an_unknown_key_is_offered_and_nothing_is_sent(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start(is_trusted=False)
    error = await refused(connect(), sshd_rig.machine(server))
    assert (error.stage, error.is_retryable) == ("host key", False)
    assert error.offer is not None
    assert error.offer.key_type == "ED25519"
    assert error.offer.fingerprint == server.fingerprint()
    assert error.offer.expected == ()
    assert server.fingerprint() in error.text
    assert_nothing_was_sent(server)


async def test_a_changed_key_names_both_and_nothing_is_sent(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    connector = connect()
    link, _ = await open_link(connector, sshd_rig.machine(server))
    await link.close()
    before = server.fingerprint()
    server.write_host_keys(number=77)
    server.restart()
    error = await refused(connector, sshd_rig.machine(server))
    assert (error.stage, error.is_retryable) == ("host key", False)
    assert error.offer is not None
    assert error.offer.fingerprint == server.fingerprint() != before
    assert error.offer.expected == (before,)
    assert "HOST KEY CHANGED" in error.text
    assert_nothing_was_sent(server)


async def test_known_hosts_is_read_again_when_it_changes(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start(is_trusted=False)
    connector = connect()
    stamp = await connector.read_stamp()
    assert (await refused(connector, sshd_rig.machine(server))).stage == "host key"
    assert stamp == await connector.read_stamp()
    sshd_rig.trust(server)
    assert stamp != await connector.read_stamp()
    link, _ = await open_link(connector, sshd_rig.machine(server))
    await link.close()


async def test_hashed_known_hosts(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    run_tool("ssh-keygen", "-q", "-H", "-f", str(sshd_rig.known_hosts))
    assert server.address not in sshd_rig.known_hosts.read_text()
    link, _ = await open_link(connect(), sshd_rig.machine(server))
    await link.close()


async def test_an_odd_known_hosts_line_is_skipped_with_a_notice(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    sshd_rig.known_hosts.write_text(
        "justonetoken\n|2|abc|def ssh-rsa AAAA\n" + sshd_rig.known_hosts.read_text()
    )
    connector = connect()
    link, _ = await open_link(connector, sshd_rig.machine(server))
    await link.close()
    assert [problem.line for problem in connector.problems()] == [1, 2]


async def test_the_type_of_key_we_know_is_asked_for(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start(host_keys=("ed25519", "ecdsa", "rsa"), is_trusted=False)
    for kind in ("rsa", "ecdsa"):
        sshd_rig.known_hosts.write_text(f"[{server.address}]:{server.port} {server.public_key(kind)}\n")
        link, _ = await open_link(connect(), sshd_rig.machine(server))
        await link.close()


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
async def test_a_fingerprint_in_the_machine_file_is_enough(
    sshd_rig: SshdRig, connect: Connect, kind: str
) -> None:
    server = sshd_rig.start(host_keys=("ed25519", "ecdsa", "rsa"), is_trusted=False)
    machine = sshd_rig.machine(server, host_key=server.fingerprint(kind))
    link, _ = await open_link(connect(), machine)
    await link.close()
    pinned, _ = await open_link(connect(), sshd_rig.machine(server), (server.fingerprint(kind),))
    await pinned.close()


async def test_a_wrong_fingerprint_is_a_changed_key_even_where_known_hosts_agrees(
    sshd_rig: SshdRig, connect: Connect
) -> None:
    server = sshd_rig.start(host_keys=("ed25519", "rsa"))
    wrong = "SHA256:" + "A" * 43
    error = await refused(connect(), sshd_rig.machine(server, host_key=wrong))
    assert error.stage == "host key"
    assert error.offer is not None
    assert (error.offer.fingerprint, error.offer.expected) == (server.fingerprint("ed25519"), (wrong,))
    assert_nothing_was_sent(server)


def sign_host_key(rig: SshdRig, server: SshdServer, *arguments: str) -> str:
    """Give the server a host certificate; returns the authority's public line."""
    private, public = keygen("ed25519", number=900)
    authority = rig.folder / "authority"
    authority.write_bytes(private)
    authority.chmod(0o600)
    key = server.folder / "host_ed25519.pub"
    run_tool("ssh-keygen", "-q", "-s", str(authority), "-I", "rig", "-h", *arguments, str(key))
    server.options["HostCertificate"] = str(server.folder / "host_ed25519-cert.pub")
    server.restart()
    return " ".join(public.split()[:2])


async def test_a_host_certificate_of_a_known_authority_is_trusted(
    sshd_rig: SshdRig, connect: Connect
) -> None:
    server = sshd_rig.start(is_trusted=False)
    authority = sign_host_key(sshd_rig, server, "-n", server.address)
    sshd_rig.known_hosts.write_text(f"@cert-authority [127.77.*]:* {authority}\n")
    link, _ = await open_link(connect(), sshd_rig.machine(server))
    await link.close()


@pytest.mark.parametrize("arguments", [("-n", "other.lan"), ("-V", "20200101:20200102")])
async def test_a_certificate_for_others_or_out_of_date_is_not_trusted(
    sshd_rig: SshdRig, connect: Connect, arguments: tuple[str, ...]
) -> None:
    server = sshd_rig.start(is_trusted=False)
    authority = sign_host_key(sshd_rig, server, *arguments)
    sshd_rig.known_hosts.write_text(f"@cert-authority * {authority}\n")
    error = await refused(connect(), sshd_rig.machine(server))
    assert error.stage == "host key"
    assert_nothing_was_sent(server)


async def test_a_certificate_of_a_stranger_does_not_hide_the_plain_key(
    sshd_rig: SshdRig, connect: Connect
) -> None:
    server = sshd_rig.start()
    sign_host_key(sshd_rig, server, "-n", server.address)
    link, _ = await open_link(connect(), sshd_rig.machine(server))
    await link.close()


async def test_a_revoked_key_is_refused_without_an_offer(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    with sshd_rig.known_hosts.open("a") as file:
        file.write(f"@revoked * {server.host_key_line}\n")
    error = await refused(connect(), sshd_rig.machine(server))
    assert (error.stage, error.offer, error.is_retryable) == ("host key", None, False)
    assert "revoked" in error.text
    assert_nothing_was_sent(server)


async def test_a_revoked_authority_signs_nothing(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start(is_trusted=False)
    authority = sign_host_key(sshd_rig, server, "-n", server.address)
    sshd_rig.known_hosts.write_text(f"@cert-authority * {authority}\n@revoked * {authority}\n")
    error = await refused(connect(), sshd_rig.machine(server))
    assert error.stage == "host key"
    assert_nothing_was_sent(server)


async def test_ssh_keyscan_agrees_with_the_offer(sshd_rig: SshdRig, connect: Connect, tmp_path: Path) -> None:
    server = sshd_rig.start(host_keys=("rsa",), is_trusted=False)
    file = tmp_path / "scan"
    file.write_text(run_tool("ssh-keyscan", "-p", str(server.port), server.address))
    shown = run_tool("ssh-keygen", "-lf", str(file))
    error = await refused(connect(), sshd_rig.machine(server))
    assert error.offer is not None
    assert error.offer.fingerprint in shown
    assert f"({error.offer.key_type})" in shown
