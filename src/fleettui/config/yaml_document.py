"""One YAML document as JSON-ready values, with the line of every key and all problems at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

from fleettui.config.yaml_builder import YamlBuilder, YamlFailure, YamlNode, YamlProblem
from fleettui.model.record import dataclass

MAX_BYTES = 1 << 20

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_HINTS = (
    (
        "cannot start any token",
        "use spaces, not tabs, to indent, and quote text that begins with @ ` % or a tab",
    ),
    ("mapping values are not allowed", 'put text that contains ": " in quotes'),
    ("end of stream", "close the quote or bracket that is still open"),
    ("<stream end>", "close the quote or bracket that is still open"),
    ("escape c", 'use single quotes, or double each backslash, in "…" text'),
    ("nesting depth", "nest less deeply"),
)
_HINT = "check the indentation, colons, quotes and brackets at this line"


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """A read document; `problems` is empty exactly when it is clean."""

    value: Any
    """dict, list, str, int, float, bool or None; None too when nothing could be read."""
    problems: tuple[YamlProblem, ...] = ()
    root: YamlNode | None = None

    def line_of(self, path: Sequence[str | int]) -> int | None:
        """Line of the key at `path`, else of the nearest part above it that exists."""
        if self.root is None:
            return None
        node, line = self.root, self.root.line
        for part in path:
            found = node.children.get(part)
            if found is None:
                break
            line, node = found
        return line


def read_yaml(data: bytes, loader: Any = None) -> YamlDocument:
    """The document in `data`; never raises. `loader`: a PyYAML loader class, default the C one."""
    if len(data) > MAX_BYTES:
        return _failed(YamlProblem(None, None, "The file is larger than 1 MiB; a few lines are enough."))
    builder = YamlBuilder()
    try:
        text = _decode(data)
        events = yaml.parse(text, Loader=loader or _LOADER)
        root = builder.build_document(events)
    except YamlFailure as failure:
        return _failed(*builder.problems, failure.problem)
    except yaml.YAMLError as error:
        return _failed(*builder.problems, _syntax_problem(error))
    except RecursionError:
        return _failed(
            *builder.problems, YamlProblem(None, None, "The file is nested too deeply; flatten it.")
        )
    return YamlDocument(root.value, tuple(builder.problems), root)


def _failed(*problems: YamlProblem) -> YamlDocument:
    return YamlDocument(None, problems)


def _decode(data: bytes) -> str:
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise YamlFailure(line, "The file is not UTF-8 text; save it as UTF-8.") from None
    bad = _UNPRINTABLE.search(text)
    if bad is not None:
        line = text.count("\n", 0, bad.start()) + 1
        name = f"U+{ord(bad.group()):04X}"
        raise YamlFailure(line, f"The file holds the control character {name}; remove it.")
    return text


def _syntax_problem(error: yaml.YAMLError) -> YamlProblem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    what = str(getattr(error, "problem", None) or "it cannot be read")
    hint = next((text for sign, text in _HINTS if sign in what), _HINT)
    return YamlProblem(
        None if mark is None else mark.line + 1, None, f"Not valid YAML ({what[:120]}); {hint}."
    )
