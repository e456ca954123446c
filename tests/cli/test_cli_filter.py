"""`fleettui status --filter` on the demo fleet."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from cli_runner import SRC, Cli, write_machine

from fleettui.demo.launcher import DemoFleet


def shown(text: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines()[1:] if line and line[0] != " "]


def test_only_what_matches_is_printed(demo_cli: Cli) -> None:
    done = demo_cli("status", "--filter", "gpu!=unknown gpus=0 | name=spark")
    assert (done.returncode, done.stderr) == (0, "")
    assert shown(done.stdout) == ["app-host", "spark"]
    assert done.stdout.startswith("2/2 up · ")


def test_names_and_filter_both_hold_and_json_has_the_same_machines(demo_cli: Cli) -> None:
    done = demo_cli("status", "ada", "fips", "--json", "--filter", "health=unhealthy")
    assert done.returncode == 0
    assert [machine["name"] for machine in json.loads(done.stdout)["machines"]] == ["fips"]


def test_nothing_matched_is_an_empty_fleet_told_on_stderr(demo_cli: Cli) -> None:
    done = demo_cli("status", "--filter", "free>9000")
    assert (done.returncode, shown(done.stdout)) == (0, [])
    assert (
        done.stderr == "fleettui status: no machine matches --filter 'free>9000'; 8 machines were looked at\n"
    )
    document = json.loads(demo_cli("status", "--json", "--filter", "free>9000").stdout)
    assert (document["schema"], document["machines"]) == (1, [])


def test_a_mistake_exits_2_before_any_machine_is_asked_and_shows_its_place(
    cli: Cli, machines_dir: Path
) -> None:
    write_machine(machines_dir, "ada")
    done = cli("status", "--machines", str(machines_dir), "--filter", "ada fre>24")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[:3] == [
        "fleettui status: --filter: there is no field fre: did you mean free?",
        "  ada fre>24",
        "      ^^^",
    ]
    as_json = cli("status", "--json", "--machines", str(machines_dir), "--filter", "free>lots")
    document = json.loads(as_json.stdout)
    assert (as_json.returncode, document["machines"]) == (2, [])
    assert "free takes a number" in document["errors"][0]["message"]
    assert "^" not in as_json.stdout
    watch = cli("status", "--watch", "--machines", str(machines_dir), "--filter", "!")
    assert (watch.returncode, watch.stdout) == (2, "")


def test_a_filter_that_shows_only_machines_that_are_off_is_no_failure(
    cli: Cli, machines_dir: Path, demo_fleet: DemoFleet
) -> None:
    (machines_dir / "ada.yaml").write_bytes((demo_fleet.machines_dir / "ada.yaml").read_bytes())
    write_machine(machines_dir, "gone", ssh="{port: 1}")
    done = cli("status", "--machines", str(machines_dir), "--filter", "health=offline")
    assert (done.returncode, shown(done.stdout)) == (0, ["gone"])


def test_watch_filters_each_time_and_tells_an_empty_fleet_once(demo_fleet: DemoFleet, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "fleettui", "status", "--watch", "--json", "--interval", "0.5",
         "--filter", "name=nowhere"],
        env={**os.environ, **demo_fleet.environment, "FLEETTUI_STATE_DIR": str(tmp_path), "PYTHONPATH": SRC},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    documents = [json.loads(process.stdout.readline()) for _ in range(3)]
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=15)
    assert all(document["machines"] == [] for document in documents)
    assert errors.count("no machine matches") == 1
