"""`machines doctor` on real sshd servers: each way a login can fail has its own verdict."""

from __future__ import annotations

import contextlib
import socket
import threading

import psutil
import pytest
from doctor_runs import Found, examine
from links import until
from sshd_rig import SshdRig, SshdServer, black_hole, free_port

from fleettui.fleet.trust_book import TrustBook
from fleettui.model.machine import Machine, SshSettings
from fleettui.model.record import replace
from fleettui.model.trust import TrustDecision, TrustKind

AFTER_THE_KEY = [
    "authentication", "shell", "forwarding", "gpu_tool", "driver", "persistence", "engine", "clock",
    "journal", "disk",
]  # fmt: skip


async def one(rig: SshdRig, machine: Machine, **settings: object) -> Found:
    (found,) = await examine(rig.settings(**settings), machine)
    return found


def assert_nothing_authenticated(server: SshdServer) -> None:
    log = server.log_text()
    assert "Connection from" in log
    assert "userauth-request" not in log
    assert "Accepted" not in log


async def test_an_unknown_key_shows_the_fingerprint_and_how_to_approve(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start(is_trusted=False)
    found = await one(sshd_rig, sshd_rig.machine(server, "gpu one"))
    key = found["host_key"]
    assert key.state == "fail"
    assert key.evidence.startswith(f"unknown key ED25519 {server.fingerprint()} (")
    assert key.evidence.endswith("nothing was sent")
    assert key.hint is not None
    assert key.hint.endswith("fleettui machines approve 'gpu one'")
    assert found.skipped_for("needs host key") == AFTER_THE_KEY
    assert_nothing_authenticated(server)


async def test_a_changed_key_shows_both(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start()
    old = server.fingerprint()
    server.kill()
    server.write_host_keys(number=77)
    server.start()
    server.clear_log()
    found = await one(sshd_rig, sshd_rig.machine(server))
    key = found["host_key"]
    assert key.state == "fail"
    assert key.evidence == (
        f"HOST KEY CHANGED: ED25519 {server.fingerprint()}, known is {old}; nothing was sent"
    )
    assert key.hint == "find out why it changed; if it is right: fleettui machines approve ada"
    assert found.skipped_for("needs host key") == AFTER_THE_KEY
    assert_nothing_authenticated(server)


async def test_a_revoked_key_is_never_approved(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start()
    line = sshd_rig.known_hosts.read_text()
    sshd_rig.known_hosts.write_text(f"@revoked {line}")
    found = await one(sshd_rig, sshd_rig.machine(server))
    key = found["host_key"]
    assert key.state == "fail"
    assert key.evidence == (
        f"host key ED25519 {server.fingerprint()} is revoked in known_hosts; nothing was sent"
    )
    assert "approve" not in (key.hint or "")
    assert_nothing_authenticated(server)


def decide(rig: SshdRig, server: SshdServer, kind: TrustKind) -> TrustBook:
    book = TrustBook(str(rig.folder / "state"), str(rig.folder / "machines"))
    decision = TrustDecision("ada", server.where, kind, "ED25519", server.fingerprint(), 1_700_000_000.0)
    book.change({("ada", server.where): lambda before: decision})
    return book


async def test_an_approved_key_needs_no_known_hosts(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start(is_trusted=False)
    book = decide(sshd_rig, server, "pinned")
    (found,) = await examine(sshd_rig.settings(), sshd_rig.machine(server), book=book)
    assert found["host_key"].evidence == f"ED25519 {server.fingerprint()}, approved"
    assert found["shell"].state == "pass"


async def test_a_rejected_machine_is_not_contacted(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start()
    book = decide(sshd_rig, server, "rejected")
    (found,) = await examine(sshd_rig.settings(), sshd_rig.machine(server), book=book)
    key = found["host_key"]
    assert found.skipped_for("not contacted, see host key") == ["name", "tcp"]
    assert key.state == "fail"
    assert "was rejected" in key.evidence
    assert (key.hint or "").endswith("fleettui machines approve ada")
    assert found.skipped_for("needs host key") == AFTER_THE_KEY
    assert "Connection from" not in server.log_text()


async def test_a_refused_login_is_not_tried_again(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start()
    (server.folder / "authorized_keys").write_text("")
    found = await one(sshd_rig, sshd_rig.machine(server))
    login = found["authentication"]
    assert found["host_key"].state == "pass"
    assert login.state == "fail"
    assert login.evidence == f"{server.where}: no key of ours may log in as {sshd_rig.user}"
    assert "authorized_keys" in (login.hint or "")
    assert found["shell"].evidence == "needs authentication"
    assert server.log_text().count("Connection from") == 1


async def test_an_encrypted_key_is_told_apart_from_a_refusal(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start()
    locked = sshd_rig.write_key("locked", passphrase="secret", number=101)
    found = await one(sshd_rig, sshd_rig.machine(server, identity=str(locked)))
    assert found["file"].state == "pass"
    assert found["authentication"].state == "fail"
    assert found["authentication"].hint == f"key {locked} is encrypted: start ssh-agent or ssh-add"


async def test_an_identity_that_is_not_there_is_the_files(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start()
    found = await one(sshd_rig, sshd_rig.machine(server, identity="~/.ssh/id_gone"))
    assert found["file"].state == "warn"
    assert "ssh.identity ~/.ssh/id_gone is no readable file" in found["file"].evidence
    assert found["authentication"].state == "fail"
    assert "missing" in (found["authentication"].hint or "")


async def test_interactive_logins_are_told_apart(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start(
        options={
            "AuthenticationMethods": "publickey,keyboard-interactive",
            "KbdInteractiveAuthentication": "yes",
            "UsePAM": "yes",
        }
    )
    found = await one(sshd_rig, sshd_rig.machine(server))
    assert found["authentication"].state == "fail"
    assert "needs interactive login (keyboard-interactive)" in found["authentication"].evidence


async def test_a_name_that_does_not_resolve(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start()
    machine = replace(sshd_rig.machine(server), hostname="no-such-machine.invalid")
    found = await one(sshd_rig, machine)
    assert found["name"].state == "fail"
    assert "no-such-machine.invalid" in found["name"].evidence
    assert found.skipped_for("needs name") == ["tcp", "host_key", *AFTER_THE_KEY]
    assert found["address"].state == "fail"
    assert "network.hostname" in (found["address"].hint or "")


async def test_a_name_server_that_gives_no_answer_costs_3_s(
    sshd_rig: SshdRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = sshd_rig.start()
    release = threading.Event()

    def hang(*_: object) -> list[object]:
        release.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    try:
        found = await one(sshd_rig, replace(sshd_rig.machine(server), hostname="ada.lan"))
    finally:
        release.set()
    assert found["name"].state == "fail"
    assert found["name"].evidence == "ada.lan: the name server gave no answer within 3 s"
    assert "DNS" in (found["name"].hint or "")
    assert found["address"].state == "fail"
    assert "no answer of the name server within 3 s" in found["address"].evidence


async def test_a_closed_port(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start()
    machine = sshd_rig.machine(server)
    closed = free_port(server.address)
    found = await one(sshd_rig, replace(machine, ssh=replace(machine.ssh, port=closed)))
    assert found["name"].state == "pass"
    assert found["tcp"].state == "fail"
    assert found["tcp"].evidence == f"{server.address}:{closed}: connection refused"
    assert found["tcp"].hint == "is sshd running there?"
    assert found.skipped_for("needs TCP") == ["host_key", *AFTER_THE_KEY]


async def test_a_black_hole_costs_3_s(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start()
    machine = sshd_rig.machine(server)
    with black_hole(server.address) as port:
        found = await one(sshd_rig, replace(machine, ssh=replace(machine.ssh, port=port)))
    assert found["tcp"].state == "fail"
    assert found["tcp"].evidence == f"{server.address}:{port}: no answer within 3 s"
    assert "firewall" in (found["tcp"].hint or "")


async def test_a_port_that_never_greets_costs_3_s(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start()
    machine = sshd_rig.machine(server)
    with socket.create_server((server.address, 0)) as mute:
        port = mute.getsockname()[1]
        found = await one(sshd_rig, replace(machine, ssh=replace(machine.ssh, port=port)))
    assert found["tcp"].state == "pass"
    assert found["host_key"].state == "fail"
    assert "no SSH greeting within 3 s" in found["host_key"].evidence
    assert found["authentication"].evidence == "needs host key"


def proxy_commands() -> list[psutil.Process]:
    """Children of ours that sleep; one that ends while it is listed is none."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.name() == "sleep":
                found.append(child)
    return found


async def test_a_proxy_command_that_says_nothing_costs_3_s(sshd_rig: SshdRig) -> None:
    sshd_rig.ssh_config.write_text("Host ada.invalid\n  ProxyCommand sleep 61.7\n")
    found = await one(sshd_rig, Machine("ada", "r", "ada.invalid", ssh=SshSettings(user=sshd_rig.user)))
    assert found["name"].evidence == "ProxyCommand connects by itself"
    assert found["tcp"].evidence == "ada.invalid:22 by ProxyCommand"
    assert found["host_key"].state == "fail"
    assert "no SSH greeting within 3 s" in found["host_key"].evidence
    await until(lambda: not proxy_commands())


async def test_a_deadline_ends_what_is_left(sshd_rig: SshdRig) -> None:
    server = sshd_rig.start()
    machine = sshd_rig.machine(server)
    with black_hole(server.address) as port:
        slow = replace(machine, ssh=replace(machine.ssh, port=port))
        (found,) = await examine(sshd_rig.settings(), slow, deadline_s=0.3)
    assert (found["tcp"].state, found["tcp"].evidence) == ("fail", "not done before the deadline")
    assert found["address"].evidence == "the deadline is over"
    assert found.checkup.verdict == "fail"


async def test_jump_hosts_are_part_of_the_way(sshd_rig: SshdRig) -> None:
    bastion, server = sshd_rig.start(), sshd_rig.start()
    good = sshd_rig.machine(server, jump=bastion.where)
    closed = f"{bastion.address}:{free_port(bastion.address)}"
    bad = sshd_rig.machine(server, "bad", jump=closed)
    (found, refused) = await examine(sshd_rig.settings(), good, bad)
    assert found["name"].evidence == f"the jump host {bastion.where} resolves it"
    assert found["tcp"].evidence == f"{server.where} through {bastion.where}"
    assert found["shell"].state == "pass"
    assert refused["tcp"].state == "fail"
    assert refused["tcp"].evidence == f"jump host {closed}: connection refused"


FORCED = {
    "restricted": (
        'echo "This account is restricted."; exit 1',
        "the account is restricted; it said 'This account is restricted.'",
        "ForceCommand",
    ),
    "another command": (
        "echo backup done",
        "the account is forced to another command; it said 'backup done'",
        "ForceCommand",
    ),
    "no shell": (
        'echo "This account is currently not available."; exit 1',
        "the account has no login shell; it said 'This account is currently not available.'",
        "chsh",
    ),
    "wordless": ("exit 3", "no shell: the session ended with exit code 3", "nologin"),
    "sftp only": (
        "internal-sftp",
        "the account is forced to another command; it said 'This service allows sftp connections only.'",
        "ForceCommand",
    ),
    "mute": ("cat >/dev/null", "logged in, the shell gave no answer within 3 s", "ForceCommand"),
}


@pytest.mark.parametrize("case", FORCED)
async def test_accounts_without_a_shell_for_us(sshd_rig: SshdRig, case: str) -> None:
    command, evidence, hint = FORCED[case]
    server = sshd_rig.start(options={"ForceCommand": command})
    found = await one(sshd_rig, sshd_rig.machine(server))
    assert found["authentication"].state == "pass"
    assert (found["shell"].state, found["shell"].evidence) == ("fail", evidence)
    assert hint in (found["shell"].hint or "")
    assert found.skipped_for("needs shell") == [
        "gpu_tool",
        "driver",
        "persistence",
        "clock",
        "journal",
        "disk",
    ]
    assert found["forwarding"].state == "pass"


async def test_a_noisy_shell_works_and_is_a_warning(sshd_rig: SshdRig) -> None:
    noise = 'echo "Welcome to gpu-07"; exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"'
    server = sshd_rig.start(options={"ForceCommand": noise})
    found = await one(sshd_rig, sshd_rig.machine(server))
    assert found["shell"].state == "warn"
    assert found["shell"].evidence == "answers, and prints first: 'Welcome to gpu-07'"
    assert "interactive" in (found["shell"].hint or "")
    assert found["disk"].state == "pass"
