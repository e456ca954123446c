"""Leases of `--route`: who asks next is sent elsewhere; taken, told, held, released, over."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_runner import SRC, Cli
from stored_fleet import MODEL, StoredFleet

from fleettui.demo.launcher import DemoFleet

ASKERS, CALLS = 8, 20


@pytest.fixture
def fleet(tmp_path: Path) -> StoredFleet:
    """Four equal machines."""
    return StoredFleet(tmp_path)


def test_askers_one_after_the_other_go_round_the_machines(fleet: StoredFleet) -> None:
    assert [fleet.route("--hold", "5m") for _ in range(5)] == ["a", "b", "c", "d", "a"]


def test_eight_processes_that_ask_at_once_are_spread_evenly(fleet: StoredFleet, tmp_path: Path) -> None:
    """Real calls, each a process of its own, eight at a time."""
    call = f"{sys.executable} -m fleettui --route {MODEL} --format name -q --hold 10m || echo failed"
    loop = f"i=0; while [ $i -lt {CALLS} ]; do {call}; i=$((i+1)); done"
    askers = [
        subprocess.Popen(
            ["/bin/sh", "-c", loop], env={**fleet.environment, "PYTHONPATH": SRC},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(ASKERS)
    ]  # fmt: skip
    outputs = [asker.communicate(timeout=240) for asker in askers]
    assert [said for _, said in outputs] == [""] * ASKERS
    answers = [name for found, _ in outputs for name in found.split()]
    counts = {name: answers.count(name) for name in sorted(set(answers))}
    assert len(answers) == ASKERS * CALLS
    assert set(counts) == set("abcd"), counts
    assert all(abs(count - 40) <= 1 for count in counts.values()), counts


def test_the_lease_of_a_killed_asker_is_over_in_its_time(fleet: StoredFleet) -> None:
    command = [sys.executable, "-m", "fleettui", "--route", MODEL, "--format", "name", "--hold", "2s"]
    asker = subprocess.Popen(
        command, env={**fleet.environment, "PYTHONPATH": SRC}, stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert asker.stdout is not None
    assert asker.stdout.readline() == "a\n"
    asker.send_signal(signal.SIGKILL)
    asker.wait(10)
    asker.stdout.close()
    (lease,) = fleet.leases()
    assert lease.machine == "a"
    while time.time() < lease.until:
        time.sleep(0.05)
    assert fleet.leases() == ()
    assert fleet.route() == "a"


def test_stderr_and_json_tell_the_lease(fleet: StoredFleet) -> None:
    done = fleet.cli("--route", MODEL, "--json")
    (lease,) = fleet.leases()
    document = json.loads(done.stdout)
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(lease.until))
    assert document["chosen"]["lease"] == {"id": lease.id, "until": until}
    assert done.stderr.splitlines()[-1] == f"lease {lease.id} on a for 10 s"
    assert (lease.kind, lease.vram_mib, lease.model) == ("resident", 0, MODEL)
    assert 9.0 < lease.until - lease.taken_at <= 10.0


def test_hold_is_a_length_of_time(fleet: StoredFleet) -> None:
    fleet.route("--hold", "5m")
    (lease,) = fleet.leases()
    assert lease.until - lease.taken_at == pytest.approx(300.0)


@pytest.mark.parametrize("option", ["--no-lease", "--readonly"])
def test_who_wants_none_leaves_none(fleet: StoredFleet, option: str) -> None:
    assert [fleet.route(option), fleet.route(option)] == ["a", "a"]
    assert fleet.leases() == ()
    document = json.loads(fleet.cli("--route", MODEL, "--json", "-q", option).stdout)
    assert document["chosen"]["lease"] is None


def test_readonly_says_that_it_takes_none(fleet: StoredFleet) -> None:
    done = fleet.cli("--route", MODEL, "--readonly", "--hold", "5m")
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == "note: no lease was taken: this fleettui is --readonly"
    assert "lease" not in fleet.cli("--route", MODEL, "--readonly", "--no-lease").stderr


def test_a_machine_that_is_excluded_and_does_not_exist_is_told(fleet: StoredFleet) -> None:
    done = fleet.cli("--route", MODEL, "--exclude", "a", "--exclude", "nosuch\x1b[31m", "--format", "name")
    assert (done.returncode, done.stdout) == (0, "b\n")
    assert "note: --exclude nosuch [31m: no machine has that name" in done.stderr
    assert "\x1b" not in done.stderr
    assert "--exclude a:" not in done.stderr


def test_who_takes_none_still_goes_round_those_of_others(fleet: StoredFleet) -> None:
    assert fleet.route() == "a"
    assert fleet.route("--no-lease") == "b"
    assert fleet.route("--no-lease", "--require-loaded") == "a", "the strict rule knows no leases"


def test_a_release_prints_nothing_and_frees_the_machine(fleet: StoredFleet) -> None:
    assert fleet.route() == "a"
    (lease,) = fleet.leases()
    done = fleet.cli("route", "--release", lease.id.upper())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert fleet.route() == "a"


def test_a_lease_that_is_over_is_told_and_exits_1(fleet: StoredFleet) -> None:
    done = fleet.cli("route", "--release", "k7qm3x9dtw")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("fleettui route: no lease 'k7qm3x9dtw' holds on the machines of ")
    quiet = fleet.cli("route", "--release", "k7qm3x9dtw", "-q")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (1, "", "")
    document = json.loads(fleet.cli("route", "--release", "k7qm3x9dtw", "-q", "--json").stdout)
    assert document == {"schema": 1, "released": None, "exit_code": 1}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--release x m", "leave out MODEL"),
        ("", "required: MODEL"),
        ("m --no-lease --hold 5m", "--no-lease takes none"),
        ("m --hold 0", "not more than 0 seconds"),
        ("m --hold 5y", "not a number of seconds"),
        ("m --top 0", "not a whole number from 1 on"),
        ("m --context 32x", "is not a number of tokens: write 32768 or 32k"),
        ("--release x --readonly", "--readonly"),
        ("m --warm --readonly", "--readonly"),
    ],
)
def test_what_does_not_go_together_is_exit_2(cli: Cli, words: str, text: str) -> None:
    done = cli("route", *words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr


def test_a_state_folder_that_cannot_be_written_costs_the_lease_alone(
    demo_fleet: DemoFleet, demo_cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way of a folder")
    done = demo_cli("--route", "llama3.1:70b", "--format", "name", "--state-dir", str(tmp_path / "file"))
    assert (done.returncode, done.stdout) == (0, "ada\n")
    assert "note: no lease was taken: " in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_key_comes_back_to_its_machine_as_long_as_it_is_among_the_best(fleet: StoredFleet) -> None:
    homes = {key: fleet.route("--sticky", key) for key in ("talk-1", "talk-2", "talk-3", "talk-4", "talk-5")}
    assert {key: fleet.route("--sticky", key) for key in homes} == homes, "leases do not move it"
    assert len(set(homes.values())) > 1
    gone = homes["talk-1"]
    assert fleet.route("--sticky", "talk-1", "--exclude", gone) != gone


def test_top_lists_what_to_fall_back_on_and_leases_the_first(fleet: StoredFleet) -> None:
    assert fleet.route("--top", "3").split() == ["a", "b", "c"]
    assert [lease.machine for lease in fleet.leases()] == ["a"]
