"""The rooms of the house, read from the source: what pure rooms never touch, who writes where, how large."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleettui.model.machine import EngineKind

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "fleettui"
PURE_ROOMS = ("model", "probes", "decide", "view")
MODULES = sorted(PACKAGE.rglob("*.py"))
PURE_MODULES = [path for path in MODULES if path.relative_to(PACKAGE).parts[0] in PURE_ROOMS]

# A pure room reads no clock, no environment, no file and no network, and is never random.
IMPURE_MODULES = {
    "asyncio", "asyncssh", "httpx", "httpcore", "h11", "sqlite3", "pydantic", "yaml", "textual", "rich",
    "platformdirs", "time", "random", "secrets", "uuid", "os", "pathlib", "tempfile", "shutil", "glob",
    "subprocess", "socket", "ssl", "select", "selectors", "signal", "threading", "concurrent",
    "multiprocessing", "logging", "urllib.request", "http", "getpass", "platform", "locale", "pwd",
    "importlib", "argparse", "click",
}  # fmt: skip
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "compile", "__import__", "breakpoint"}
CLOCK_READS = {"now", "utcnow", "today"}

ALLOWED = {"model/record.py": "calls exec()"}
"""It compiles constructors, as dataclasses does."""

MAX_LINES = 400
# The demo fleet is a program of its own: its streams are pipes to the process that started it.
OWN_PROGRAMS = {"demo/__main__.py"}
WRITERS = {"stdout": "cli/output.py", "stderr": "cli/diagnostics.py"}


def name_of(path: Path) -> str:
    """Path inside the package, for ids and messages."""
    return path.relative_to(PACKAGE).as_posix()


def parse(path: Path) -> ast.Module:
    """Syntax tree of a module."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def impurities(tree: ast.AST) -> Iterator[str]:
    """Each line of a module that reaches for the outside world, also inside functions and type checks."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                imported = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), level=0):
                imported = [module]
            case _:
                imported = []
        for name in imported:
            if name in IMPURE_MODULES or name.partition(".")[0] in IMPURE_MODULES:
                yield f"line {node.lineno}: imports {name}"  # type: ignore[attr-defined]
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in IMPURE_CALLS:
                yield f"line {node.lineno}: calls {name}()"
            case ast.Attribute(attr=attr, value=ast.Name(id=owner) | ast.Attribute(attr=owner)) if (
                attr in CLOCK_READS and owner in ("datetime", "date")
            ):
                yield f"line {node.lineno}: reads the clock, {owner}.{attr}"
            case ast.Attribute(attr="environ" | "getenv", lineno=line):
                yield f"line {line}: reads the environment"


@pytest.mark.parametrize("path", PURE_MODULES, ids=name_of)
def test_pure_room_reaches_nothing_outside(path: Path) -> None:
    found = [line for line in impurities(parse(path)) if not line.endswith(ALLOWED.get(name_of(path), "-"))]
    assert found == []


def test_impurities_are_recognised() -> None:
    source = """
import time, json
from datetime import datetime
import datetime as d
def f():
    import asyncssh.connection
    from os import environ
    datetime.now(); datetime.datetime.utcnow(); x.date.today(); y.now
    open("f"); os.environ
"""
    found = list(impurities(ast.parse(source)))
    assert len(found) == 8, found


def written_streams(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Uses of the standard streams as something to write to: (stream, line)."""
    # Looking whether it is a terminal, or which of the two it is, writes nothing.
    harmless = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        or (isinstance(node, ast.Attribute) and node.attr in ("isatty", "encoding"))
        for part in ast.iter_child_nodes(node)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(
                attr=("stdout" | "stderr" | "__stdout__" | "__stderr__") as attr, value=ast.Name(id="sys")
            ):
                if id(node) not in harmless:
                    yield attr.strip("_"), node.lineno
            case ast.Call(func=ast.Name(id="print"), keywords=keywords):
                if not any(keyword.arg == "file" for keyword in keywords):
                    yield "stdout", node.lineno
            case ast.Call(
                func=ast.Attribute(attr="write", value=ast.Name(id="os")),
                args=[ast.Constant(value=1 | 2 as fd), *_],
            ):
                yield ("stdout", "stderr")[fd - 1], node.lineno
            case ast.ImportFrom(module="sys", names=names):
                for alias in names:
                    if alias.name in WRITERS:
                        yield alias.name, node.lineno


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_one_module_writes_each_stream(path: Path) -> None:
    wrong = [
        f"line {line}: writes {stream}; only {WRITERS[stream]} does"
        for stream, line in written_streams(parse(path))
        if name_of(path) not in {WRITERS[stream], *OWN_PROGRAMS}
    ]
    assert wrong == []


def engine_of(name: str) -> str | None:
    """The engine a module of probes/engines belongs to (`ollama`, `ollama_host`); None where it is shared."""
    kind = name.partition("_")[0]
    return kind if kind in EngineKind.__args__ else None


def test_engines_do_not_know_each_other() -> None:
    wrong = []
    for path in sorted((PACKAGE / "probes" / "engines").glob("*.py")):
        own = engine_of(path.stem)
        for node in ast.walk(parse(path)):
            match node:
                case ast.Import(names=names):
                    imported = [alias.name for alias in names]
                case ast.ImportFrom(module=str(module), names=names):
                    imported = [f"{module}.{alias.name}" for alias in names]
                case _:
                    continue
            room = "fleettui.probes.engines."
            stems = [name.removeprefix(room).partition(".")[0] for name in imported if name.startswith(room)]
            wrong += [f"{path.name}: {stem}" for stem in stems if own and engine_of(stem) not in (own, None)]
    assert wrong == []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_is_small_enough_to_read(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_LINES, f"{name_of(path)} has {lines} lines; above {MAX_LINES} a room is missing"
