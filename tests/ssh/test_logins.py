"""Logins against real OpenSSH: addresses, configuration, jump hosts, keys, refusals; each stage named."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from links import Lines, open_link, refused, until
from sshd_rig import SshdRig, black_hole, free_port, run_tool

from fleettui.model.machine import Machine, SshSettings
from fleettui.net.connector import Connector
from fleettui.net.ssh_config import SshConfig

Connect = Callable[..., Connector]
FIXTURES = Path(__file__).parent.parent / "fixtures" / "ssh"


def names(monkeypatch: pytest.MonkeyPatch, table: dict[str, list[str]]) -> None:
    """Let names resolve to several addresses."""
    real = socket.getaddrinfo

    def look_up(host: str, port: int, *rest: int) -> list[object]:
        if host not in table:
            return list(real(host, port, *rest))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in table[host]]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


async def test_a_closed_port_is_refused_at_once(sshd_rig: SshdRig, connect: Connect) -> None:
    port = free_port("127.77.1.1")
    error = await refused(connect(), Machine("ada", "r", "127.77.1.1", ssh=SshSettings(port=port)))
    assert (error.stage, error.is_retryable) == ("connect", True)
    assert error.text == f"127.77.1.1:{port}: connection refused; is sshd running there?"


async def test_a_name_that_does_not_resolve(
    sshd_rig: SshdRig, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    error = await refused(connect(), Machine("ada", "r", "ada.lan"))
    assert (error.stage, error.is_retryable) == ("resolve", True)
    assert "ada.lan:22: name not found (Name or service not known)" in error.text


async def test_a_dead_name_server_holds_nobody_up(
    sshd_rig: SshdRig, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = sshd_rig.start()
    real = socket.getaddrinfo

    def hang(host: str, *rest: object) -> object:
        if host.startswith("slow"):
            time.sleep(1.5)
        return real(host, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    connector = connect(connect_s=1.0)
    slow = [
        asyncio.ensure_future(refused(connector, Machine(f"slow{number}", "r", f"slow{number}.invalid")))
        for number in range(40)
    ]
    await asyncio.sleep(0.05)
    link, _ = await open_link(connector, sshd_rig.machine(server))
    assert not any(task.done() for task in slow)
    errors = await asyncio.gather(*slow)
    assert {error.stage for error in errors} == {"connect"}
    assert "DNS" in errors[0].text
    await link.close()


async def test_one_black_hole_among_two_addresses_costs_a_moment(
    sshd_rig: SshdRig, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = sshd_rig.start()
    hole = "127.77.250.1"
    names(monkeypatch, {"twin.lan": [hole, server.address]})
    sshd_rig.trust(server, f"[twin.lan]:{server.port}")
    with black_hole(hole, server.port):
        began = time.monotonic()
        link, _ = await open_link(
            connect(), Machine("ada", "r", "twin.lan", ssh=SshSettings(port=server.port))
        )
        assert time.monotonic() - began < 2
    assert link.address == server.where
    await link.close()


async def test_every_address_is_named_with_its_reason(
    sshd_rig: SshdRig, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    with black_hole("127.77.250.2") as port:
        names(monkeypatch, {"twin.lan": ["127.77.250.2", "127.77.250.3"]})
        machine = Machine("ada", "r", "twin.lan", ssh=SshSettings(port=port))
        error = await refused(connect(address_s=0.5), machine)
    assert error.stage == "connect"
    assert f"twin.lan:{port}: " in error.text
    assert "connection refused (127.77.250.3)" in error.text
    assert "no answer within 0.5 s (127.77.250.2)" in error.text


async def test_a_web_server_on_the_port_is_recognised(sshd_rig: SshdRig, connect: Connect) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 400 Bad Request\r\nServer: nginx\r\n\r\n")
        writer.close()

    web = await asyncio.start_server(answer, "127.0.0.1", 0)
    for port in (web.sockets[0].getsockname()[1], sshd_rig.ollama().port):
        error = await refused(connect(), Machine("ada", "r", "127.0.0.1", ssh=SshSettings(port=port)))
        assert (error.stage, error.is_retryable) == ("greeting", True)
        assert "a web server answers there" in error.text
    web.close()


async def test_a_server_that_speaks_garbage(sshd_rig: SshdRig, connect: Connect) -> None:
    greetings = [
        b"SSH-1.5-old\r\n",
        b"SSH-2.0-\xff\xfe\r\n",
        b"Exceeded MaxStartups\r\n",
        b"\x00" * 9000,
        b"",
    ]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greetings[0])
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    texts = []
    while greetings:
        error = await refused(connect(), Machine("ada", "r", "127.0.0.1", ssh=SshSettings(port=port)))
        assert error.stage == "greeting", error.text
        texts.append(error.text)
        greetings.pop(0)
    assert "SSH-1.5-old" in texts[0]
    assert "Exceeded MaxStartups" in texts[2]
    assert all(text.isprintable() for text in texts)
    server.close()


@pytest.fixture
def mute_port() -> Iterator[int]:
    """A port that accepts connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield int(listener.getsockname()[1])


async def test_a_mute_port_is_a_missing_greeting(sshd_rig: SshdRig, connect: Connect, mute_port: int) -> None:
    machine = Machine("ada", "r", "127.0.0.1", ssh=SshSettings(port=mute_port))
    error = await refused(connect(connect_s=0.6), machine)
    assert error.stage == "greeting"
    assert "no SSH greeting within 0.6 s" in error.text


async def test_a_server_without_an_algorithm_of_ours(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start(options={"Ciphers": "aes256-cbc"})
    error = await refused(connect(), sshd_rig.machine(server))
    assert error.stage == "key exchange"
    assert "encryption" in error.text or "cipher" in error.text  # whoever notices first


async def test_a_denied_key_is_not_tried_again(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    (server.folder / "authorized_keys").write_text("")
    error = await refused(connect(), sshd_rig.machine(server))
    assert (error.stage, error.is_retryable) == ("authentication", False)
    assert f"no key of ours may log in as {sshd_rig.user}" in error.text
    assert error.offer is None


async def test_an_encrypted_key_without_an_agent_is_named(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    sshd_rig.write_key("id_ed25519", passphrase="secret", number=200)
    error = await refused(connect(), sshd_rig.machine(server))
    assert (error.stage, error.is_retryable) == ("authentication", False)
    assert f"key {sshd_rig.identity} is encrypted: start ssh-agent or ssh-add" in error.text


async def test_no_key_at_all(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    sshd_rig.identity.unlink()
    sshd_rig.identity.with_suffix(".pub").unlink()
    error = await refused(connect(), sshd_rig.machine(server))
    assert error.stage == "authentication"
    assert "no private key found" in error.text


@pytest.fixture
def agent(sshd_rig: SshdRig) -> Iterator[str]:
    """A real ssh-agent that holds the client's key, whose file is gone."""
    path = str(sshd_rig.home / "agent")
    process = subprocess.Popen(
        ["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        for _ in range(100):
            if Path(path).exists():
                break
            time.sleep(0.02)
        run_tool("ssh-add", "-q", str(sshd_rig.identity), SSH_AUTH_SOCK=path)
        sshd_rig.identity.unlink()
        yield path
    finally:
        process.terminate()
        process.wait(10)


async def test_the_agent_signs(sshd_rig: SshdRig, connect: Connect, agent: str) -> None:
    server = sshd_rig.start()
    connector = connect(agent_path=agent)
    link, _ = await open_link(connector, sshd_rig.machine(server))
    await link.close()
    named, _ = await open_link(connector, sshd_rig.machine(server, identity="~/.ssh/id_ed25519"))
    await named.close()
    stamp = await connector.read_stamp()
    run_tool("ssh-add", "-q", "-D", SSH_AUTH_SOCK=agent)
    assert stamp != await connector.read_stamp()


async def test_a_stale_agent_socket_is_no_obstacle(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    link, _ = await open_link(connect(agent_path="/nonexistent/agent"), sshd_rig.machine(server))
    await link.close()


async def test_the_named_identity_is_tried_first(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start(options={"MaxAuthTries": "2"})
    path = sshd_rig.write_key("special", number=300)
    (server.folder / "authorized_keys").write_text(path.with_suffix(".pub").read_text())
    link, _ = await open_link(connect(), sshd_rig.machine(server, identity="~/.ssh/special"))
    await link.close()
    missing = await refused(connect(), sshd_rig.machine(server, identity="~/.ssh/gone"))
    assert "key" in missing.text
    assert ".ssh/gone is missing" in missing.text


async def test_rsa_and_ecdsa_keys(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    for kind in ("rsa", "ecdsa"):
        path = sshd_rig.write_key(f"own_{kind}", kind, number=301)
        (server.folder / "authorized_keys").write_text(path.with_suffix(".pub").read_text())
        link, _ = await open_link(connect(), sshd_rig.machine(server, identity=str(path)))
        await link.close()


async def test_a_user_certificate_beside_the_key(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start(options={"TrustedUserCAKeys": str(sshd_rig.folder / "ca.pub")})
    authority = sshd_rig.write_key("ca", number=302)
    (sshd_rig.folder / "ca.pub").write_text(authority.with_suffix(".pub").read_text())
    (server.folder / "authorized_keys").write_text("")
    server.restart()
    public = str(sshd_rig.identity.with_suffix(".pub"))
    run_tool("ssh-keygen", "-q", "-s", str(authority), "-I", "rig", "-n", sshd_rig.user, public)
    link, _ = await open_link(connect(), sshd_rig.machine(server))
    await link.close()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"AuthenticationMethods": "password", "PasswordAuthentication": "yes"},
            "needs interactive login (password)",
        ),
        (
            {"AuthenticationMethods": "publickey,password", "PasswordAuthentication": "yes"},
            "needs interactive login (password)",
        ),
    ],
)
async def test_a_server_that_wants_a_human_is_named(
    sshd_rig: SshdRig, connect: Connect, options: dict[str, str], words: str
) -> None:
    server = sshd_rig.start(options=options)
    error = await refused(connect(), sshd_rig.machine(server))
    assert (error.stage, error.is_retryable) == ("authentication", False)
    assert words in error.text
    assert "Failed password" not in server.log_text()


async def test_ssh_config_names_host_user_port_and_identity(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    path = sshd_rig.write_key("special", number=300)
    (server.folder / "authorized_keys").write_text(path.with_suffix(".pub").read_text())
    sshd_rig.ssh_config.write_text(
        f"Host ada\n  HostName {server.address}\n  User {sshd_rig.user}\n  Port {server.port} # lab\n"
        "  IdentityFile ~/.ssh/special\n  IdentitiesOnly yes\n  ControlMaster auto\n  RequestTTY yes\n"
        "  RemoteCommand tmux attach\nHost *\n  ConnectTimeout 10s\n  User nobody\n"
    )
    connector = connect()
    link, _ = await open_link(connector, Machine("ada", "r", "ada"))
    lines = await Lines().open(link)
    await lines.ask(b"1\n", b"got 1\n")
    assert lines.data == b"got 1\n"
    await link.close()
    assert connector.problems() == ()
    sshd_rig.ssh_config.write_text(
        f"Host ada\n  HostName {server.address}\n  Port {free_port(server.address)}\n"
    )
    connector.forget_failures()  # files are looked at ten times a second at most
    assert (await refused(connector, Machine("ada", "r", "ada"))).stage == "connect"


async def test_host_key_alias_and_known_hosts_file(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start(is_trusted=False)
    own = sshd_rig.home / "own_known_hosts"
    own.write_text(f"rack7 {server.host_key_line}\n")
    sshd_rig.ssh_config.write_text(f"Host *\n  HostKeyAlias rack7\n  UserKnownHostsFile {own}\n")
    link, _ = await open_link(connect(), sshd_rig.machine(server))
    await link.close()


async def test_proxy_command(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start(is_trusted=False)
    sshd_rig.trust(server, "ada.invalid")
    program = """
import os, socket, sys, threading
noise = lambda: os.write(2, b"a warning\\n")
noise()
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
up = lambda: [s.sendall(data) for data in iter(lambda: os.read(0, 65536), b"")]
threading.Thread(target=up, daemon=True).start()
for data in iter(lambda: s.recv(65536), b""):
    os.write(1, data)
    noise()
"""
    (sshd_rig.home / "pipe.py").write_text(program)
    sshd_rig.ssh_config.write_text(
        f"Host ada.invalid\n  ProxyCommand python3 {sshd_rig.home}/pipe.py {server.address} {server.port}\n"
    )
    before = psutil.Process().children()
    link, losses = await open_link(connect(), Machine("ada", "r", "ada.invalid"))
    assert link.address == "ada.invalid:22 by ProxyCommand"
    lines = await Lines().open(link)
    for number in range(5):
        await lines.ask(b"%d\n" % number, b"got %d\n" % number)
    assert losses == []
    await link.close()
    await until(lambda: psutil.Process().children() == before)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("sh -c 'echo no way there >&2; exit 1'", "ended without an SSH greeting: no way there; correct it"),
        ("/no/such/tool %h", "/no/such/tool: not found; correct it in ~/.ssh/config"),
        ("true", "its ProxyCommand ended without an SSH greeting; correct it in ~/.ssh/config"),
        ("echo SSH-1.5-old", "SSH version is not 2 (SSH-1.5-old)"),
        ("sleep 61", "its ProxyCommand brought no SSH greeting within 1.5 s; is the machine on?"),
    ],
)
async def test_why_a_proxy_command_brought_nothing(
    sshd_rig: SshdRig, connect: Connect, command: str, told: str
) -> None:
    sshd_rig.ssh_config.write_text(f"Host ada.invalid\n  ProxyCommand {command}\n")
    before = psutil.Process().children()
    error = await refused(connect(connect_s=1.5), Machine("ada", "r", "ada.invalid"))
    assert error.stage == "greeting"
    assert error.text.startswith("ada.invalid:22: ")
    assert told in error.text
    await until(lambda: psutil.Process().children() == before)


def test_what_ssh_g_says_we_say(sshd_rig: SshdRig, tmp_path: Path) -> None:
    (tmp_path / "config.d").mkdir()
    included = (FIXTURES / "15-config-include-match-included.txt").read_text()
    (tmp_path / "config.d" / "gpu-b.conf").write_text(included)
    texts = [path.read_text() for path in sorted(FIXTURES.glob("1[37]-*.txt"))]
    texts.append((FIXTURES / "15-config-include-match-main.txt").read_text())
    texts += [
        "Host *\n Port 7\nHost gpu-a\n Port 8\n",
        "Host gpu-? !gpu-b\n User ops\n",
        "Host=gpu-a\nUser=x\n",
    ]
    texts += [
        "Match host 192.0.2.9\n User late\nHost gpu-a\n HostName 192.0.2.9\n",
        "Host GPU-a\n User upper\n",
    ]
    texts += ["Match originalhost gpu-a user bob\n Port 9\nMatch !originalhost gpu-b\n User carol\n"]
    compared = 0
    for number, text in enumerate(texts):
        path = tmp_path / f"config{number}"
        path.write_text(text.replace("config.d/", f"{tmp_path}/config.d/"))
        config = SshConfig(str(sshd_rig.home))
        config.add_file(str(path))
        for alias in ("gpu-a", "gpu-b", "gpu-cc"):
            ours = config.settings_for(alias)
            try:
                output = run_tool("ssh", "-G", "-F", str(path), alias)
            except subprocess.CalledProcessError:
                continue  # this ssh is older than the sample (Match sessiontype: 9.4)
            said = dict(line.partition(" ")[::2] for line in output.splitlines())
            assert (ours.host_name, str(ours.port or 22)) == (said["hostname"], said["port"]), text
            assert (ours.user or sshd_rig.user) == said["user"], text
            compared += 1
    assert compared >= 27


async def test_a_jump_host_carries_several_machines_on_one_login(sshd_rig: SshdRig, connect: Connect) -> None:
    bastion = sshd_rig.start()
    servers = [sshd_rig.start() for _ in range(3)]
    jump = f"{bastion.address}:{bastion.port}"
    connector = connect()
    opened = await asyncio.gather(*(open_link(connector, sshd_rig.machine(s, jump=jump)) for s in servers))
    lines = await Lines().open(opened[0][0])
    await lines.ask(b"1\n", b"got 1\n")
    assert bastion.log_text().count("Accepted publickey") == 1
    engine = sshd_rig.ollama()
    answer = await opened[1][0].get(engine.port, "/api/version", timeout_s=5)
    assert answer.status == 200
    bastion.drop_connections()
    await until(lambda: all(losses for _, losses in opened), 3)
    assert all(losses[0].stage == "lost" and bastion.where in losses[0].text for _, losses in opened)
    again, _ = await open_link(connector, sshd_rig.machine(servers[0], jump=jump))
    await again.close()
    await asyncio.gather(*(link.close() for link, _ in opened))


async def test_a_chain_of_jump_hosts_from_ssh_config(sshd_rig: SshdRig, connect: Connect) -> None:
    outer, inner, server = (sshd_rig.start() for _ in range(3))
    sshd_rig.ssh_config.write_text(
        f"Host outer\n  HostName {outer.address}\n  Port {outer.port}\n"
        f"Host inner\n  HostName {inner.address}\n  Port {inner.port}\n"
        f"Host {server.address}\n  ProxyJump outer,inner\n"
    )
    link, _ = await open_link(connect(), sshd_rig.machine(server))
    lines = await Lines().open(link)
    await lines.ask(b"1\n", b"got 1\n")
    assert f"Connection from {inner.address}" in server.log_text() or "Accepted publickey" in inner.log_text()
    await link.close()


async def test_an_unknown_jump_host_is_refused_and_not_offered_as_the_machine(
    sshd_rig: SshdRig, connect: Connect
) -> None:
    bastion = sshd_rig.start(is_trusted=False)
    server = sshd_rig.start()
    error = await refused(connect(), sshd_rig.machine(server, jump=f"{bastion.address}:{bastion.port}"))
    assert (error.stage, error.offer, error.jump) == ("host key", None, bastion.where)
    assert error.text.startswith(f"jump host {bastion.where}: unknown host key")
    assert "userauth-request" not in bastion.log_text()
    assert "Connection from" not in server.log_text()


async def test_an_unknown_machine_behind_a_jump_host_is_offered(sshd_rig: SshdRig, connect: Connect) -> None:
    bastion = sshd_rig.start()
    server = sshd_rig.start(is_trusted=False)
    error = await refused(connect(), sshd_rig.machine(server, jump=f"{bastion.address}:{bastion.port}"))
    assert error.jump is None
    assert error.offer is not None
    assert error.offer.fingerprint == server.fingerprint()


async def test_a_jump_host_that_denies_us_is_asked_once(sshd_rig: SshdRig, connect: Connect) -> None:
    bastion = sshd_rig.start()
    (bastion.folder / "authorized_keys").write_text("")
    servers = [sshd_rig.start() for _ in range(3)]
    connector = connect()
    jump = f"{bastion.address}:{bastion.port}"
    errors = [await refused(connector, sshd_rig.machine(server, jump=jump)) for server in servers]
    assert {(error.stage, error.is_retryable, error.jump) for error in errors} == {
        ("authentication", False, bastion.where)
    }
    assert bastion.log_text().count("Connection from") == 1
    (bastion.folder / "authorized_keys").write_text(sshd_rig.identity.with_suffix(".pub").read_text())
    connector.forget_failures()
    link, _ = await open_link(connector, sshd_rig.machine(servers[0], jump=jump))
    await link.close()


@pytest.mark.parametrize("options", [{"AllowTcpForwarding": "no"}, {"PermitOpen": "127.0.0.1:1"}])
async def test_a_jump_host_that_forwards_nothing(
    sshd_rig: SshdRig, connect: Connect, options: dict[str, str]
) -> None:
    bastion = sshd_rig.start(options=options)
    server = sshd_rig.start()
    error = await refused(connect(), sshd_rig.machine(server, jump=f"{bastion.address}:{bastion.port}"))
    assert error.stage == "connect"
    assert f"jump host {bastion.where} may not forward" in error.text


async def test_a_machine_that_is_down_behind_a_jump_host(sshd_rig: SshdRig, connect: Connect) -> None:
    bastion = sshd_rig.start()
    server = sshd_rig.start()
    server.kill()
    error = await refused(connect(), sshd_rig.machine(server, jump=f"{bastion.address}:{bastion.port}"))
    assert error.stage == "connect"
    assert f"{server.where}: jump host {bastion.where} cannot connect to it" in error.text


async def test_dead_machines_behind_a_jump_host_delay_nobody(sshd_rig: SshdRig, connect: Connect) -> None:
    bastion, server = sshd_rig.start(), sshd_rig.start()
    jump = bastion.where
    with black_hole("127.77.250.4") as port:
        connector = connect(max_logins=2, max_jump_opens=8)
        dead = Machine("dead", "r", "127.77.250.4", ssh=SshSettings(port=port, jump=jump))
        opening = [asyncio.ensure_future(refused(connector, dead)) for _ in range(6)]
        await until(lambda: bastion.log_text().count("direct-tcpip") >= 6)
        link, _ = await open_link(connector, sshd_rig.machine(server, jump=jump))
        assert not any(task.done() for task in opening)
        await link.close()
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)


async def test_mute_machines_take_no_login_slot_for_long(
    sshd_rig: SshdRig, connect: Connect, mute_port: int
) -> None:
    server = sshd_rig.start()
    connector = connect(max_logins=1, connect_s=4.0)
    mute = Machine("mute", "r", "127.0.0.1", ssh=SshSettings(port=mute_port))
    opening = [asyncio.ensure_future(refused(connector, mute)) for _ in range(3)]
    await asyncio.sleep(0.1)
    link, _ = await open_link(connector, sshd_rig.machine(server))
    assert not any(task.done() for task in opening)
    await link.close()
    assert {error.stage for error in await asyncio.gather(*opening)} == {"greeting"}


async def test_a_cancelled_login_leaves_no_connection(sshd_rig: SshdRig, connect: Connect) -> None:
    server = sshd_rig.start()
    connector = connect(max_logins=1)
    server.freeze()
    link = connector.link_for(sshd_rig.machine(server))
    opening = asyncio.ensure_future(link.open(print))
    await asyncio.sleep(1.3)
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    server.thaw()
    again, _ = await open_link(connector, sshd_rig.machine(server))
    await until(lambda: len(server.processes()) in (2, 3))
    await again.close()
    await until(lambda: len(server.processes()) == 1)
