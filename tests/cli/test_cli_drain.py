# ruff: noqa: E501 - lines as they are printed
"""`fleettui drain …`, `fleettui undrain`: usage, previews, refusals, flags that every command honours."""

from __future__ import annotations

import getpass
import json
import re
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Cli, write_machine
from terminal import Terminal

from fleettui.model.drain import CopyProgress, Drain, DrainLock, JournalEntry, SourceCopy
from fleettui.store.database import Store
from fleettui.store.drains import change_drain, save_copies, take_lock


@pytest.fixture
def quiet_cli(machines_dir: Path, tmp_path: Path) -> Cli:
    """The command on two machines that nobody answers for."""
    for name in ("ada", "cleo"):
        write_machine(machines_dir, name)
    return Cli({"FLEETTUI_MACHINES": str(machines_dir), "FLEETTUI_STATE_DIR": str(tmp_path / "state")})


def put_drain(cli: Cli, name: str, state: Any = "drained", **changes: Any) -> Drain:
    """A drain flag as another process would have left it."""
    now = time.time()
    drain = Drain(
        "d1", name, state, "PSU swap", "mia@jump", now - 60, changed_by="mia@jump", changed_at=now, **changes
    )
    with Store.open(cli.environment["FLEETTUI_STATE_DIR"]) as store:
        change_drain(store, cli.environment["FLEETTUI_MACHINES"], name, lambda _: drain)
    return drain


def flags_of(cli: Cli) -> set[str]:
    """Machines with a drain flag."""
    document = json.loads(cli("drain", "status", "--json").stdout)
    return {machine["name"] for machine in document["machines"]}


def wait_for(terminal: Terminal, text: str) -> None:
    """Until it was written there, in whatever colours."""
    terminal.wait_for(lambda _: text in re.sub(r"\x1b\[[0-9;]*m", "", terminal.written.decode()))


# -- usage -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("start", "ada"), "a drain wants its reason: add --reason TEXT, or look first: --dry-run"),
        (("start", "ada", "--reason", " "), "a drain wants its reason"),
        (("start", "ada", "--reason", "x"), "asks for the machine's name on a terminal; here is none: add --yes"),
        (("start", "ada", "--reason", "x", "--yes", "--readonly"), "refuses drain start"),
        (("cancel", "ada", "--readonly"), "refuses drain cancel"),
        (("start", "ada", "--dry-run", "--to", "ada"), "--to ada: a machine that is emptied is no target"),
        (("start", "ada", "--dry-run", "--until", "soon"), "--until: 'soon' is no time; write 2h"),
        (("start", "ada", "--dry-run", "--force-class", "move"), "'move' is none of last-copy, cannot, unmanaged"),
        (("start", "ada", "--dry-run", "--idle-wait", "x"), "'x' is not a number of seconds"),
        (("start",), "the following arguments are required: MACHINE"),
        (("stop",), "invalid choice: 'stop'"),
    ],
)  # fmt: skip
def test_refused_with_exit_2(quiet_cli: Cli, words: tuple[str, ...], said: str) -> None:
    done = quiet_cli("drain", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert not Path(quiet_cli.environment["FLEETTUI_STATE_DIR"]).exists()


def test_undrain_is_refused_readonly_too(quiet_cli: Cli) -> None:
    put_drain(quiet_cli, "ada")
    done = quiet_cli("--readonly", "undrain", "ada")
    assert (done.returncode, done.stdout) == (2, "")
    assert flags_of(quiet_cli) == {"ada"}


@pytest.mark.parametrize(
    "words",
    [
        ("drain", "start", "ada", "adda", "--reason", "x", "--yes"),
        ("drain", "start", "ada", "--to", "adda", "--dry-run"),
        ("drain", "status", "adda"),
        ("drain", "cancel", "adda"),
        ("undrain", "adda"),
    ],
)
def test_an_unknown_machine_is_exit_3_and_nothing_is_done(quiet_cli: Cli, words: tuple[str, ...]) -> None:
    done = quiet_cli(*words)
    assert (done.returncode, done.stdout) == (3, "")
    assert "no machine is named 'adda'" in done.stderr
    assert "did you mean ada?" in done.stderr
    assert not Path(quiet_cli.environment["FLEETTUI_STATE_DIR"]).exists()


def test_a_machine_that_does_not_answer_is_exit_4_and_not_flagged(quiet_cli: Cli) -> None:
    done = quiet_cli("drain", "start", "ada", "--dry-run", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["exit_code"]) == (4, 4)
    assert document["machines"][0]["problem"].startswith("offline: ")
    done = quiet_cli("drain", "start", "ada", "--reason", "x", "--yes")
    assert (done.returncode, done.stdout) == (4, "")
    assert "nothing was started: what is loaded there is not known" in done.stderr
    assert "fleettui maintenance on ada" in done.stderr
    assert flags_of(quiet_cli) == set()


def test_going_on_with_a_drain_needs_no_new_reason(quiet_cli: Cli) -> None:
    put_drain(quiet_cli, "ada", "blocked")
    assert quiet_cli("drain", "start", "ada", "--yes").returncode == 4, "it was asked, and does not answer"
    assert quiet_cli("drain", "start", "ada", "cleo", "--yes").returncode == 2, "cleo has none yet"
    assert flags_of(quiet_cli) == {"ada"}


def test_without_a_drain(quiet_cli: Cli) -> None:
    assert quiet_cli("drain", "status").stdout == "no machine is draining\n"
    assert quiet_cli("drain", "status", "ada").stdout == "ada: not draining\n"
    done = quiet_cli("undrain", "ada")
    assert (done.returncode, done.stdout) == (0, "ada: not draining; unchanged\n")
    done = quiet_cli("drain", "cancel", "ada", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["exit_code"], document["machines"][0]["drain"]["state"]) == (
        1,
        1,
        "off",
    )
    assert quiet_cli("drain", "cancel", "ada").stdout == "ada: has no drain to cancel\n"
    assert quiet_cli("drain", "status", "ada", "--follow").stdout == "ada: not draining\n"


# -- what another process left ---------------------------------------------------------------------------


def test_status_tells_what_is_stored(quiet_cli: Cli) -> None:
    drain = put_drain(quiet_cli, "ada", "running")
    now = time.time()
    copy = SourceCopy("ada", "ollama", 11434, "llama3.1:8b")
    step = JournalEntry(
        now, "ada", "d1", "mia@jump", 7, "load", copy.name, "cleo", "ok", "POST cleo:11434/api/generate"
    )
    folder = quiet_cli.environment["FLEETTUI_MACHINES"]
    with Store.open(quiet_cli.environment["FLEETTUI_STATE_DIR"]) as store:
        save_copies(
            store, folder, drain, [CopyProgress(copy, "move", "loading", now - 5, "cleo", "3 of 5 GiB")], step
        )
        take_lock(store, folder, DrainLock("ada", "mia@jump", 7, now, now), lambda _: False)
    done = quiet_cli("drain", "status", "ada")
    assert (done.returncode, done.stderr) == (0, "")
    first, second, third, *rest = done.stdout.splitlines()
    assert first.startswith('ada: draining (running) "PSU swap" by mia@jump since ')
    assert second == " 0 of 1 copies gone; mia@jump works on it (process 7)"
    assert third.startswith(" MOVE         llama3.1:8b  -> cleo  loading ")
    assert rest[0].strip() == "3 of 5 GiB"
    assert rest[-1].strip() == "POST cleo:11434/api/generate"
    (machine,) = json.loads(quiet_cli("drain", "status", "--json").stdout)["machines"]
    assert (machine["drain"]["state"], machine["worker"]["pid"]) == ("running", 7)
    assert machine["copies"][0]["state"] == "loading"


def test_the_flag_is_listed_and_stays_until_undrain(quiet_cli: Cli) -> None:
    put_drain(quiet_cli, "cleo", until=time.time() - 5)
    for _ in range(2):  # a restart ends nothing
        listed = quiet_cli("machines", "list").stdout
        assert 'drained "PSU swap" by mia@jump since ' in listed
        assert "overdue since" in listed
    done = quiet_cli("undrain", "cleo")
    assert (done.returncode, done.stdout) == (0, 'cleo: takes requests again; it was drained: "PSU swap"\n')
    assert flags_of(quiet_cli) == set()
    assert "drained" not in quiet_cli("machines", "list").stdout


def test_offline_is_expected_where_it_is_drained_and_only_there(quiet_cli: Cli) -> None:
    put_drain(quiet_cli, "ada")
    put_drain(quiet_cli, "cleo", "running")
    text = quiet_cli("status").stdout
    assert "1 offline" in text.splitlines()[0]
    assert "1 draining · 1 drained (1 offline)" in text.splitlines()[0]
    ada, cleo = json.loads(quiet_cli("status", "--json").stdout)["machines"]
    assert (ada["drain"]["state"], cleo["drain"]["state"]) == ("drained", "running")
    assert any(reason.startswith("expected: drained") for reason in ada["reasons"])
    assert not any(reason.startswith("expected") for reason in cleo["reasons"])


def test_cancel_and_undrain_of_a_machine_whose_file_is_gone(quiet_cli: Cli, machines_dir: Path) -> None:
    put_drain(quiet_cli, "ada", "running")
    put_drain(quiet_cli, "cleo", "drained")
    (machines_dir / "ada.yaml").unlink()
    done = quiet_cli("drain", "cancel", "ada", "cleo")
    assert (done.returncode, done.stdout.splitlines()) == (0, [
        "ada: cancelled; nothing was moved; it takes no requests until: fleettui undrain ada",
        "cleo: drained already, nothing to cancel; nothing was moved; "
        "it takes no requests until: fleettui undrain cleo",
    ])  # fmt: skip
    assert quiet_cli("undrain", "ada", "cleo").returncode == 0
    assert flags_of(quiet_cli) == set()


# -- on the demo fleet -----------------------------------------------------------------------------------


def test_the_preview_does_nothing(fleet_cli: Cli) -> None:
    done = fleet_cli("drain", "start", "enno", "--dry-run", "--reason", "PSU swap")
    head, age, *lines = done.stdout.splitlines()
    assert (done.returncode, head) == (0, 'drain enno "PSU swap" 1 copy, nothing to load')
    assert age.startswith("data ")
    assert lines == [" COVERED      qwen3:32b  also on dora (same digest)"]
    assert flags_of(fleet_cli) == set()
    document = json.loads(
        fleet_cli("drain", "start", "enno", "dora", "--dry-run", "--json", "--readonly").stdout
    )
    assert [machine["name"] for machine in document["machines"]] == ["enno", "dora"]
    assert document["schema"] == 1
    dora = document["machines"][1]
    assert {"cannot", "unmanaged"} <= set(dora["refused"])
    assert [item["name"] for item in dora["excluded"]] == ["enno"], "they are drained together"


def test_copies_that_would_be_lost_are_refused_by_class(fleet_cli: Cli) -> None:
    done = fleet_cli("drain", "start", "bora", "--reason", "x", "--yes")
    assert (done.returncode, done.stdout) == (1, "")
    assert "fleettui drain: refused: 1 CANNOT (qwen2.5:32b); nothing was started" in done.stderr
    assert "to go on all the same: --force-class cannot" in done.stderr
    assert " CANNOT       qwen2.5:32b" in done.stderr, "the preview comes first"
    assert flags_of(fleet_cli) == set()
    document = json.loads(fleet_cli("drain", "start", "bora", "--reason", "x", "--yes", "--json").stdout)
    assert (document["exit_code"], document["machines"][0]["refused"]) == (1, ["cannot"])
    assert document["errors"][0]["message"].startswith("refused: 1 CANNOT (qwen2.5:32b); nothing was started")
    hinted = fleet_cli("drain", "start", "bora", "--dry-run")
    assert (hinted.returncode, hinted.stderr) == (
        0,
        "start would want --force-class cannot; or --allow-pull, so that a target may fetch the files it lacks\n",
    )


@pytest.mark.parametrize(("keys", "code"), [("x\n", 1), ("\x03", 130)])
def test_anything_but_the_name_starts_nothing(fleet_cli: Cli, keys: str, code: int) -> None:
    words = ("drain", "start", "enno", "--reason", "x")
    with Terminal(*words, environment=fleet_cli.environment, size=(100, 30)) as terminal:
        wait_for(terminal, "To start, type its name (enno):")
        wait_for(terminal, "enno takes no requests from now on; 1 unloaded because others serve it.")
        assert b"\x1b[32m COVERED " in terminal.written
        terminal.press(keys)
        ended, stdout = terminal.end()
    assert (ended, stdout) == (code, b"")
    assert flags_of(fleet_cli) == set()


def test_a_cold_route_rejects_it_and_a_poll_sees_that_it_is_not_empty(fleet_cli: Cli) -> None:
    put_drain(fleet_cli, "ada", "running")
    done = fleet_cli("route", "llama3.1:70b", "--format", "name")
    assert (done.returncode, done.stdout) == (0, "bora\n")
    assert re.search(r'- ada +draining \(running\) "PSU swap" by mia@jump since ', done.stderr)
    put_drain(fleet_cli, "ada", "drained")
    (ada,) = json.loads(fleet_cli("status", "ada", "--json").stdout)["machines"]
    assert ada["drain"]["state"] == "blocked"
    assert ada["drain"]["text"].startswith("loaded again since ")
    assert "llama3.1:70b" in ada["drain"]["text"]


def test_a_warm_route_sees_it_at_once(fleet_cli: Cli, watching: subprocess.Popen[str]) -> None:
    """From a snapshot that was stored before the flag: the writer is stopped, so it cannot follow."""
    words = ("route", "llama3.1:70b", "--format", "name", "--max-age", "600")
    assert watching.stdout is not None
    for _ in range(100):
        watching.stdout.readline()
        done = fleet_cli(*words, PYTHONPROFILEIMPORTTIME="1")
        if "asyncssh" not in done.stderr:
            break
    assert done.stdout == "ada\n"
    watching.send_signal(signal.SIGSTOP)
    try:
        put_drain(fleet_cli, "ada", "running")
        warm = fleet_cli(*words, PYTHONPROFILEIMPORTTIME="1")
        assert "asyncssh" not in warm.stderr, "answered from the stored snapshot"
        assert warm.stdout == "bora\n"
        assert 'draining (running) "PSU swap" by mia@jump since' in warm.stderr
        assert fleet_cli("undrain", "ada").returncode == 0
        assert fleet_cli(*words).stdout == "ada\n"
    finally:
        watching.send_signal(signal.SIGCONT)


def test_a_running_process_follows_and_its_timeline_says_who(
    fleet_cli: Cli, watching: subprocess.Popen[str]
) -> None:
    def wait_for_state(state: str) -> None:
        assert watching.stdout is not None
        for line in watching.stdout:
            machines = {machine["name"]: machine for machine in json.loads(line)["machines"]}
            if "enno" in machines and machines["enno"]["drain"]["state"] == state:
                return
        raise AssertionError(f"never {state}")

    wait_for_state("off")
    put_drain(fleet_cli, "enno", "running")
    wait_for_state("running")
    assert fleet_cli("undrain", "enno").returncode == 0
    wait_for_state("off")
    for _ in range(20):
        document = json.loads(fleet_cli("events", "enno", "--json").stdout)
        told = [(event["text"], event["by"]) for event in document["events"] if event["kind"] == "drain"]
        if len(told) == 2:
            break
    me = f"{getpass.getuser()}@{socket.gethostname()}"
    assert told == [('drain running: "PSU swap"', "mia@jump"), ("drain ended, it was running", me)]


def test_removal_shows_what_is_loaded_and_how_to_move_it_first(
    fleet_cli: Cli, watching: subprocess.Popen[str]
) -> None:
    assert watching.stdout is not None
    for _ in range(3):
        watching.stdout.readline()
    put_drain(fleet_cli, "ada", "running")
    done = fleet_cli("machines", "remove", "ada")
    assert done.returncode == 2
    assert "loaded  " in done.stderr
    assert "llama3.1:70b" in done.stderr
    assert 'flags   draining (running) "PSU swap"' in done.stderr
    assert (
        "the 2 copies there are of no use; to move first: fleettui drain start ada --reason removal"
        in done.stderr
    )
    with Terminal("machines", "remove", "enno", environment=fleet_cli.environment) as terminal:
        wait_for(terminal, "To remove it, type its name (enno); to drain it first, type drain:")
        terminal.press("drain\n")
        wait_for(terminal, "To start, type its name (enno):")
        terminal.press("no\n")
        code, _ = terminal.end()
    assert code == 1
    assert fleet_cli("machines", "list").stdout.count("enno") == 1
