"""Grammar, help, exit codes and streams of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runner import Cli, write_machine

from fleettui import __version__


def test_version_is_one_line_on_stdout(cli: Cli) -> None:
    done = cli("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"fleettui {__version__}\n", "")


@pytest.mark.parametrize(
    "command", [(), ("status",), ("route",), ("machines",), ("machines", "check"), ("demo",)]
)
def test_each_help_lists_its_exit_codes_on_stdout(cli: Cli, command: tuple[str, ...]) -> None:
    done = cli(*command, "--help")
    assert done.returncode == 0
    assert "exit codes:" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("frobnicate",),
        ("status", "--no-such"),
        ("route",),
        ("--route",),
        ("route", "m", "--min-free-vram", "lots"),
        ("route", "m", "--format", "xml"),
        ("route", " "),
        ("status", "--interval", "0"),
        ("demo", "--machines", "0"),
        ("demo", "--machines", "301"),
        ("machines",),
    ],
)
def test_wrong_usage_exits_2_with_one_clear_text_and_an_empty_stdout(
    cli: Cli, arguments: tuple[str, ...], machines_dir: Path
) -> None:
    done = cli(*arguments, FLEETTUI_MACHINES=str(machines_dir))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("fleettui")
    assert "Traceback" not in done.stderr


def test_no_machine_files_says_where_it_looked_and_what_to_do(cli: Cli, machines_dir: Path) -> None:
    done = cli("status", "--machines", str(machines_dir))
    assert (done.returncode, done.stdout) == (2, "")
    assert str(machines_dir) in done.stderr
    assert "fleettui demo" in done.stderr


@pytest.mark.parametrize("before", [True, False])
def test_global_options_stand_before_and_after_the_command(
    cli: Cli, machines_dir: Path, before: bool
) -> None:
    write_machine(machines_dir, "ada")
    option = ("--machines", str(machines_dir))
    command = ("machines", "list")
    done = cli(*option, *command) if before else cli(*command, *option)
    assert done.returncode == 0
    assert "ada" in done.stdout


def test_settings_file_with_an_unknown_key_is_an_error_with_the_nearest_name(cli: Cli, home: Path) -> None:
    folder = home / ".config" / "fleettui"
    folder.mkdir(parents=True)
    (folder / "settings.yaml").write_text("intervall_s: 3\n")
    done = cli("machines", "list")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "settings.yaml:1" in done.stderr
    assert "interval_s" in done.stderr
