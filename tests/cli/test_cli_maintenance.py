"""`fleettui maintenance on|off`: output and exit codes; routing, `status` and a running process follow."""

from __future__ import annotations

import getpass
import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Cli, write_machine

USER = getpass.getuser()
HH_MM = r"\d\d:\d\d"


@pytest.fixture
def flag_cli(machines_dir: Path, tmp_path: Path) -> Cli:
    """The command on two machines that nobody answers for."""
    for name in ("ada", "cleo"):
        write_machine(machines_dir, name)
    return Cli({"FLEETTUI_MACHINES": str(machines_dir), "FLEETTUI_STATE_DIR": str(tmp_path / "state")})


def listed(cli: Cli) -> dict[str, str]:
    """The FLAGS column of `machines list`, by name."""
    head, *rows = cli("machines", "list").stdout.splitlines()
    if "FLAGS" not in head:
        return {}
    at = head.index("FLAGS")
    return {row.split()[0]: row[at:] for row in rows if row[at:]}


def test_on_tells_who_since_and_until_and_off_what_it_was(flag_cli: Cli) -> None:
    done = flag_cli("maintenance", "on", "cleo", "--reason", "fan swap", "--until", "2h")
    assert (done.returncode, done.stderr) == (0, "")
    words = rf'maintenance "fan swap" by {USER} since {HH_MM}, until (\d{{4}}-\d\d-\d\d )?{HH_MM}'
    assert re.fullmatch(f"cleo: {words}; not routed from now on, nothing is unloaded\n", done.stdout)
    assert re.fullmatch(words, listed(flag_cli)["cleo"])
    assert re.fullmatch(f"cleo: {words}; unchanged\n", flag_cli("maintenance", "on", "cleo").stdout)
    done = flag_cli("maintenance", "off", "ada", "cleo")
    assert done.stdout.splitlines()[0] == "ada: not in maintenance; unchanged"
    assert re.fullmatch(f"cleo: out of maintenance; it was: {words}", done.stdout.splitlines()[1])
    assert (done.returncode, listed(flag_cli)) == (0, {})


def test_json(flag_cli: Cli) -> None:
    started = time.time()
    document = json.loads(flag_cli("maintenance", "on", "cleo", "ada", "--reason", "x", "--json").stdout)
    assert (document["schema"], document["errors"], document["exit_code"]) == (1, [], 0)
    first, second = document["machines"]
    assert [first["name"], second["name"]] == ["cleo", "ada"]
    flag = first["maintenance"]
    assert (flag["on"], flag["reason"], flag["by"], flag["until"]) == (True, "x", USER, None)
    assert flag["since"] >= time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(started)))
    assert first["before"] == {"on": False, "reason": None, "by": None, "since": None, "until": None}

    def outcomes(*words: str) -> list[str]:
        document = json.loads(flag_cli("maintenance", *words, "--json").stdout)
        return [machine["outcome"] for machine in document["machines"]]

    assert first["outcome"] == "on"
    assert outcomes("on", "ada") == ["already_on"]
    assert outcomes("on", "ada", "--reason", "y") == ["changed"]
    assert outcomes("off", "ada") == ["off"]
    assert outcomes("off", "ada") == ["already_off"]


def test_an_unknown_machine_is_exit_3_and_nothing_is_done(flag_cli: Cli, tmp_path: Path) -> None:
    done = flag_cli("maintenance", "on", "ada", "claeo")
    assert (done.returncode, done.stdout) == (3, "")
    assert "no machine is named 'claeo'" in done.stderr
    assert "no flag was changed; did you mean cleo?" in done.stderr
    assert listed(flag_cli) == {}
    done = flag_cli("maintenance", "off", "zoe", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["exit_code"], document["machines"]) == (3, 3, [])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("on", "ada", "--readonly"), "--readonly (or `readonly:` of the settings) refuses maintenance on"),
        (("on", "ada", "--until", "soon"), "--until: 'soon' is no time; write 2h, 30m, 1d, 14:00 or"),
        (("on", "ada", "--until", "2020-01-01T08:00"), "--until: 2020-01-01T08:00 is over already"),
        (("on", "ada", "--reason", "x" * 201), "--reason: the reason has 201 characters; at most 200 fit"),
        (("on",), "the following arguments are required: MACHINE"),
        (
            ("off", "ada", "--reason", "x"),
            "unrecognized arguments: --reason x\n  see: fleettui maintenance off --help",
        ),
    ],
)
def test_refused_with_exit_2(flag_cli: Cli, words: tuple[str, ...], said: str) -> None:
    done = flag_cli("maintenance", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert listed(flag_cli) == {}


def test_off_is_refused_readonly_too(flag_cli: Cli) -> None:
    flag_cli("maintenance", "on", "ada")
    assert flag_cli("--readonly", "maintenance", "off", "ada").returncode == 2
    assert set(listed(flag_cli)) == {"ada"}


def test_a_state_folder_that_cannot_be_used_is_told(flag_cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    done = flag_cli("maintenance", "on", "ada", "--state-dir", str(tmp_path / "file" / "state"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "no flag was changed: " in done.stderr
    assert "--state-dir" in done.stderr


def test_a_removed_machine_comes_back_without_its_flag(flag_cli: Cli) -> None:
    flag_cli("maintenance", "on", "ada", "cleo")
    assert flag_cli("machines", "remove", "ada", "--yes").returncode == 0
    assert set(listed(flag_cli)) == {"cleo"}


# -- on the demo fleet, each test with a state folder of its own --------------------------------------


def flags_printed(process: subprocess.Popen[str], name: str) -> Iterator[dict[str, Any]]:
    """The `maintenance` of a machine in each document that the process prints."""
    assert process.stdout is not None
    for line in process.stdout:
        machines = {machine["name"]: machine for machine in json.loads(line)["machines"]}
        if name in machines:
            yield machines[name]["maintenance"]


def route(cli: Cli, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return cli("route", "llama3.1:70b", "--format", "name", *words, **variables)


def test_a_cold_route_and_status_honour_it(fleet_cli: Cli) -> None:
    assert route(fleet_cli).stdout == "ada\n"
    fleet_cli("maintenance", "on", "ada", "--reason", "fan swap", "--until", "2h")
    done = route(fleet_cli)
    assert (done.returncode, done.stdout) == (0, "bora\n")
    assert re.search(rf'- ada +maintenance "fan swap" by {USER} since {HH_MM} UTC, until ', done.stderr)
    text = fleet_cli("status", "ada").stdout
    assert f'⚑ maintenance "fan swap" {USER}, ' in text
    assert "1 in maintenance" in text
    ada = json.loads(fleet_cli("status", "ada", "--json").stdout)["machines"][0]
    assert (ada["health"], ada["maintenance"]["on"], ada["maintenance"]["by"]) == ("healthy", True, USER)
    fleet_cli("maintenance", "off", "ada")
    assert route(fleet_cli).stdout == "ada\n"


def test_a_running_process_follows_and_stores_it(fleet_cli: Cli, watching: subprocess.Popen[str]) -> None:
    printed = flags_printed(watching, "ada")
    assert next(printed)["on"] is False
    fleet_cli("maintenance", "on", "ada", "--reason", "fan swap")
    found = next(flag for flag in printed if flag["on"])
    assert (found["reason"], found["by"]) == ("fan swap", USER)
    fleet_cli("maintenance", "off", "ada")
    assert next(flag for flag in printed if not flag["on"])["reason"] is None


def test_a_warm_route_sees_it_at_once(fleet_cli: Cli, watching: subprocess.Popen[str]) -> None:
    """From a snapshot that was stored before the flag: the writer is stopped, so it cannot follow."""
    printed = flags_printed(watching, "ada")
    for _ in range(100):
        next(printed)
        done = route(fleet_cli, "--max-age", "600", PYTHONPROFILEIMPORTTIME="1")
        if "asyncssh" not in done.stderr:
            break
    assert done.stdout == "ada\n"
    watching.send_signal(signal.SIGSTOP)
    try:
        fleet_cli("maintenance", "on", "ada", "--reason", "fan swap")
        warm = route(fleet_cli, "--max-age", "600", PYTHONPROFILEIMPORTTIME="1")
        assert "asyncssh" not in warm.stderr, "answered from the stored snapshot"
        assert warm.stdout == "bora\n"
        assert f'maintenance "fan swap" by {USER} since' in warm.stderr
        fleet_cli("maintenance", "off", "ada")
        assert route(fleet_cli, "--max-age", "600").stdout == "ada\n"
    finally:
        watching.send_signal(signal.SIGCONT)
