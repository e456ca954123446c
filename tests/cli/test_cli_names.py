"""Names that no machine has: every command that takes one says the same of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runner import Cli, write_machine

COMMANDS = (
    ("status", "ada"),
    ("logs", "ada"),
    ("events", "ada"),
    ("maintenance", "on", "ada"),
    ("machines", "approve", "ada"),
    ("machines", "reject", "ada"),
    ("machines", "remove", "ada"),
    ("machines", "doctor", "ada"),
)
each_command = pytest.mark.parametrize("command", COMMANDS, ids=" ".join)


@pytest.fixture
def fleet(machines_dir: Path, tmp_path: Path) -> Cli:
    """One machine, bora."""
    write_machine(machines_dir, "bora")
    return Cli({"FLEETTUI_MACHINES": str(machines_dir), "FLEETTUI_STATE_DIR": str(tmp_path / "state")})


@each_command
def test_a_near_name_is_offered(fleet: Cli, machines_dir: Path, command: tuple[str, ...]) -> None:
    done = fleet(*command[:-1], "bara")
    assert (done.returncode, done.stdout) == (3, "")
    assert f"no machine is named 'bara' in {machines_dir}" in done.stderr
    assert "did you mean bora?" in done.stderr


@each_command
def test_a_broken_file_of_that_name_is_told(fleet: Cli, machines_dir: Path, command: tuple[str, ...]) -> None:
    broken = machines_dir / "ada.yaml"
    broken.write_text("name: ada\nrole: [\n")
    done = fleet(*command)
    if command[:2] == ("machines", "doctor"):  # which checks files
        assert done.returncode == 2
        assert f"{broken}:3: Not valid YAML" in done.stdout
        return
    assert (done.returncode, done.stdout) == (3, "")
    assert f"{broken}:3: Not valid YAML" in done.stderr


@each_command
def test_some_broken_file_may_declare_it(fleet: Cli, machines_dir: Path, command: tuple[str, ...]) -> None:
    (machines_dir / "x.yaml").write_text("name: ada\nrole: [\n")
    done = fleet(*command)
    assert (done.returncode, done.stdout) == (3, "")
    assert "1 file there cannot be used: fleettui machines check" in done.stderr


@each_command
def test_a_folder_that_is_not_there_is_the_reason(
    fleet: Cli, tmp_path: Path, command: tuple[str, ...]
) -> None:
    folder = tmp_path / "nowhere"
    done = fleet(*command, "--machines", str(folder))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"no machines: {folder}: The machines folder does not exist" in done.stderr
