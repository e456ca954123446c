"""docs/health.md lists every reason code that decide/ can give, and no other; found in the source text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "fleettui"
PAGE = ROOT / "docs" / "health.md"
WEIGHTS = {"offline", "unhealthy", "degraded", "note"}


def words_of(room: str, name: str) -> tuple[str, ...]:
    """The strings of a `Name = Literal[…]` or of a tuple."""
    for path in sorted((SOURCE / room).glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
                value = node.value.slice if isinstance(node.value, ast.Subscript) else node.value
                return tuple(str(word) for word in ast.literal_eval(value))
    raise AssertionError(f"{room}/ has no {name}")


def made_codes() -> dict[str, set[str]]:
    """What each expression for a code, other than a plain string, may come to."""
    problems = words_of("model", "GpuProblemCode")
    throttles = [
        word.replace(" ", "_") for word in words_of("model", "ThrottleReason") if word != "sync boost"
    ]
    hosts = words_of("decide", "HOST_SOURCES")
    return {
        "f'gpu_{problem.code}'": {f"gpu_{code}" for code in problems},
        "f'amd_{problem.code}'": {f"amd_{code}" for code in problems},
        "f'gpu_{fault.code}'": {f"gpu_{code}" for code in words_of("model", "GpuFaultCode")},
        "f'engine_{engine.state}'": {
            f"engine_{state}" for state in words_of("model", "EngineState") if state not in ("ok", "busy")
        },
        "f'{name}_late'": {f"{name}_late" for name in hosts},
        "f'{names[0]}_error'": {f"{name}_error" for name in hosts},
        "'ssh_' + stage.replace(' ', '_')": {
            f"ssh_{stage.replace(' ', '_')}" for stage in words_of("model", "LinkStage")
        },
        "code": {f"gpu_throttle_{word}" for word in throttles},
    }


def code_expressions() -> Iterator[tuple[str, ast.expr]]:
    """Second argument of each `Reason(…)`, and the file it stands in."""
    for path in sorted((SOURCE / "decide").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Reason":
                yield path.name, node.args[1]


def codes_in_source() -> set[str]:
    made, found = made_codes(), set()
    for file, expression in code_expressions():
        if isinstance(expression, ast.Constant):
            found.add(str(expression.value))
            continue
        text = ast.unparse(expression)
        assert text in made, f"decide/{file}: what may {text} come to? add it to made_codes"
        found |= made[text]
    return found


def rows() -> list[list[str]]:
    """Cells of the table of reason codes."""
    table = PAGE.read_text(encoding="utf-8").partition("## Reason codes\n")[2]
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]


def test_every_code_is_on_the_page_and_none_besides() -> None:
    listed = [code for row in rows() for code in re.findall(r"`(\w+)`", row[0])]
    assert len(listed) == len(set(listed)), "a code is listed twice"
    assert set(listed) == codes_in_source()


def test_each_row_says_how_it_weighs_what_it_means_and_what_to_do() -> None:
    assert rows()
    for row in rows():
        assert len(row) == 4, row
        assert set(row[1].split(", ")) <= WEIGHTS, row
        assert all(len(cell) > 8 for cell in row[2:]), row


def test_codes_are_made_only_where_health_is_judged() -> None:
    """The table above would miss others."""
    for path in SOURCE.rglob("*.py"):
        if path.parent.name == "decide":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        made = [node.lineno for node in calls if ast.unparse(node.func) == "Reason" and len(node.args) == 3]
        assert not made, f"{path.relative_to(ROOT)}:{made}"
