"""A machine joins by approval: proven with the log of a real sshd.

At most a key exchange before the approval, exactly one login after it, nothing after a rejection.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path

import pytest
from sshd_rig import SshdRig, wait_until
from trust_fleet import (
    TrustFleet,
    assert_no_login,
    contacts,
    cycles,
    is_up,
    logins,
    on_terminal,
    until,
)

from fleettui.store.database import Store
from fleettui.store.snapshots import load_for_routing

WRONG = "SHA256:" + "A" * 43


@pytest.fixture
def fleet(sshd_rig: SshdRig, tmp_path: Path) -> TrustFleet:
    folder = tmp_path / "machines"
    folder.mkdir()
    return TrustFleet(sshd_rig, folder, tmp_path / "state")


async def kept(fleet: TrustFleet, name: str) -> None:
    """The key that waits is in the state file: at the latest with the next cycle."""

    def is_kept() -> bool:
        connection = sqlite3.connect(fleet.state / "state.db")
        try:
            found = connection.execute(
                "SELECT 1 FROM trust_decisions WHERE name = ? AND offer_fingerprint != ''", (name,)
            )
            return found.fetchone() is not None
        finally:
            connection.close()

    await asyncio.to_thread(wait_until, is_kept)


async def test_pending_then_approved_elsewhere_is_exactly_one_login(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=False)
    fleet.write("ada", server)
    async with fleet.service() as service:
        ada = await until(service, lambda m: m.link.offer is not None and m.link.offer.expires_at)
        assert ada.trust == "pending"
        assert ada.link.offer is not None
        assert ada.link.offer.fingerprint == server.fingerprint()
        assert ada.reasons[0].text.endswith("fleettui machines approve ada")
        await cycles(service)
        await kept(fleet, "ada")
        assert_no_login(server)
        done = await fleet.command("machines", "approve", "ada", "--yes")
        assert done.returncode == 0, done.stderr
        assert_no_login(server)
        await until(service, is_up)
        await cycles(service)
        assert logins(server) == 1
    assert logins(server) == 1


async def test_without_a_running_fleettui_the_next_status_logs_in(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=False)
    fleet.write("ada", server)
    assert fleet.run("status").returncode == 4
    code, listed = fleet.documents("machines", "list", "--pending")
    assert code == 0
    offered = listed["machines"][0]["_trust"]["offered"]
    assert offered["fingerprint"] == server.fingerprint()
    assert_no_login(server)
    code, approved = fleet.documents("machines", "approve", "ada", "--fingerprint", offered["fingerprint"])
    assert (code, approved["machines"][0]["outcome"]) == (0, "approved")
    assert_no_login(server)
    assert fleet.run("status").returncode == 0
    assert logins(server) == 1
    assert fleet.run("machines", "list", "--pending").stdout == "no machine waits for approval\n"


async def test_a_pin_survives_and_covers_neither_another_address_nor_another_fleet(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=False)
    fleet.write("ada", server)
    assert fleet.run("machines", "approve", "ada", "--fingerprint", server.fingerprint()).returncode == 0
    for _ in range(2):
        async with fleet.service() as service:
            await until(service, is_up)
    assert logins(server) == 2
    twin = fleet.rig.start(is_trusted=False)
    twin.write_host_keys(server.key_number)  # a cloned disk: the same key at another address
    twin.restart()
    assert twin.fingerprint() == server.fingerprint()
    fleet.write("ada", twin)
    async with fleet.service() as service:
        ada = await until(service, lambda m: m.trust != "approved")
        assert ada.trust == "pending"
    assert_no_login(twin)
    other = TrustFleet(fleet.rig, fleet.folder.with_name("demo"), fleet.state)
    other.folder.mkdir()
    other.write("ada", server)
    server.restart()
    assert other.run("status").returncode == 4
    assert_no_login(server)


async def test_rejecting_ends_the_connection_and_every_contact(fleet: TrustFleet) -> None:
    """Also where known_hosts has the key."""
    server = fleet.rig.start(is_trusted=True)
    fleet.write("ada", server)
    async with fleet.service() as service:
        await until(service, is_up)
        done = await fleet.command("machines", "reject", "ada", "--yes")
        assert done.returncode == 0, done.stderr
        ada = await until(service, lambda m: m.trust == "rejected" and m.link.error)
        assert "was rejected by" in (ada.link.error or "")
        await asyncio.to_thread(wait_until, lambda: len(server.processes()) == 1)
        await asyncio.to_thread(wait_until, lambda: not server.remote_processes())  # it ends on end of file
        before = contacts(server)
        await cycles(service)
        assert contacts(server) == before
    assert fleet.run("status").returncode == 4
    assert fleet.run("machines", "doctor").returncode == 1
    assert contacts(server) == before, "nothing at all is asked of a rejected machine"


async def test_removal_overrides_known_hosts_until_approved_again(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=True)
    path = fleet.write("ada", server)
    async with fleet.service() as service:
        await until(service, is_up)
        done = await fleet.command("machines", "remove", "ada", "--yes")
        assert done.returncode == 0, done.stderr
        assert path.exists()
        await until(service, lambda m: m.trust == "pending" and m.link.offer is not None)
        await asyncio.to_thread(wait_until, lambda: len(server.processes()) == 1)
        assert logins(server) == 1
    server.restart()
    fleet.folder.joinpath("bora.yaml").write_text(path.read_text().replace("name: ada", "name: bora"))
    assert fleet.run("status").returncode == 4
    assert_no_login(server)  # nor under another name
    fleet.folder.joinpath("bora.yaml").unlink()
    assert fleet.run("machines", "approve", "ada", "--yes").returncode == 0
    assert fleet.run("status").returncode == 0
    assert logins(server) == 1


async def test_of_two_files_for_one_machine_one_can_be_removed(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=True)
    fleet.write("ada", server)
    path = fleet.write("twin", server)
    async with fleet.service() as service:
        await until(service, is_up)
        await until(service, is_up, "twin")
        done = await fleet.command("machines", "remove", "twin", "--yes", "--delete-file")
        assert (done.returncode, path.exists()) == (0, False)
        await cycles(service)
        ada = service.snapshot.find("ada")
        assert ada is not None
        assert is_up(ada)
    assert logins(server) == 2


async def test_an_expired_entry_is_not_asked_again_by_itself(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=False)
    fleet.write("ada", server)
    async with fleet.service() as service:
        await until(service, lambda m: m.link.offer is not None and m.link.offer.expires_at)
        fleet.offset_s = 901.0
        ada = await until(service, lambda m: "within 15 min" in (m.link.error or ""))
        assert ada.trust == "pending"
        assert "within 15 min" in ada.reasons[0].text
        before = contacts(server)
        await cycles(service)
    async with fleet.service() as service:
        await until(service, lambda m: "within 15 min" in (m.link.error or ""))
        await cycles(service)
        assert contacts(server) == before, "expired stays expired, also after a restart"
        assert service.trust is not None
        shown = await service.trust.read_key("ada")
        assert shown.offer.fingerprint == server.fingerprint()
        assert contacts(server) == before + 1
        ada = await until(service, lambda m: m.link.offer is not None and m.link.offer.expires_at)
        assert_no_login(server)
        await service.trust.approve("ada")
        await until(service, is_up)
    assert logins(server) == 1


async def test_a_key_accepted_with_ssh_meanwhile_counts(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=False)
    fleet.write("ada", server)
    async with fleet.service() as service:
        await until(service, lambda m: m.trust == "pending" and m.link.offer)
        fleet.rig.trust(server)
        await until(service, is_up)
        fleet.offset_s = 901.0
        await cycles(service)
        ada = service.snapshot.find("ada")
        assert ada is not None
        assert is_up(ada), "what was pending once does not expire any more"
    assert logins(server) == 1


async def test_a_changed_key_stops_polling_and_needs_its_own_approval(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=False)
    fleet.write("ada", server)
    old = server.fingerprint()
    assert fleet.run("machines", "approve", "ada", "--fingerprint", old).returncode == 0
    async with fleet.service() as service:
        await until(service, is_up)
        server.write_host_keys(number=77)
        server.restart()
        new = server.fingerprint()
        ada = await until(service, lambda m: m.trust == "key_changed")
        assert ada.link.offer is not None
        assert (ada.link.offer.fingerprint, ada.link.offer.expected) == (new, (old,))
        assert f"fleettui machines approve ada --fingerprint {new}" in ada.reasons[0].text
        await cycles(service)
        assert_no_login(server)
        refused = await fleet.command("machines", "approve", "ada", "--yes")
        assert refused.returncode == 1
        assert "HOST KEY CHANGED" in refused.stderr
        assert old in refused.stderr
        assert new in refused.stderr
        assert_no_login(server)
        assert (await fleet.command("machines", "approve", "ada", "--fingerprint", new)).returncode == 0
        await until(service, is_up)
        await cycles(service)
        assert logins(server) == 1


async def test_another_key_than_the_one_given_pins_nothing(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=False, host_keys=("ed25519", "rsa"))
    fleet.write("ada", server)
    done = fleet.run("machines", "approve", "ada", "--fingerprint", WRONG)
    assert (done.returncode, done.stdout) == (1, "")
    assert server.fingerprint("ed25519") in done.stderr
    assert WRONG in done.stderr
    assert fleet.run("status").returncode == 4
    assert_no_login(server)


async def test_a_pin_for_a_wrong_key_given_beforehand_lets_nothing_through(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=True)
    target = f"{fleet.rig.user}@{server.address}:{server.port}"
    assert fleet.run("machines", "add", target, "--name", "ada", "--fingerprint", WRONG).returncode == 0
    _, document = fleet.documents("status")
    assert document["machines"][0]["trust"] == "key_changed", "known_hosts does not help"
    assert_no_login(server)


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
async def test_any_key_of_the_machine_can_be_the_approved_one(fleet: TrustFleet, kind: str) -> None:
    server = fleet.rig.start(is_trusted=False, host_keys=("ed25519", "ecdsa", "rsa"))
    fleet.write("ada", server)
    code, document = fleet.documents("machines", "approve", "ada", "--fingerprint", server.fingerprint(kind))
    assert (code, document["machines"][0]["key_type"]) == (0, kind.upper())
    assert_no_login(server)
    assert fleet.run("status").returncode == 0
    assert logins(server) == 1


async def test_add_with_a_fingerprint_is_polled_without_a_question(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=False)
    async with fleet.service() as service:
        target = f"{fleet.rig.user}@{server.address}:{server.port}"
        added = await fleet.command(
            "machines", "add", target, "--name", "ada", "--fingerprint", server.fingerprint()
        )
        assert added.returncode == 0, added.stderr
        ada = await until(service, is_up)
        assert ada.trust == "approved"
        await cycles(service)
    assert logins(server) == 1
    again = fleet.run("machines", "add", target, "--name", "ada", "--fingerprint", server.fingerprint())
    assert again.returncode == 0
    assert "is declared already" in again.stdout


async def test_two_processes_that_approve_at_once_agree(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=False)
    fleet.write("ada", server)
    words = ("machines", "approve", "ada", "--fingerprint", server.fingerprint())
    both = [fleet.start_command(*words) for _ in range(2)]
    assert [process.communicate(timeout=60)[1] for process in both] == ["", ""]
    assert [process.returncode for process in both] == [0, 0]
    connection = sqlite3.connect(fleet.state / "state.db")
    assert connection.execute("SELECT kind, fingerprint FROM trust_decisions").fetchall() == [
        ("pinned", server.fingerprint())
    ]
    connection.close()
    assert_no_login(server)


async def test_a_jump_host_is_approved_as_a_machine(fleet: TrustFleet) -> None:
    jump, server = fleet.rig.start(is_trusted=False), fleet.rig.start(is_trusted=False)
    fleet.write("ada", server, jump=f"{fleet.rig.user}@{jump.where}")
    told = fleet.run("machines", "approve", "ada", "--fingerprint", server.fingerprint())
    assert told.returncode == 4
    assert f"jump host {jump.where}: unknown host key" in told.stderr
    assert "add it as a machine and approve it" in told.stderr
    assert_no_login(jump)
    assert contacts(server) == 0
    fleet.write("bastion", jump)
    async with fleet.service() as service:
        await until(service, lambda m: m.trust == "pending" and m.link.offer, "bastion")
        await kept(fleet, "bastion")
        assert (await fleet.command("machines", "approve", "bastion", "--yes")).returncode == 0
        await until(service, is_up, "bastion")
        await until(service, lambda m: m.trust == "pending" and m.link.offer)
        assert_no_login(server)
        await kept(fleet, "ada")
        assert (await fleet.command("machines", "approve", "ada", "--yes")).returncode == 0
        await until(service, is_up)
        assert logins(server) == 1
        assert (await fleet.command("machines", "reject", "bastion", "--yes")).returncode == 0
        await until(service, lambda m: m.link.state == "failed" and "jump host" in (m.link.error or ""))
        await asyncio.to_thread(wait_until, lambda: len(jump.processes()) == 1, 20.0)


async def test_unreadable_decisions_stop_every_contact_that_could_be_wrong(fleet: TrustFleet) -> None:
    server, named = fleet.rig.start(is_trusted=True), fleet.rig.start(is_trusted=False)
    fleet.write("ada", server)
    fleet.write("named", named, host_key=named.fingerprint())
    fleet.state.mkdir()
    (fleet.state / "state.db").write_bytes(b"not a database, but long enough to be read as one" * 50)
    _, document = fleet.documents("status")
    ada, by_file = document["machines"]
    assert (ada["trust"], by_file["trust"]) == ("pending", "approved")
    assert "damaged; move it away" in ada["reasons"][0]
    assert contacts(server) == 0
    assert logins(named) == 1
    done = fleet.run("machines", "approve", "ada", "--yes")
    assert (done.returncode, done.stdout) == (2, "")
    assert "damaged; move it away" in done.stderr


async def test_on_a_terminal_the_key_is_shown_and_yes_approves_it(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=False)
    fleet.write("ada", server)
    said, out, code = await asyncio.to_thread(
        lambda: on_terminal(fleet, "machines", "approve", "ada", answer="n")
    )
    assert (out, code) == ("", 1)
    assert server.fingerprint() in said
    assert "for f in /etc/ssh/ssh_host_*_key.pub" in said
    assert "the full fingerprint decides" in said
    assert "ada: not approved" in said
    said, out, code = await asyncio.to_thread(
        lambda: on_terminal(fleet, "machines", "approve", "ada", answer="y")
    )
    assert code == 0
    assert out.startswith(f"ada is approved with ED25519 {server.fingerprint()}")
    assert_no_login(server)
    assert fleet.run("status").returncode == 0


async def test_a_key_that_changes_while_the_operator_compares_is_not_approved(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=False)
    fleet.write("ada", server)

    def change() -> None:
        server.write_host_keys(number=78)
        server.restart()

    said, out, code = await asyncio.to_thread(
        lambda: on_terminal(fleet, "machines", "approve", "ada", answer="y", before_answer=change)
    )
    assert (out, code) == ("", 1)
    assert "shows another key" in said
    assert_no_login(server)


async def test_a_changed_key_takes_the_typed_name(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=True)
    fleet.write("ada", server)
    old = server.fingerprint()
    server.write_host_keys(number=79)
    server.restart()
    for answer, code in (("y", 1), ("ada", 0)):
        said, _, found = await asyncio.to_thread(
            lambda answer=answer: on_terminal(fleet, "machines", "approve", "ada", answer=answer)  # type: ignore[misc]
        )
        assert found == code, said
        assert "HOST KEY CHANGED" in said
        assert old in said
        assert server.fingerprint() in said
    assert_no_login(server)
    assert fleet.run("status").returncode == 0


def stored_models(fleet: TrustFleet) -> list[str]:
    """Loaded models of ada as they were stored last."""
    store = Store.open_readonly(str(fleet.state))
    if store is None:
        return []
    with store:
        stored = load_for_routing(store, str(fleet.folder))
    ada = stored.fleet.find("ada") if stored is not None else None
    return [] if ada is None else [copy.name for copy in ada.loaded]


async def test_removal_shows_what_is_loaded_and_takes_the_typed_name(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=True)
    ollama = fleet.rig.ollama()
    ollama.answers["/api/ps"] = {
        "models": [{"name": "llama3.1:8b", "size": 1, "size_vram": 1, "digest": "d"}]
    }
    path = fleet.write("ada", server)
    path.write_text(
        path.read_text().replace("engines: []", f"engines: [{{kind: ollama, port: {ollama.port}}}]")
    )
    async with fleet.service() as service:
        await until(service, lambda m: is_up(m) and m.loaded)
        await asyncio.to_thread(wait_until, lambda: stored_models(fleet) == ["llama3.1:8b"])
    said, out, code = await asyncio.to_thread(
        lambda: on_terminal(fleet, "machines", "remove", "ada", "--delete-file", answer="no")
    )
    assert (out, code, path.exists()) == ("", 1, True)
    assert "llama3.1:8b" in said
    assert "gpu-host" in said
    said, out, code = await asyncio.to_thread(
        lambda: on_terminal(fleet, "machines", "remove", "ada", "--delete-file", answer="ada")
    )
    assert (code, path.exists()) == (0, False)
    assert "is deleted" in out
    assert not any("generate" in request or "POST" in request for request in ollama.requests)
    assert json.loads(fleet.run("machines", "list", "--json").stdout)["total"] == 0


async def test_a_revoked_key_cannot_be_approved(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=False)
    with fleet.rig.known_hosts.open("a") as file:
        file.write(f"@revoked * {server.host_key_line}\n")
    fleet.write("ada", server)
    done = fleet.run("machines", "approve", "ada", "--fingerprint", server.fingerprint())
    assert (done.returncode, done.stdout) == (1, "")
    assert "revoked" in done.stderr
    assert_no_login(server)


async def test_no_answer_is_exit_4(fleet: TrustFleet) -> None:
    server = fleet.rig.start(is_trusted=False)
    fleet.write("ada", server)
    server.stop()
    done = fleet.run("machines", "approve", "ada", "--fingerprint", WRONG)
    assert (done.returncode, done.stdout) == (4, "")
    assert "connection refused" in done.stderr
