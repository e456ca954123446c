"""Grammar, help, exit codes and streams of the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cli_runner import Cli, write_machine

from fleettui import __version__
from fleettui.cli.main import main


def test_version_is_one_line_on_stdout(cli: Cli) -> None:
    done = cli("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"fleettui {__version__}\n", "")


@pytest.mark.parametrize(
    "command", [(), ("status",), ("route",), ("pick",), ("machines",), ("machines", "check"), ("demo",)]
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
        ("pick", " "),
        ("pick", "m", "n"),
        ("pick", "--format", "json"),
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


@pytest.mark.parametrize(
    "arguments", [("status", "--json"), ("route", "m", "--json"), ("machines", "list", "--json")]
)
def test_json_is_printed_also_where_the_settings_are_wrong(
    cli: Cli, arguments: tuple[str, ...], home: Path
) -> None:
    settings = home / ".config" / "fleettui" / "settings.yaml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("bogus: 1\n")
    done = cli(*arguments)
    document = json.loads(done.stdout)
    assert done.returncode == 2
    assert (document["schema"], document["exit_code"]) == (1, 2)
    assert "bogus" in document["errors"][0]["message"]
    assert done.stderr.startswith("fleettui")


@pytest.mark.parametrize("arguments", [("status",), ("route", "m"), ("machines", "list")])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_missing_folder_is_a_configuration_error_for_every_command(
    cli: Cli, arguments: tuple[str, ...], form: tuple[str, ...], tmp_path: Path
) -> None:
    done = cli(*arguments, *form, "--machines", str(tmp_path / "nowhere"))
    assert done.returncode == 2
    if form:
        assert json.loads(done.stdout)["schema"] == 1
    else:
        assert done.stdout == ""
        assert "nowhere" in done.stderr


@pytest.mark.parametrize("redirection", ["> /dev/full", ">&-", "> /dev/full 2>&-"])
def test_an_unwritable_stdout_is_one_sentence(cli: Cli, machines_dir: Path, redirection: str) -> None:
    write_machine(machines_dir, "ada")
    done = cli.shell(f"machines list --machines {machines_dir} {redirection}")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("fleettui machines: ") or "2>&-" in redirection


def test_a_closed_stderr_changes_no_exit_code(cli: Cli, machines_dir: Path) -> None:
    (machines_dir / "ada.yaml").write_text("name: [")
    done = cli.shell(f"route m --machines {machines_dir} 2>&-")
    assert (done.returncode, done.stdout) == (2, "")


def test_bytes_that_are_no_text_leave_the_document_valid(cli: Cli, machines_dir: Path) -> None:
    Path(os.fsdecode(bytes(machines_dir) + b"/b\xff.yaml")).write_text("name: [")
    for encoding in ("utf-8:strict", "utf-8:surrogateescape"):
        done = cli("machines", "list", "--json", "--machines", str(machines_dir), PYTHONIOENCODING=encoding)
        assert json.loads(done.stdout.encode("utf-8"))["total"] == 0
        assert done.stderr == ""


def test_a_defect_of_ours_is_a_sentence_with_its_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> int:
        raise ZeroDivisionError("one by none")

    monkeypatch.setattr("fleettui.cli.main._command_of", lambda _: fail)
    monkeypatch.setattr("fleettui.cli.output.discard", lambda: None)
    assert main(["status"]) == 1
    assert "internal error in test_cli_usage:" in capsys.readouterr().err
