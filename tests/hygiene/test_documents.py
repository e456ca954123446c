"""README and docs/: links lead somewhere, every command line parses, the first machine file loads."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleettui.cli.arguments import parse_arguments
from fleettui.config.machine_folder import load_machines
from fleettui.config.settings import Settings, load_settings, variable_of
from fleettui.tui.actions import BY_ID
from fleettui.tui.key_check import key_problems
from fleettui.tui.look_check import look_problems
from fleettui.tui.port import Look
from fleettui.view.columns import COLUMNS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md", *(ROOT / "docs").glob("*.md")])
README = ROOT / "README.md"
MACHINES_PAGE = ROOT / "docs" / "machines.md"
COMMANDS_PAGE = ROOT / "docs" / "commands.md"
SETTINGS_PAGE = ROOT / "docs" / "settings.md"

FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
INLINE = re.compile(r"`([^`\n]+)`")
# In running text `fleettui status [NAME…]` is a form, not a command line.
FORM = re.compile(r"\[|…|<|\bCOMMAND\b")


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path) -> Iterator[tuple[str, str]]:
    """(language, text without its indentation) of each fenced block."""
    for indentation, language, text in FENCE.findall(path.read_text(encoding="utf-8")):
        yield language, re.sub(f"^{indentation}", "", text, flags=re.MULTILINE)


def prose(path: Path) -> str:
    """The text without its fenced blocks."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def headings(path: Path) -> set[str]:
    """Anchors as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def command_lines(path: Path) -> Iterator[list[str]]:
    """Arguments of every `fleettui …` in blocks, and of those in running text that are complete."""
    texts = [line for _, text in blocks(path) for line in text.splitlines()]
    texts += [line for line in prose(path).splitlines() if line.startswith("    ")]
    texts += [text for text in INLINE.findall(prose(path)) if not FORM.search(text)]
    for text in texts:
        line = re.sub(r"(^|\s)#.*", "", text.strip().removeprefix("$ "))
        found = re.search(r"(?:^|\$\()fleettui(?= |$|\))([^)|]*)", line)
        if found:
            yield shlex.split(found.group(1))


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_relative_links_lead_somewhere(path: Path) -> None:
    broken = []
    for target in LINK.findall(prose(path)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists() or (anchor and anchor not in headings(file)):
            broken.append(target)
    assert broken == []


def test_every_page_is_linked_from_readme() -> None:
    linked = {target.partition("#")[0] for target in LINK.findall(README.read_text(encoding="utf-8"))}
    assert {relative(path) for path in (ROOT / "docs").glob("*.md")} <= linked


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_command_lines_parse(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in command_lines(path):
        try:
            parse_arguments(arguments)
        except SystemExit as stop:
            said = capsys.readouterr().err
            assert stop.code == 0, f"{relative(path)}: fleettui {shlex.join(arguments)}: {said}"  # noqa: PT017


def test_command_lines_are_found() -> None:
    """The test above would pass on nothing."""
    found = [shlex.join(arguments) for arguments in command_lines(README)]
    assert {"", "status", "demo", "--route llama3.1:70b", "status spark enno"} <= set(found)
    assert len(list(command_lines(COMMANDS_PAGE))) > 15


@pytest.mark.parametrize("path", [README, MACHINES_PAGE], ids=relative)
def test_machine_files_shown_load(path: Path, tmp_path: Path) -> None:
    files = [text for language, text in blocks(path) if language == "yaml"]
    for index, text in enumerate(files):
        (tmp_path / f"{index}.yaml").write_text(text, encoding="utf-8")
    loaded = load_machines(str(tmp_path))
    assert loaded.problems == ()
    assert len(loaded.machines) == len(files) > 0


def test_settings_shown_are_accepted(tmp_path: Path) -> None:
    (text,) = (text for language, text in blocks(SETTINGS_PAGE) if language == "yaml")
    path = tmp_path / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    settings, problems = load_settings(str(path), environ={})
    assert problems == ()
    assert settings.keys
    assert list(key_problems(settings.keys)) == []
    assert list(look_problems(Look(theme=settings.theme, columns=settings.columns))) == []


def test_make_targets_shown_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    shown = {
        target
        for path in DOCUMENTS
        for target in re.findall(r"\bmake ([a-z-]+)", "\n".join(text for _, text in blocks(path)))
    }
    assert {"demo", "test"} <= shown <= targets


def test_pictures_refer_to_no_other_file() -> None:
    for path in (ROOT / "screenshots").glob("*.svg"):
        text = path.read_text(encoding="utf-8")
        assert "@font-face" not in text
        assert re.findall(r"url\((?!#)", text) == []


def test_the_page_of_settings_names_every_setting_action_and_column() -> None:
    text = SETTINGS_PAGE.read_text(encoding="utf-8")
    for name in (*Settings.__slots__, *BY_ID, *(column.key for column in COLUMNS)):
        assert re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", text), f"docs/settings.md says nothing of {name}"
    for key in Settings.__slots__:
        variable = variable_of(key)
        assert variable is None or f"`{variable}`" in text, key
