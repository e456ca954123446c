"""The grammar of the command line, its help, README and docs/commands.md tell the same."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleettui.cli.grammar import build_parser

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
LONG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


def verbs_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def commands(
    parser: argparse.ArgumentParser, words: str = ""
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Each command with a parser of its own: `status`, `machines add`."""
    for verb, inner in verbs_of(parser).items():
        name = f"{words} {verb}".strip()
        if verbs_of(inner):
            yield from commands(inner, name)
        else:
            yield name, inner


COMMANDS = dict(commands(build_parser()))
GLOBAL = {option for action in build_parser()._actions for option in action.option_strings}


def own_options(parser: argparse.ArgumentParser) -> set[str]:
    """Long options beside those that every command has."""
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    options = {option for action in shown for option in action.option_strings if option.startswith("--")}
    return options - GLOBAL


def section(name: str) -> str:
    """The part of the page that is about a command, with the parts below it left out."""
    verb = name.rpartition(" ")[2]
    parts = re.split(r"^(##+ .*)$", PAGE, flags=re.MULTILINE)
    by_title = dict(zip(parts[1::2], parts[2::2], strict=True))
    for wanted in (set(name.split()), {verb}):
        for title, text in by_title.items():
            if wanted <= set(re.findall(r"[a-z]+", title)):
                return text
    return by_title[f"## fleettui {name.partition(' ')[0]}"]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_page_names_each_option_of_a_command(name: str) -> None:
    missing = own_options(COMMANDS[name]) - set(LONG.findall(section(name)))
    assert not missing, f"docs/commands.md says nothing of {sorted(missing)} of `fleettui {name}`"


def test_the_page_names_no_option_that_is_not_there() -> None:
    known = GLOBAL | {"--route", "--help"}
    for parser in COMMANDS.values():
        known |= own_options(parser)
    text = PAGE.partition("\n## Settings")[0]
    assert set(LONG.findall(text)) <= known


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_each_command_stands_in_the_table_of_commands(name: str) -> None:
    table = PAGE.partition("\n## ")[0]
    assert re.search(rf"`fleettui {name}\b", table), name


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_each_help_tells_what_it_does_its_options_and_exit_codes(name: str) -> None:
    parser = COMMANDS[name]
    text = parser.format_help()
    assert parser.description
    assert "exit codes:\n" in text
    for action in parser._actions:
        assert action.help, f"fleettui {name}: {action.dest} has no help"
    codes = set(re.findall(r"^  (\d)  ", text, re.MULTILINE))
    assert {"0", "2"} <= codes


def test_readme_shows_the_way_from_a_new_machine_to_a_check_up() -> None:
    for name in (
        "status",
        "--route",
        "machines add",
        "machines approve",
        "machines list --pending",
        "machines doctor",
        "demo",
    ):
        assert f"fleettui {name}" in README, name
    assert "docs/commands.md" in README
