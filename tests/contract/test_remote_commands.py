"""What docs/remote-commands.md says runs on a machine, against the loops themselves and what pollers ask."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

from fleettui.fleet.amd_record import AmdRecord
from fleettui.fleet.gpu_condition_record import GpuConditionRecord
from fleettui.fleet.needs import EVERYTHING
from fleettui.fleet.questions import Questions
from fleettui.probes.amd_sysfs import AmdFacts
from fleettui.probes.commands import COMMANDS, LOOP_KINDS, STARTING, RemoteCommand, When, loop_digest
from fleettui.probes.engines import REMOTE_PATHS
from fleettui.probes.loops import LoopKind, loop_command

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "remote-commands.md"
TOKEN = "0123456789abcdef"
TICK_S = 2.0


@cache
def generator() -> ModuleType:
    """scripts/remote_commands.py."""
    spec = importlib.util.spec_from_file_location("remote_commands", ROOT / "scripts" / "remote_commands.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def script_of(kind: LoopKind) -> str:
    """The text that /bin/sh runs; a long one travels in several words."""
    return loop_command(kind, TOKEN).replace("' '", "")


def cases_of(kind: LoopKind) -> dict[str, str]:
    """Section and body of each branch of the loop's own `case`, as the shell would take it apart."""
    text = script_of(kind)
    start = text.index("for w in $s; do case $w in ") + len("for w in $s; do case $w in ")
    found: dict[str, str] = {}
    depth, label_at, body_at = 0, start, -1
    for token in re.finditer(r"\bcase (?=\S+ in\b)|\besac\b|;;|\)", text[start:]):
        at = start + token.start()
        word = token.group().strip()
        if word == "case":
            depth += 1
        elif word == "esac":
            if depth == 0:
                return found
            depth -= 1
        elif depth == 0 and word == ")" and body_at < 0:
            body_at = at + 1
        elif depth == 0 and word == ";;":
            for label in text[label_at : body_at - 1].strip().split("|"):
                if label != "*":
                    name = label.partition(":")[0]
                    found[name] = found.get(name, "") + text[body_at:at]
            label_at, body_at = at + 2, -1
    raise AssertionError("the case has no end")


ENTRIES: dict[tuple[LoopKind, str], RemoteCommand] = {(item.loop, item.section): item for item in COMMANDS}


def test_the_page_and_the_forced_command_are_those_of_these_probes() -> None:
    assert PAGE.read_text(encoding="utf-8") == generator().page_text(), "stale: run make pages"
    wrapper = ROOT / "docs" / "restricted-key.sh"
    assert wrapper.read_text(encoding="utf-8") == generator().wrapper_text(), "stale: run make pages"
    assert wrapper.stat().st_mode & 0o111


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_each_section_of_a_loop_has_an_entry_and_each_entry_a_section(kind: LoopKind) -> None:
    sections = set(cases_of(kind))
    assert sections == {item.section for item in COMMANDS if item.loop == kind}
    assert len(sections) == sum(item.loop == kind for item in COMMANDS)


def test_sections_are_found() -> None:
    """The test above would pass on nothing."""
    assert {"stat", "mem", "disks", "blocks", "clock"} <= set(cases_of("facts"))
    assert {"gpu", "apps", "xid", "amd", "amd-process", "wake"} <= set(cases_of("gpu"))
    assert set(cases_of("engine")) == {"get"}


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_time_limits_are_those_of_the_scripts(kind: LoopKind) -> None:
    for section, body in cases_of(kind).items():
        limits = {int(number) for number in re.findall(r"\$T (\d+)", body)}
        if limits:
            assert limits == {ENTRIES[kind, section].limit_s}, section


def test_the_doctor_asks_only_what_the_loops_know() -> None:
    asked: set[tuple[str, str]] = set()
    for path in (ROOT / "src" / "fleettui" / "fleet" / "doctor").glob("*.py"):
        for kind, listed in re.findall(
            r'\.ask\(\s*"(facts|gpu|doctor)",((?:\s*"[^"]+",?)+)', path.read_text()
        ):
            asked |= {(kind, section) for section in re.findall(r'"([^"]+)"', listed)}
    assert {("gpu", "amd-find"), ("gpu", "find"), ("doctor", "who")} <= asked
    assert asked <= {(item.loop, item.section) for item in COMMANDS}


# What stands where a command does and is none of the machine's programs: words of the shell.
SHELL_WORDS = {
    "add", "break", "case", "command", "continue", "do", "done", "echo", "elif", "else", "esac", "eval",
    "exec", "exit", "export", "false", "fi", "for", "if", "in", "kill", "print", "read", "return", "set",
    "shift", "test", "then", "unset", "until", "while", "[",
}  # fmt: skip
COMMAND_PLACE = re.compile(
    r"(?:(?:\$\(|exec|;|&&|\|\||\||\{|\bthen|\bdo|\belse|!|^)\s+|\$\()(?:exec )?(?:\$\{T:\+\$T \d+\} )?"
    r"([a-z][a-z0-9_-]*)(?![a-z0-9_\-=)|:*])"
)


def programs_of(script: str) -> Iterator[str]:
    """Programs that a script may start, by where they stand."""
    functions = set(re.findall(r"\b([a-z_]+)\(\) \{", script))
    for word in COMMAND_PLACE.findall(script):
        if word not in SHELL_WORDS | functions:
            yield word
    for _, listed, body in re.findall(r'for (\w) in ((?:"[^"]*"|[\w-]+| )+); do(.*?)done', script):
        if "$c --version" in body or "$c 5 true" in body:
            yield from (word.strip('"').split()[0] for word in re.findall(r'"[^"]+"|[\w-]+', listed))
        if "$c 5 true" in body:
            yield "true"


# nvidia-smi, amd-smi and rocm-smi are started by a path that was looked for.
FOUND_BY_PATH = {"gpu": ("nvidia-smi", "amd-smi", "rocm-smi")}


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_each_program_that_a_loop_starts_is_named(kind: LoopKind) -> None:
    found = {*programs_of(script_of(kind)), *FOUND_BY_PATH.get(kind, ())}
    assert {"timeout", "true", "printf", "ps"} <= found
    named = {
        word
        for item in (*COMMANDS, *STARTING)
        if item.loop == kind
        for program in item.runs
        for word in program.split(" ")[:1] + (["true"] if "true" in program else [])
    }
    # At the end of a loop, where there is no /proc; printf: where the shell has none of its own.
    assert found - {"printf", "ps"} <= named, "name it in probes/commands.py"
    assert named <= found, "the script does not start it any more"


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_each_argument_on_the_page_stands_in_the_script(kind: LoopKind) -> None:
    script = script_of(kind)
    for item in COMMANDS:
        for word in (word for program in item.runs if item.loop == kind for word in program.split()[1:]):
            if word not in ("…", "PIDS") and not word.startswith("http://"):
                assert re.sub(r"(--query-[a-z-]+=).*", r"\1", word) in script, item.section


def test_programs_are_found() -> None:
    everything = {word for kind in LOOP_KINDS for word in programs_of(script_of(kind))}
    assert everything >= {
        "df", "ps", "lsblk", "uname", "grep", "dmesg", "journalctl", "tail", "curl", "wget", "date", "od",
        "id", "docker", "podman", "containerd", "timeout",
    }  # fmt: skip
    for word in everything | set(FOUND_BY_PATH["gpu"]):
        assert re.search(rf"\b{re.escape(word)}\b", PAGE.read_text(encoding="utf-8")), word


def test_paths_asked_of_engines_are_named() -> None:
    for path in REMOTE_PATHS:
        assert f"`{path}`" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_nothing_is_written_and_nobody_becomes_root(kind: LoopKind) -> None:
    script = re.sub(r'"<[a-z_/]+( id=)?>?"', '""', script_of(kind))  # elements of nvidia-smi's XML
    assert re.findall(r">(?!&|/dev/null)", script) == []
    assert not re.search(r"\b(sudo|su|doas|pkexec|rm|mv|cp|tee|touch|mkdir|chmod|mktemp|modprobe)\b", script)


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_a_loop_is_constant_text_apart_from_its_token(kind: LoopKind) -> None:
    other = loop_command(kind, "f" * 16)
    assert other.removesuffix("f" * 16) == loop_command(kind, TOKEN).removesuffix(TOKEN)
    assert f"`{loop_digest(kind)}`" in PAGE.read_text(encoding="utf-8")


def times_asked(seconds: float) -> dict[str, list[float]]:
    """When a poller that answers everything asks which section: a machine with every kind of card."""
    questions, condition, amd = Questions(EVERYTHING), GpuConditionRecord(), AmdRecord()
    steps: tuple[Callable[[float], tuple[str, ...]], ...] = (
        questions.facts_due,
        lambda at: amd.due(at, True) + questions.gpu_due(at, ()),
        lambda at: questions.condition_due(at, condition),
    )
    condition.has_mig = True
    amd._sysfs = (AmdFacts("0000:03:00.0"),)
    amd._payloads["amd-static"] = b"amd-smi\n{}"
    asked: dict[str, list[float]] = {}
    now = 1000.0
    while now < 1000.0 + seconds:
        for step in steps:
            sections = step(now)
            questions.note_asked(sections, now)
            amd.ask(sections, now)
            for section in sections:
                asked.setdefault(section.partition(":")[0], []).append(now)
        now += TICK_S
    return asked


def test_sections_are_asked_as_often_as_the_page_says() -> None:
    asked = times_asked(1300.0)
    periods: dict[When, float] = {"tick": TICK_S, **generator().PERIODS}
    for item in COMMANDS:
        if item.loop not in ("facts", "gpu") or item.section in ("tool", "wake", "version"):
            continue
        times = asked.get(item.section, [])
        gaps = {after - before for before, after in pairwise(times)}
        if item.when in periods:
            assert gaps == {periods[item.when]}, (item.section, gaps)
        elif item.when == "connection":
            assert len(times) == 1, item.section
        else:
            assert times == [], item.section


def test_nothing_is_asked_that_the_page_does_not_know() -> None:
    assert set(times_asked(200.0)) <= {item.section for item in COMMANDS}
