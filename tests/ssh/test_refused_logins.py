"""Every way a server refuses a login: told apart, with what to do next, and never tried again by itself."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from links import open_link, refused
from links import until as until_true
from sshd_rig import SshdRig, SshdServer, keygen, run_tool, why_no_namespace
from test_ssh_fleet import machine, running, until, write_machine_file

from fleettui.model.machine import Machine, SshSettings
from fleettui.net.connector import Connector
from fleettui.net.errors import LinkError

Connect = Callable[..., Connector]

PAM = """auth required pam_permit.so
account required {account}
session required pam_permit.so
"""


def shadow(entry: str) -> str:
    """This computer's /etc/shadow with another line for root."""
    path = Path("/etc/shadow")
    lines = path.read_text().splitlines() if why_no_namespace() is None and path.exists() else []
    return "\n".join(entry if line.startswith("root:") else line for line in lines) + "\n"


INTERACTIVE = {"KbdInteractiveAuthentication": "yes", "UsePAM": "yes"}
PERMIT = {"/etc/pam.d/sshd": PAM.format(account="pam_permit.so")}

KINDS: dict[str, tuple[dict[str, str], dict[str, str], str, int]] = {
    # name: sshd options, files under /etc, words, connections in all
    "no root": ({"PermitRootLogin": "no"}, {}, "authorized_keys, PermitRootLogin", 1),
    "denied user": ({"DenyUsers": "*"}, {}, "no key of ours may log in as", 1),
    "other keys": ({"AuthorizedKeysFile": "none"}, {}, "no key of ours may log in as", 1),
    "other algorithms": ({"PubkeyAcceptedAlgorithms": "rsa-sha2-512"}, {}, "no key of ours may log in as", 1),
    "password": (
        {"AuthenticationMethods": "password", "PasswordAuthentication": "yes"},
        {},
        "needs interactive login (password), not possible unattended; allow",
        1,
    ),
    "key and password": (
        {"AuthenticationMethods": "publickey,password", "PasswordAuthentication": "yes"},
        {},
        "needs interactive login (password)",
        1,
    ),
    "keyboard": (
        {"AuthenticationMethods": "keyboard-interactive", **INTERACTIVE},
        PERMIT,
        "needs interactive login (keyboard-interactive)",
        1,
    ),
    "key and keyboard": (
        {"AuthenticationMethods": "publickey,keyboard-interactive", **INTERACTIVE},
        PERMIT,
        "needs interactive login (keyboard-interactive)",
        1,
    ),
    "hosts only": (
        {"AuthenticationMethods": "hostbased", "HostbasedAuthentication": "yes"},
        {},
        "the server takes no keys at all; allow",
        1,
    ),
    "locked": ({}, {"/etc/shadow": shadow("root:!:19000:0:99999:7:::")}, "no key of ours may log in", 1),
    "expired account": (
        {"UsePAM": "yes"},
        {
            "/etc/pam.d/sshd": PAM.format(account="pam_unix.so"),
            "/etc/shadow": shadow("root:*:19000:0:99999:7::1:"),
        },
        "the server hung up during the login",
        2,
    ),
    "PAM says no": (
        {"UsePAM": "yes"},
        {"/etc/pam.d/sshd": PAM.format(account="pam_deny.so")},
        "is the account locked or expired, does a login guard block us?",
        2,
    ),
}


async def test_no_refused_login_is_tried_again_by_itself(sshd_rig: SshdRig, tmp_path: Path) -> None:
    """One fleet of machines that each refuse in their own way; counted by each sshd."""
    can_mount = why_no_namespace() is None
    folder = tmp_path / "machines"
    servers: dict[str, SshdServer] = {}
    for kind, (options, etc, _, _) in KINDS.items():
        if etc and not can_mount:
            continue
        if kind == "no root" and sshd_rig.user != "root":
            continue
        servers[kind] = sshd_rig.start(options=options, etc=etc)
        write_machine_file(folder, kind, servers[kind], sshd_rig.user)
    async with running(sshd_rig, folder, interval_s=0.5) as service:
        snapshot = await until(
            service,
            lambda s: all(
                machine(s, kind).link.state == "failed" and machine(s, kind).link.next_try_at is None
                for kind in servers
            ),
            what="all refused for good",
        )
        await asyncio.sleep(1.5)
    for kind, server in servers.items():
        link = machine(snapshot, kind).link
        _, _, words, connections = KINDS[kind]
        assert link.stage == "authentication", kind
        assert words in (link.error or ""), kind
        assert (link.error or "").startswith(server.where), kind
        log = server.log_text()
        assert log.count("Connection from") == connections, kind
        assert log.count("method password") + log.count("method keyboard-interactive") == 0, kind
        assert log.count("Failed publickey") <= connections, kind


async def test_a_password_that_has_expired_is_told(sshd_rig: SshdRig, tmp_path: Path) -> None:
    if (reason := why_no_namespace()) is not None:
        pytest.skip(reason)
    etc = {
        "/etc/pam.d/sshd": PAM.format(account="pam_unix.so"),
        "/etc/shadow": shadow("root:*:1:0:1:7:::"),
    }
    server = sshd_rig.start(options={"UsePAM": "yes"}, etc=etc)
    folder = tmp_path / "machines"
    write_machine_file(folder, "ada", server, sshd_rig.user)
    async with running(sshd_rig, folder, interval_s=0.5) as service:
        snapshot = await until(service, lambda s: machine(s).reasons, what="told")
    assert "Your password has expired" in machine(snapshot).reasons[0].text


@pytest.mark.parametrize(
    ("options", "host_keys", "words"),
    [
        ({"KexAlgorithms": "diffie-hellman-group1-sha1"}, ("ed25519",), "only diffie-hellman-group1-sha1;"),
        ({"Ciphers": "aes128-cbc,3des-cbc"}, ("ed25519",), "has only aes128-cbc, 3des-cbc; its SSH server"),
        ({"MACs": "hmac-md5-96", "Ciphers": "aes128-ctr"}, ("ed25519",), "no MAC algorithm in common"),
    ],
)
async def test_what_an_old_server_lacks_is_named(
    sshd_rig: SshdRig, connect: Connect, options: dict[str, str], host_keys: tuple[str, ...], words: str
) -> None:
    server = sshd_rig.start(options=options, host_keys=host_keys)
    error = await refused(connect(), sshd_rig.machine(server))
    assert error.stage == "key exchange"
    # Both sides notice; where the server is first it hangs up.
    assert (
        words in error.text or "have both sides a key exchange, a cipher and a MAC in common?" in error.text
    )
    assert len(error.text) < 300
    assert "userauth" not in server.log_text()


async def test_an_old_server_that_signs_with_sha1_only_still_works(
    sshd_rig: SshdRig, connect: Connect
) -> None:
    server = sshd_rig.start(options={"HostKeyAlgorithms": "ssh-rsa"}, host_keys=("rsa",))
    link, _ = await open_link(connect(), sshd_rig.machine(server))
    await link.close()


@pytest.fixture
def crowded_agent(sshd_rig: SshdRig) -> Iterator[str]:
    """A real ssh-agent with nine keys; the right one comes last and has no private file."""
    path = str(sshd_rig.home / "agent")
    process = subprocess.Popen(
        ["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        while not Path(path).exists():
            time.sleep(0.02)
        for number in range(8):
            key = sshd_rig.write_key(f"other{number}", number=500 + number)
            run_tool("ssh-add", "-q", str(key), SSH_AUTH_SOCK=path)
            key.unlink()
        run_tool("ssh-add", "-q", str(sshd_rig.identity), SSH_AUTH_SOCK=path)
        sshd_rig.identity.unlink()
        yield path
    finally:
        process.terminate()
        process.wait(10)


async def test_too_many_keys_are_told_and_a_named_one_is_the_way(
    sshd_rig: SshdRig, connect: Connect, crowded_agent: str
) -> None:
    server = sshd_rig.start(options={"MaxAuthTries": "3"})
    error = await refused(connect(agent_path=crowded_agent), sshd_rig.machine(server))
    assert (error.stage, error.is_retryable) == ("authentication", False)
    assert "too many keys; name one with ssh.identity or IdentitiesOnly" in error.text
    assert server.log_text().count("Connection from") == 1
    server.clear_log()
    named = sshd_rig.machine(server, identity="~/.ssh/id_ed25519")
    link, _ = await open_link(connect(agent_path=crowded_agent), named)
    await link.close()
    assert "Failed publickey" not in server.log_text()
    sshd_rig.ssh_config.write_text(
        f"Host *\n IdentityAgent {crowded_agent}\n IdentitiesOnly yes\n IdentityFile ~/.ssh/id_ed25519.pub\n"
    )
    link, _ = await open_link(connect(), sshd_rig.machine(server))
    await link.close()


async def test_identity_file_none_offers_nothing(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    sshd_rig.ssh_config.write_text("Host *\n IdentityFile none\n")
    error = await refused(connect(), sshd_rig.machine(server))
    assert "no private key found" in error.text
    assert "method publickey" not in server.log_text()


@pytest.mark.parametrize(
    ("arguments", "is_valid"),
    [
        (("-n", "{user}"), True),
        (("-n", "somebody"), False),
        (("-n", "{user}", "-V", "20200101:20200102"), False),
    ],
    ids=["valid", "another principal", "expired"],
)
async def test_user_certificates_from_ssh_config(
    sshd_rig: SshdRig, connect: Connect, arguments: tuple[str, ...], is_valid: bool
) -> None:
    server = sshd_rig.start(options={"TrustedUserCAKeys": str(sshd_rig.folder / "ca.pub")})
    private, public = keygen("ed25519", number=910)
    authority = sshd_rig.folder / "ca"
    authority.write_bytes(private)
    authority.chmod(0o600)
    (sshd_rig.folder / "ca.pub").write_text(public + "\n")
    (server.folder / "authorized_keys").write_text("")
    server.restart()
    elsewhere = sshd_rig.home / "issued.pub"
    elsewhere.write_bytes(sshd_rig.identity.with_suffix(".pub").read_bytes())
    filled = [word.format(user=sshd_rig.user) for word in arguments]
    run_tool("ssh-keygen", "-q", "-s", str(authority), "-I", "rig", *filled, str(elsewhere))
    sshd_rig.ssh_config.write_text("Host *\n CertificateFile ~/issued-cert.pub\n")
    if is_valid:
        link, _ = await open_link(connect(), sshd_rig.machine(server))
        await link.close()
        return
    error = await refused(connect(), sshd_rig.machine(server))
    assert (error.stage, error.is_retryable) == ("authentication", False)
    assert server.log_text().count("Connection from") == 1


async def test_a_bind_address_is_used_and_a_wrong_one_is_named(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    sshd_rig.ssh_config.write_text("Host *\n BindAddress 127.77.200.9\n")
    link, _ = await open_link(connect(), sshd_rig.machine(server))
    await link.close()
    assert "Connection from 127.77.200.9" in server.log_text()
    sshd_rig.ssh_config.write_text("Host *\n BindAddress 192.0.2.77\n")
    error = await refused(connect(), sshd_rig.machine(server))
    assert error.stage == "connect"
    assert "cannot use BindAddress 192.0.2.77 of ssh_config" in error.text


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (socket.EAI_NONAME, "name not found"),
        (socket.EAI_AGAIN, "the name server does not answer"),
        (socket.EAI_NODATA, "the name has no address"),
        (socket.EAI_FAIL, "the name cannot be looked up"),
    ],
)
async def test_failures_of_dns_are_told_apart(
    sshd_rig: SshdRig, connect: Connect, monkeypatch: pytest.MonkeyPatch, kind: int, words: str
) -> None:
    def fail(*_: object) -> None:
        raise socket.gaierror(kind, "as the resolver says it")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    error = await refused(connect(), Machine("ada", "r", "ada.lan", ssh=SshSettings(port=2222)))
    assert (error.stage, error.is_retryable) == ("resolve", True)
    assert error.text.startswith(f"ada.lan:2222: {words}")


@pytest.mark.parametrize("host", ["::1", "[::1]"])
async def test_an_ipv6_literal(sshd_rig: SshdRig, connect: Connect, host: str) -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
            port = probe.getsockname()[1]
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    error = await refused(connect(), Machine("ada", "r", host, ssh=SshSettings(port=port)))
    assert error.text == f"[::1]:{port}: connection refused; is sshd running there?"


async def served(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], object],
) -> tuple[object, int]:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)  # type: ignore[arg-type]
    return server, int(server.sockets[0].getsockname()[1])


async def test_every_failure_says_where_and_what_next(
    sshd_rig: SshdRig, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No empty text, no name of a Python class, no list of algorithms: one line with a next step."""
    errors: dict[str, LinkError] = {}

    async def hang_up_after(data: bytes) -> int:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(data)
            await writer.drain()
            if data.startswith(b"SSH-2"):
                await reader.readline()
            writer.close()

        return (await served(answer))[1]

    async def at(port: int, **limits: float) -> LinkError:
        ada = Machine("ada", "r", "127.0.0.1", ssh=SshSettings(port=port))
        return await refused(connect(**limits), ada)

    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        errors["mute"] = await at(mute.getsockname()[1], connect_s=0.4)
    for name, greeting in (
        ("closed", b""), ("web", b"HTTP/1.1 400 Bad Request\r\n\r\n"), ("old", b"SSH-1.5-x\r\n"),
        ("guard", b"SSH-2.0-OpenSSH_9.2\r\n"), ("full", b"Exceeded MaxStartups\r\n"), ("noise", b"\xff" * 99),
    ):  # fmt: skip
        errors[name] = await at(await hang_up_after(greeting))
    server = sshd_rig.start()
    server.freeze()
    errors["frozen"] = await refused(connect(connect_s=0.5), sshd_rig.machine(server))
    server.thaw()
    errors["key"] = await refused(connect(known_hosts_files=()), sshd_rig.machine(server))
    errors["pin"] = await refused(connect(), sshd_rig.machine(server, host_key="SHA256:" + "A" * 43))
    errors["jump"] = await refused(connect(), sshd_rig.machine(server, jump="127.0.0.1:1"))
    link, losses = await open_link(connect(), sshd_rig.machine(server))
    server.kill()
    await until_true(lambda: losses)
    errors["lost"] = losses[0]
    await link.close()
    errors["refused"] = await refused(connect(), sshd_rig.machine(server))
    stages = {error.stage for error in errors.values()}
    assert stages >= {"connect", "greeting", "key exchange", "host key", "lost"}
    for name, error in errors.items():
        what, step = error.text.partition("; ")[::2]
        assert "127." in what, (name, error.text)
        assert step, (name, error.text)
        assert error.text.isprintable()
        assert "Error" not in error.text, (name, error.text)
        assert len(error.text) < 400, (name, error.text)
