"""`fleettui machines doctor` as a command: report, JSON, exit codes, the terminal, Ctrl+C."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from cli_runner import SRC, Cli, write_machine

from fleettui.demo.launcher import DemoFleet

IDS = [
    "file", "name", "tcp", "host_key", "authentication", "shell", "forwarding", "gpu_tool", "driver",
    "persistence", "engine", "address", "clock", "journal", "disk",
]  # fmt: skip


def by_id(machine: dict[str, object]) -> dict[str, dict[str, object]]:
    checks = machine["checks"]
    assert isinstance(checks, list)
    return {check["id"].partition(":")[0]: check for check in checks}


def test_the_report_of_the_demo_fleet(demo_cli: Cli) -> None:
    done = demo_cli("machines", "doctor")
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert lines[-1].startswith("8 machines: ")
    assert lines[-1].endswith(" 1 failed")
    assert any(line.startswith("✓ app-host  13 checks passed, 3 skipped, ") for line in lines)
    assert any(line.startswith("✗ fips  1 failed") for line in lines)
    assert any(line.startswith("  ✗ driver") and "version mismatch" in line for line in lines)
    assert "\x1b" not in done.stdout
    assert "checked" not in done.stdout, "no progress where there is no terminal"


def test_json_has_the_documented_shape(demo_cli: Cli) -> None:
    done = demo_cli("machines", "doctor", "--json")
    assert (done.returncode, done.stderr) == (1, "")
    document = json.loads(done.stdout)
    assert document["schema"] == 1
    assert document["notices"] == []
    machines = {machine["name"]: machine for machine in document["machines"]}
    assert list(machines) == ["ada", "app-host", "bora", "cleo", "dora", "enno", "fips", "spark"]
    for machine in machines.values():
        assert set(machine) == {"name", "verdict", "checks"}
        assert list(by_id(machine)) == IDS
        for check in machine["checks"]:
            assert set(check) == {"id", "title", "state", "evidence", "hint", "took_ms"}
            assert (check["hint"] is not None) == (check["state"] in ("warn", "fail"))
            assert check["evidence"]
    fips = by_id(machines["fips"])
    assert machines["fips"]["verdict"] == "fail"
    assert fips["gpu_tool"]["state"] == "pass"
    assert fips["driver"]["state"] == "fail"
    assert fips["persistence"]["evidence"] == "needs driver"
    app_host = by_id(machines["app-host"])
    assert machines["app-host"]["verdict"] == "pass"
    assert app_host["driver"] == {
        "id": "driver", "title": "driver", "state": "skip", "evidence": "declared CPU-only", "hint": None,
        "took_ms": None,
    }  # fmt: skip
    assert by_id(machines["ada"])["driver"]["state"] == "pass"


def test_named_machines_are_shown_whole_and_alone(demo_cli: Cli) -> None:
    done = demo_cli("machines", "doctor", "app-host")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("✓ app-host  all is well, ")
    assert any(line.startswith("  ✓ host key") for line in lines)
    assert lines[-1] == "1 machine: 1 fine"


def test_an_unknown_name_exits_3_before_anything_is_asked(demo_cli: Cli) -> None:
    done = demo_cli("machines", "doctor", "app-hots")
    assert (done.returncode, done.stdout) == (3, "")
    assert "did you mean app-host?" in done.stderr
    as_json = demo_cli("machines", "doctor", "app-hots", "--json")
    assert (as_json.returncode, json.loads(as_json.stdout)["machines"]) == (3, [])


def test_a_broken_file_fails_and_the_others_are_checked(
    cli: Cli, machines_dir: Path, demo_fleet: DemoFleet
) -> None:
    (machines_dir / "app-host.yaml").write_bytes((demo_fleet.machines_dir / "app-host.yaml").read_bytes())
    (machines_dir / "bad.yaml").write_text("name: bad\nrole: x\n")
    done = cli("machines", "doctor", "--json", "--machines", str(machines_dir))
    assert done.returncode == 2
    bad, good = json.loads(done.stdout)["machines"]
    assert (bad["name"], bad["verdict"], good["name"], good["verdict"]) == (
        "bad.yaml",
        "fail",
        "app-host",
        "pass",
    )
    assert "bad.yaml" in bad["checks"][0]["evidence"]
    assert {check["evidence"] for check in bad["checks"][1:]} == {"needs file"}
    assert cli("machines", "doctor", "app-host", "--machines", str(machines_dir)).returncode == 0
    assert cli("machines", "doctor", "bad", "--machines", str(machines_dir)).returncode == 2


def test_no_machines_and_wrong_options_exit_2(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "missing"):
        done = cli("machines", "doctor", "--machines", str(tmp_path / name))
        assert (done.returncode, done.stdout) == (2, "")
        assert str(tmp_path / name) in done.stderr
    assert cli("machines", "doctor", "--deadline", "0").returncode == 2


def test_a_deadline_that_is_over_at_once_is_no_clean_bill(cli: Cli, machines_dir: Path) -> None:
    write_machine(machines_dir, "ada", ssh="local")
    done = cli("machines", "doctor", "--deadline", "0.0001", "--machines", str(machines_dir))
    assert done.returncode == 1
    assert "not done before the deadline" in done.stdout


def test_an_unreachable_machine_exits_1_and_the_deadline_holds(cli: Cli, machines_dir: Path) -> None:
    write_machine(machines_dir, "ada", ssh="{port: 1}")
    done = cli("machines", "doctor", "--machines", str(machines_dir))
    assert done.returncode == 1
    assert "✗ TCP" in done.stdout
    assert "127.0.0.1:1: connection refused" in done.stdout
    assert "skipped, needs TCP" in done.stdout
    with socket.create_server(("127.0.0.1", 0)) as mute:
        write_machine(machines_dir, "ada", ssh=f"{{port: {mute.getsockname()[1]}}}")
        done = cli("machines", "doctor", "--deadline", "0.5", "--machines", str(machines_dir))
    assert done.returncode == 1
    assert "not done before the deadline" in done.stdout


def test_a_terminal_without_unicode_gets_ascii_signs(demo_cli: Cli) -> None:
    done = demo_cli("machines", "doctor", "app-host", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert done.stdout.startswith("+ app-host")
    assert "?" not in done.stdout
    set_so = demo_cli("machines", "doctor", "app-host", FLEETTUI_GLYPHS="ascii")
    assert set_so.stdout.startswith("+ app-host")


class Terminal:
    """The command on a pseudo terminal of 80x24."""

    def __init__(self, *arguments: str, **variables: str) -> None:
        self._main, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = {**os.environ, "PYTHONPATH": SRC, "TERM": "xterm", **variables}
        environment.pop("NO_COLOR", None) if "NO_COLOR" not in variables else None
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fleettui", "machines", "doctor", *arguments],
            stdin=child, stdout=child, stderr=subprocess.PIPE, start_new_session=True, env=environment,
        )  # fmt: skip
        os.close(child)
        self.seen = ""

    def read(self, timeout_s: float = 0.1) -> None:
        if not select.select([self._main], [], [], timeout_s)[0]:
            return
        try:
            self.seen += os.read(self._main, 65536).decode("utf-8", "replace")
        except OSError:
            return

    def wait_for(self, text: str, timeout_s: float = 30.0) -> None:
        deadline = time.monotonic() + timeout_s
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen[-500:]
            self.read()

    def end(self) -> tuple[int, str]:
        """Exit code and what came on stderr."""
        deadline = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read()
        for _ in range(5):
            self.read(0.02)
        assert self.process.stderr is not None
        with self.process.stderr:
            errors = self.process.stderr.read().decode()
        os.close(self._main)
        return self.process.wait(1), errors


def test_a_terminal_sees_progress_then_the_report_in_colour(demo_fleet: DemoFleet) -> None:
    terminal = Terminal(**demo_fleet.environment)
    terminal.wait_for("checked ")
    terminal.wait_for("8 machines: ")
    assert terminal.end() == (1, "")
    assert "\x1b[32m✓\x1b[0m" in terminal.seen
    assert "\x1b[?25l" not in terminal.seen, "the cursor is never hidden, so it need not be given back"
    assert "\x1b[?1049h" not in terminal.seen


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}])
def test_no_color_leaves_only_what_moves_the_cursor(demo_fleet: DemoFleet, variables: dict[str, str]) -> None:
    terminal = Terminal("app-host", **demo_fleet.environment, **variables)
    assert terminal.end() == (0, "")
    assert "✓ host key" in terminal.seen
    assert "m✓" not in terminal.seen
    assert "\x1b[0m" not in terminal.seen


def test_control_c_ends_at_once_with_130(machines_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        write_machine(machines_dir, "ada", ssh=f"{{port: {mute.getsockname()[1]}}}")
        terminal = Terminal("--machines", str(machines_dir))
        terminal.wait_for("host key")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == (130, "")
    assert "Traceback" not in terminal.seen
    assert "machine: " not in terminal.seen, "no report"
