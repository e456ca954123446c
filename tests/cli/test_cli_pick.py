"""`fleettui pick` at a real pseudo terminal, its stdout a pipe as inside `$(…)`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_runner import SRC, write_machine
from terminal import Terminal, fleettui_in_path

from fleettui.demo.launcher import DemoFleet
from fleettui.model.machine import EngineEndpoint, Machine
from fleettui.model.readings import EngineReading, LoadedModel
from fleettui.model.snapshot import FleetSnapshot, LinkStatus, MachineSnapshot, SourceStatus
from fleettui.store.database import Store
from fleettui.store.leases import load_leases
from fleettui.store.snapshots import save_snapshot
from fleettui.store.ui_state import save_parts

ESC, CTRL_C, DOWN = b"\x1b", b"\x03", b"\x1b[B"
LIGHT = "fleettui-light"
GONE = {"ssh": "{host: 127.0.0.1, port: 9, user: nobody}"}


def address_of(fleet: DemoFleet, name: str) -> str:
    port = next(machine["engine_port"] for machine in fleet.machines if machine["name"] == name)
    return f"127.0.0.1:{port}"


def has_given_back(terminal: Terminal) -> bool:
    """The alternate screen, the mouse and the cursor are as they were."""
    last = {mode: terminal.written.rfind(mode) for mode in (b"\x1b[?1049l", b"\x1b[?1000l", b"\x1b[?25h")}
    return all(last.values()) and min(last.values()) > terminal.written.rindex(b"\x1b[?1049h")


def store(machines: Path, state: Path, name: str, age_s: float = 0.0) -> None:
    """One machine with a resident model, as a dashboard with a long interval stored it."""
    written_at = time.time() - age_s
    engine = EngineReading("ollama", 11434, "ok", loaded=(LoadedModel("llama3.1:8b", "ollama"),))
    machine = MachineSnapshot(
        Machine(name, "gpu-host", f"{name}.lan", engines=(EngineEndpoint("ollama", 11434),)),
        link=LinkStatus("up", since=written_at - 60),
        engines=(engine,),
        sources={"ollama": SourceStatus("ok", written_at, written_at - 60)},
        health="healthy",
        last_seen=written_at,
        seq=1,
    )
    with Store.open(str(state)) as opened:
        fleet = FleetSnapshot(1, written_at, 60.0, (machine,), (), str(machines))
        save_snapshot(opened, fleet, {name}, written_at=written_at)


@pytest.fixture
def stored(machines_dir: Path, tmp_path: Path) -> dict[str, str]:
    """A machine that nobody reaches, and what a running dashboard stored of it."""
    write_machine(machines_dir, "ada", network="{hostname: ada.lan, port: 11434}", **GONE)
    store(machines_dir, tmp_path / "state", "ada")
    return {"FLEETTUI_MACHINES": str(machines_dir), "FLEETTUI_STATE_DIR": str(tmp_path / "state")}


def test_inside_a_command_substitution_the_variable_has_the_address(
    demo_fleet: DemoFleet, tmp_path: Path
) -> None:
    environment = {**demo_fleet.environment, "PATH": fleettui_in_path(tmp_path / "bin")}
    line = 'X=$(fleettui pick llama3.1:70b) && echo "code $? is [$X]"'
    with Terminal(environment=environment, command=["sh", "-c", line], stdout=None) as terminal:
        shown = terminal.wait_for(lambda text: " 1  ada" in text and "resident" in text)
        assert "pick llama3.1:70b" in shown.splitlines()[0]
        terminal.press("\r")
        code, _ = terminal.end()
        assert code == 0
        assert f"code 0 is [{address_of(demo_fleet, 'ada')}]".encode() in terminal.written
        assert has_given_back(terminal)


@pytest.mark.parametrize("readonly", [(), ("--readonly",)])
def test_a_picked_model_is_leased_as_route_does(
    readonly: tuple[str, ...], stored: dict[str, str], tmp_path: Path
) -> None:
    with Terminal(*readonly, "pick", "llama3.1:8b", environment=stored) as terminal:
        terminal.wait_for("1 of 1 machine can serve it")
        terminal.press("\r")
        assert terminal.end() == (0, b"ada.lan:11434\n")
    with Store.open(str(tmp_path / "state")) as opened:
        leases = load_leases(opened, stored["FLEETTUI_MACHINES"], time.time())
    assert [(lease.machine, lease.model) for lease in leases] == [("ada", "llama3.1:8b")][: not readonly]


def test_it_wears_the_theme_that_the_dashboard_wore_last(stored: dict[str, str], tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "state")) as opened:
        save_parts(opened, stored["FLEETTUI_MACHINES"], {"app": {"theme": LIGHT}})
    with Terminal("pick", environment={**stored, "COLORTERM": "truecolor"}) as terminal:
        terminal.wait_for("1 of 1 machine can be picked")
        assert b";48;2;250;251;252" in terminal.written, "the ground of the light theme"
        terminal.press(ESC)
        assert terminal.end() == (1, b"")


def test_letters_filter_at_once_and_the_first_that_is_left_is_picked(demo_fleet: DemoFleet) -> None:
    with Terminal("pick", "--format", "name", environment=demo_fleet.environment) as terminal:
        terminal.wait_for("8 of 8 machines can be picked")
        terminal.press("spark")
        shown = terminal.wait_for("1 shown")
        assert [line for line in shown.splitlines() if "ada" in line] == []
        terminal.press("\r")
        assert terminal.end() == (0, b"spark\n")


def test_who_types_and_presses_enter_at_once_gets_what_was_typed(demo_fleet: DemoFleet) -> None:
    with Terminal("pick", "--format", "name", environment=demo_fleet.environment) as terminal:
        terminal.wait_for("8 of 8 machines can be picked")
        terminal.press("spark\r")
        assert terminal.end() == (0, b"spark\n")


def test_arrows_move_and_a_machine_that_cannot_be_picked_is_not(demo_fleet: DemoFleet) -> None:
    with Terminal("pick", "gpt-oss:120b", "--format=name", environment=demo_fleet.environment) as terminal:
        terminal.wait_for(lambda text: re.search(r" \d of 8 machines can serve it\n", text) is not None)
        terminal.press("ada")
        terminal.wait_for(lambda text: "1 shown" in text and "cannot be picked" in text)
        terminal.press("\r")
        terminal.press(b"\x15")  # Ctrl+U
        terminal.wait_for(lambda text: "shown" not in text.splitlines()[0])
        terminal.press("\r")
        code, stdout = terminal.end()
        assert code == 0
        assert stdout in (b"dora\n", b"spark\n")


@pytest.mark.parametrize("key", [ESC, CTRL_C, b"\x11", b"\x07"], ids=["Esc", "Ctrl+C", "Ctrl+Q", "Ctrl+G"])
def test_left_without_a_choice(stored: dict[str, str], key: bytes) -> None:
    with Terminal("pick", environment=stored) as terminal:
        terminal.wait_for("ada.lan:11434")
        terminal.press(key)
        assert terminal.end() == (1, b"")
        assert has_given_back(terminal)


def test_what_a_dashboard_stored_is_enough(stored: dict[str, str]) -> None:
    with Terminal("pick", "llama3.1:8b", environment=stored) as terminal:
        terminal.wait_for("resident")
        terminal.press("\r")
        assert terminal.end() == (0, b"ada.lan:11434\n")


def test_it_fills_the_terminal_although_stdout_is_a_pipe(stored: dict[str, str]) -> None:
    with Terminal("pick", environment=stored, size=(110, 30)) as terminal:
        terminal.wait_for("Enter pick")
        assert "Esc leave" in terminal.screen.lines[29]
        terminal.resize(70, 12)
        terminal.wait_for("Enter pick")
        assert "Esc leave" in terminal.screen.lines[11]
        terminal.press(ESC)
        terminal.end()


def test_other_streams_than_the_terminal(stored: dict[str, str]) -> None:
    """`while read …; do X=$(fleettui pick 2>/dev/null); done`: it asks whoever sits there."""
    null = subprocess.DEVNULL
    with Terminal("pick", environment=stored, stdin=null, stderr=null, size=(100, 20)) as terminal:
        terminal.wait_for("ada.lan:11434")
        assert "Enter pick" in terminal.screen.lines[19]
        terminal.press("\r")
        assert terminal.end() == (0, b"ada.lan:11434\n")
        assert has_given_back(terminal)


def test_keys_come_from_stderr_where_there_is_nothing_else(stored: dict[str, str]) -> None:
    options = {"stdin": subprocess.DEVNULL, "is_controlling": False}
    with Terminal("pick", environment=stored, **options) as terminal:  # type: ignore[arg-type]
        terminal.wait_for("ada.lan:11434")
        terminal.press("\r")
        assert terminal.end() == (0, b"ada.lan:11434\n")


def test_a_closed_stdin_changes_nothing(stored: dict[str, str], tmp_path: Path) -> None:
    environment = {**stored, "PATH": fleettui_in_path(tmp_path / "bin")}
    command = ["sh", "-c", "fleettui pick <&-"]
    with Terminal(environment=environment, command=command) as terminal:
        terminal.wait_for("ada.lan:11434")
        terminal.press("\r")
        assert terminal.end() == (0, b"ada.lan:11434\n")


@pytest.mark.parametrize("variables", [{}, {"TERM": "dumb"}])
def test_without_a_terminal_it_says_so(stored: dict[str, str], variables: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fleettui", "pick"],
        env={**os.environ, **stored, **variables, "PYTHONPATH": SRC},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        start_new_session=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "no terminal" in done.stderr
    assert "fleettui route" in done.stderr


def test_no_machine_is_declared(machines_dir: Path) -> None:
    with Terminal("pick", environment={"FLEETTUI_MACHINES": str(machines_dir)}) as terminal:
        assert terminal.end() == (2, b"")
        assert b"no machine file in" in terminal.written
        assert b"\x1b[?1049h" not in terminal.written


@pytest.mark.parametrize("arguments", [(), ("llama3.1:8b",)])
def test_nobody_answers(machines_dir: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    write_machine(machines_dir, "gone", **GONE)
    folders = {"FLEETTUI_MACHINES": str(machines_dir), "FLEETTUI_STATE_DIR": str(tmp_path / "state")}
    with Terminal("pick", *arguments, environment=folders) as terminal:
        assert terminal.end() == (4, b"")
        last = terminal.written[terminal.written.rindex(b"\x1b[?1049l") :]
        assert b"gone" in last
        assert b"check the network" in last


def test_an_unknown_model_ends_as_route_does(demo_fleet: DemoFleet) -> None:
    with Terminal("pick", "llama3.1:8c", environment=demo_fleet.environment) as terminal:
        assert terminal.end() == (3, b"")
        last = terminal.written[terminal.written.rindex(b"\x1b[?1049l") :]
        assert b"no machine knows 'llama3.1:8c'; nearest: llama3.1:8b" in last


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_kill_gives_the_terminal_back(stored: dict[str, str], number: signal.Signals) -> None:
    with Terminal("pick", environment=stored) as terminal:
        terminal.wait_for("ada.lan:11434")
        terminal.process.send_signal(number)
        assert terminal.end() == (128 + number, b"")
        assert has_given_back(terminal)
        assert b"Traceback" not in terminal.written


def test_no_color_and_ascii_signs(stored: dict[str, str]) -> None:
    environment = {**stored, "NO_COLOR": "1", "FLEETTUI_GLYPHS": "ascii"}
    with Terminal("pick", environment=environment) as terminal:
        shown = terminal.wait_for("ada.lan:11434")
        terminal.press(ESC)
        terminal.end()
        assert shown.isascii()
        codes = {
            code for match in re.findall(rb"\x1b\[([0-9;]*)m", terminal.written) for code in match.split(b";")
        }
        assert codes <= {b"", b"0", b"1", b"2", b"4", b"7", b"22", b"24", b"27", b"39", b"49"}


def test_wrong_settings_are_told_before_the_screen_is_taken(stored: dict[str, str]) -> None:
    with Terminal("pick", environment={**stored, "FLEETTUI_THEME": "no-such"}) as terminal:
        code, stdout = terminal.end()
        assert (code, stdout) == (2, b"")
        assert b"there is no theme" in terminal.written
        assert b"\x1b[?1049h" not in terminal.written


def test_what_polls_is_loaded_only_where_somebody_has_to_poll() -> None:
    """It is there a third sooner where a dashboard runs."""
    modules = "fleettui.cli.pick, fleettui.cli.serving, fleettui.fleet.latest, fleettui.tui.pick.app"
    program = f"import sys, {modules}; print(*sorted({{'pydantic', 'yaml', 'asyncssh'}} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": SRC},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == "\n"
