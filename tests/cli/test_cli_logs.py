"""`fleettui logs` on the demo fleet: text, JSON, following, exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

from cli_runner import SRC, Cli

from fleettui.demo.launcher import DemoFleet


def test_the_ailing_machine_shows_its_xid_first(demo_cli: Cli) -> None:
    done = demo_cli("logs", "fips")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "-- GPU driver --"
    assert "NVRM: Xid (PCI:0000:01:00): 79" in lines[1]
    assert any(" ollama " in line and "[GIN]" in line for line in lines)
    assert "\x1b" not in done.stdout


def test_json_and_since_and_unit(demo_cli: Cli) -> None:
    done = demo_cli("logs", "ada", "--since", "10m", "--unit", "ollama", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert (document["schema"], document["machine"], document["unit"]) == (1, "ada", "ollama")
    assert 600 <= document["since_s"] <= 601
    assert 29 <= len(document["lines"]) <= 31
    assert {line["source"] for line in document["lines"]} == {"ollama"}
    assert {line["group"] for line in document["lines"]} == {"engine"}


def test_where_the_journal_may_not_be_read(demo_cli: Cli) -> None:
    done = demo_cli("logs", "enno")
    assert done.returncode == 0
    assert "enno: this account may not read the system's journal" in done.stderr
    assert "usermod -aG systemd-journal" in done.stderr


def test_mistakes(demo_cli: Cli) -> None:
    done = demo_cli("logs", "adda", "--json")
    assert done.returncode == 3
    assert "did you mean ada?" in done.stderr
    assert json.loads(done.stdout)["lines"] == []
    for unit in ("../x", "a b", "-x", "*", "--", ""):
        done = demo_cli("logs", "ada", f"--unit={unit}")
        assert (done.returncode, done.stdout) == (2, ""), unit
    assert demo_cli("logs", "ada", "--since", "soon").returncode == 2


def test_follow_goes_on_until_it_is_interrupted(demo_fleet: DemoFleet) -> None:
    environment = {**os.environ, **demo_fleet.environment, "PYTHONPATH": SRC}
    command = [sys.executable, "-m", "fleettui", "logs", "ada", "--follow", "--json", "--since", "5m"]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        found = [json.loads(running.stdout.readline()) for _ in range(14)]
        assert running.poll() is None, "it goes on"
        running.send_signal(signal.SIGINT)
        said = running.stderr.read()
    assert (running.returncode, said) == (130, b"")
    assert {(item["schema"], item["machine"]) for item in found} == {(1, "ada")}
