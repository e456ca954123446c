"""Order of trust, tombstones, expiry; the words to type and to compare."""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from builders import make_machine
from fleettui.decide.trust import Standing, TrustTable, clear_offer, note_offer
from fleettui.model.approval import COMPARE_LINE, code_of, is_fingerprint, machines_command
from fleettui.model.machine import Machine, SshSettings
from fleettui.model.trust import NOT_FOR_ADDRESS, NOT_FOR_NAME, SeenKey, TrustDecision

NOW = 10_000.0
A, B = "ada.lan:22", "bora.lan:22"
K1, K2 = "SHA256:" + "a" * 43, "SHA256:" + "b" * 43
ADA = make_machine("ada")


def seen(fingerprint: str = K1, at: float = NOW, expected: tuple[str, ...] = ()) -> SeenKey:
    return SeenKey("ED25519", fingerprint, at, expected)


def standing(
    *decisions: TrustDecision, machine: Machine = ADA, address: str = A, now: float = NOW, knows: bool = False
) -> Standing:
    return TrustTable(decisions).standing(machine, address, now, lambda: knows)


def with_ssh(**ssh: object) -> Machine:
    return replace(ADA, ssh=SshSettings(**ssh))  # type: ignore[arg-type]


PINNED = TrustDecision("ada", A, "pinned", "ED25519", K1, 1.0, "mia@desk", "approve")
REJECTED = TrustDecision("ada", A, "rejected", "ED25519", K1, 86_400.0, "mia@desk", "reject", NOT_FOR_ADDRESS)
REMOVED = TrustDecision("ada", A, "removed", "", "", 1.0, "mia@desk", "remove", NOT_FOR_ADDRESS)


def test_without_a_decision_known_hosts_counts() -> None:
    assert standing() == Standing("approved", (), True, None)


def test_a_pin_is_all_that_counts() -> None:
    assert standing(PINNED).pins == (K1,)


def test_a_pin_covers_neither_another_address_nor_another_name() -> None:
    assert standing(PINNED, address=B) == Standing()
    assert standing(PINNED, machine=make_machine("ada2")) == Standing()


@pytest.mark.parametrize("ssh", [{"host_key": K2}, {"is_local": True}])
@pytest.mark.parametrize("decision", [PINNED, REJECTED, REMOVED])
def test_the_file_comes_first(ssh: dict[str, object], decision: TrustDecision) -> None:
    assert standing(decision, machine=with_ssh(**ssh)) == Standing()


def test_a_rejected_machine_is_not_asked_and_says_by_whom_and_what_to_do() -> None:
    found = standing(REJECTED, knows=True)
    assert found.trust == "rejected"
    assert found.refusal == (
        f"ada.lan:22: host key ED25519 {K1} was rejected by mia@desk on 1970-01-02, nothing is asked; "
        "if it is right after all: fleettui machines approve ada"
    )
    assert found.offer is not None
    assert (found.offer.fingerprint, found.offer.code) == (K1, code_of(K1))


def test_a_rejection_holds_for_its_address_others_are_asked_for_approval() -> None:
    elsewhere = standing(REJECTED, address=B, knows=True)
    assert (elsewhere.refusal, elsewhere.counts_known_hosts) == (None, False)
    other_name = standing(REJECTED, machine=make_machine("mallory"), knows=True)
    assert (other_name.refusal, other_name.counts_known_hosts) == (None, False)


def test_removal_takes_known_hosts_away_and_nothing_else() -> None:
    assert standing(REMOVED, knows=True) == Standing(counts_known_hosts=False)
    assert standing(REMOVED, address=B, knows=True) == Standing(counts_known_hosts=False)
    assert standing(REMOVED, machine=make_machine("ada2")) == Standing(counts_known_hosts=False)
    narrow = replace(REMOVED, tombstone=NOT_FOR_NAME)
    assert standing(narrow, machine=make_machine("ada2")) == Standing(), "another file has this address too"


def test_pending_expires_after_15_minutes_and_stays_expired() -> None:
    entry = TrustDecision("ada", A, "pending", offer=seen(at=NOW))
    assert standing(entry, now=NOW + 899.9).refusal is None
    for later in (900.0, 1e9):
        found = standing(entry, now=NOW + later)
        assert found.trust == "pending"
        assert "not approved within 15 min" in (found.refusal or "")
        assert (found.refusal or "").endswith("fleettui machines approve ada")


def test_a_key_put_into_known_hosts_meanwhile_is_an_approval_but_not_after_a_removal() -> None:
    entry = TrustDecision("ada", A, "pending", offer=seen(at=NOW))
    assert standing(entry, now=NOW + 1e6, knows=True).refusal is None
    removed = replace(REMOVED, offer=seen(at=NOW))
    assert standing(removed, now=NOW + 1e6, knows=True).refusal is not None


def test_a_changed_key_never_expires() -> None:
    entry = TrustDecision("ada", A, "pending", offer=seen(expected=(K2,)))
    assert standing(entry, now=NOW + 1e9).refusal is None
    assert standing(replace(PINNED, offer=seen(K2, expected=(K1,))), now=NOW + 1e9).pins == (K1,)


def test_a_jump_host_is_trusted_by_the_pin_of_the_machine_there_and_refused_by_its_rejection() -> None:
    assert TrustTable([PINNED]).jump_pins(A) == ((K1,), True)
    assert TrustTable([REJECTED]).jump_pins(A) == ((), False)
    assert TrustTable([REMOVED]).jump_pins(A) == ((), True)
    assert TrustTable([PINNED]).jump_pins(B) == ((), True)


def test_the_first_sight_of_a_key_counts_another_key_begins_anew() -> None:
    first = note_offer(None, "ada", A, seen(at=1.0))
    assert note_offer(first, "ada", A, seen(at=500.0)) == first
    assert note_offer(first, "ada", A, seen(K2, at=500.0)).offer == seen(K2, at=500.0)
    assert note_offer(REMOVED, "ada", A, seen()).tombstone == NOT_FOR_ADDRESS


def test_what_was_decided_meanwhile_is_not_undone_by_an_older_sight() -> None:
    assert note_offer(PINNED, "ada", A, seen(K1)) == PINNED
    assert note_offer(REJECTED, "ada", A, seen(K1)) == REJECTED
    assert note_offer(PINNED, "ada", A, seen(K2, expected=(K1,))).kind == "pinned"


def test_clearing_an_offer_keeps_what_was_decided() -> None:
    assert clear_offer(TrustDecision("ada", A, "pending", offer=seen())) is None
    assert clear_offer(replace(PINNED, offer=seen(K2))) == PINNED
    assert clear_offer(replace(REMOVED, offer=seen())) == REMOVED
    assert clear_offer(None) is None


def test_a_code_is_the_start_of_the_hash_in_base32() -> None:
    digest = hashlib.sha256(b"any key").digest()
    fingerprint = "SHA256:" + base64.b64encode(digest).decode().rstrip("=")
    code = base64.b32encode(digest).decode()[:8]
    assert code_of(fingerprint) == f"{code[:4]}-{code[4:]}"
    assert code_of("SHA256:zu kurz") == ""


def test_only_a_whole_fingerprint_is_one() -> None:
    assert is_fingerprint(K1)
    for text in (
        K1[:-1],
        K1 + "a",
        K1[7:],
        "MD5:" + "a" * 43,
        "SHA256:" + "ä" * 43,
        "SHA256:" + "a" * 42 + "=",
    ):
        assert not is_fingerprint(text), text


@pytest.mark.parametrize(
    ("name", "word"), [("ada", "ada"), ("gpu-1.lan", "gpu-1.lan"), ("a b", "'a b'"), ("it's", "'it'\"'\"'s'")]
)
def test_a_command_can_be_pasted_into_a_shell(name: str, word: str) -> None:
    assert machines_command("approve", name) == f"fleettui machines approve {word}"
    told = subprocess.run(["/bin/sh", "-c", f"printf %s {word}"], capture_output=True, text=True, check=True)
    assert told.stdout == name


@pytest.mark.parametrize("shell", ["sh", "dash", "bash", "zsh", "busybox"])
def test_the_line_to_run_on_the_machine_prints_fingerprint_and_code(shell: str, tmp_path: Path) -> None:
    """Run as it is shown, on key files of three kinds; a shell this computer lacks is left out."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"no {shell} here")
    expected = set()
    for kind in ("ed25519", "ecdsa", "rsa"):
        key = tmp_path / f"ssh_host_{kind}_key"
        subprocess.run(
            ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "root@a b", "-f", str(key)], check=True
        )
        shown = subprocess.run(
            ["ssh-keygen", "-lf", f"{key}.pub"], capture_output=True, text=True, check=True
        )
        fingerprint = shown.stdout.split()[1]
        expected.add(f"{code_of(fingerprint)}  {shown.stdout.strip()}")
    line = COMPARE_LINE.replace("/etc/ssh/", f"{tmp_path}/")
    command = [path, "sh", "-c", line] if shell == "busybox" else [path, "-c", line]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert set(done.stdout.splitlines()) == expected
    assert done.stderr == ""
