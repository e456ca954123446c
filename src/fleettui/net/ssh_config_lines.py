"""The lines of ssh_config files with what they include; an odd line is a notice, never an outage."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass, field
from pathlib import Path

from fleettui.model.machine import ConfigProblem
from fleettui.net.ssh_config_keywords import (
    NOT_DONE,
    ONE_VALUE_KEYWORDS,
    READ_KEYWORDS,
    WITHOUT_EFFECT,
)
from fleettui.net.ssh_config_words import expand_home, match_list, rest_of, split_line

_MAX_INCLUDE_DEPTH = 8
_MAX_FILES = 512
"""A folder of includes that include each other would multiply for ever."""
MAX_FILE_BYTES = 4 << 20
_MAX_PROBLEMS = 100
_NO = {"no", "false", "none"}


@dataclass(frozen=True, slots=True)
class ConfigLine:
    """A line that matters here."""

    key: str
    """Canonical name; `host` and `match` open a block."""
    words: tuple[str, ...]
    file: str
    number: int
    block: tuple[ConfigLine, ...] = ()
    """Enclosing Host and Match lines, outermost first (an Include inside a block obeys it)."""


@dataclass(slots=True)
class ConfigLines:
    """All lines of the configuration files, in order."""

    home: str
    problems: list[ConfigProblem] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """Every file read or looked for, to be watched for changes."""
    lines: list[ConfigLine] = field(default_factory=list)
    _ignored: tuple[str, ...] = ()
    """Patterns of IgnoreUnknown."""

    def add_file(self, path: str) -> None:
        """Read a file with what it includes; a missing one is no problem."""
        self._read(path, (), 0, base=str(Path(path).parent))

    def note(self, file: str, number: int, message: str) -> None:
        """Report an odd line once; the list ends at a length somebody may still read."""
        problem = ConfigProblem(file, number, None, message)
        if len(self.problems) < _MAX_PROBLEMS and problem not in self.problems:
            self.problems.append(problem)

    def _read(self, path: str, outer: tuple[ConfigLine, ...], depth: int, base: str) -> None:
        if len(self.files) >= _MAX_FILES:
            return
        self.files.append(path)
        try:
            with Path(path).open("rb") as file:
                raw_text = file.read(MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            self.note(path, 1, f"cannot be read: {getattr(error, 'strerror', None) or error}")
            return
        if len(raw_text) > MAX_FILE_BYTES:
            self.note(path, 1, f"larger than {MAX_FILE_BYTES >> 20} MiB; the file is left out")
            return
        block = outer
        text = raw_text.decode("utf-8", "replace").removeprefix("\ufeff")
        for number, raw in enumerate(text.split("\n"), 1):
            try:
                words = split_line(raw)
            except ValueError as error:
                self.note(path, number, f"{error}; the line is skipped")
                continue
            if not words:
                continue
            line = ConfigLine(words[0].lower(), tuple(words[1:]), path, number, block)
            if line.key in ("host", "match"):
                block = (*outer, ConfigLine(line.key, line.words, path, number))
                if not line.words:
                    self.note(path, number, f"{words[0]} without a condition; its block is left out")
            elif line.key == "include":
                self._include(line, depth, base)
            else:
                self._keep(line, words[0], raw)

    def _keep(self, line: ConfigLine, written: str, raw: str) -> None:
        """Keep a line that is read here; name one that would have mattered."""
        key = line.key
        if key in READ_KEYWORDS:
            name = READ_KEYWORDS[key]
            values = (rest_of(raw),) if name == "ProxyCommand" else line.words
            if not values or not values[0]:
                self.note(line.file, line.number, f"{name} without a value; the line is skipped")
                return
            if len(values) > 1 and key in ONE_VALUE_KEYWORDS:
                self.note(line.file, line.number, f"{name} takes one value; the others are left out")
            self.lines.append(ConfigLine(name, values, line.file, line.number, line.block))
        elif key == "ignoreunknown":
            self._ignored += tuple(",".join(line.words).lower().split(","))
        elif key in NOT_DONE:
            if line.words and line.words[0].lower() not in _NO:
                self.note(line.file, line.number, f"{written} is not done here: {NOT_DONE[key]}")
        elif key not in WITHOUT_EFFECT and not match_list(key, self._ignored):
            shown = "".join(char if char.isprintable() else "·" for char in written[:40])
            self.note(line.file, line.number, f"{shown} is not known here; the line is skipped")

    def _include(self, line: ConfigLine, depth: int, base: str) -> None:
        if depth >= _MAX_INCLUDE_DEPTH:
            self.note(line.file, line.number, "Include nested too deeply; the line is skipped")
            return
        if not line.words:
            self.note(line.file, line.number, "Include without a file; the line is skipped")
        for pattern in line.words:
            full = os.path.join(base, expand_home(pattern, self.home))  # noqa: PTH118 - keeps absolute patterns
            try:
                paths = sorted(glob.glob(full))  # noqa: PTH207 - pattern is absolute
            except (ValueError, OSError):  # a NUL in it
                paths = []
            # A file that comes later, or one more in a folder, changes what is included.
            folder, name = os.path.split(full)
            self.files.append(folder if glob.has_magic(name) else full)
            for path in paths:
                self._read(path, line.block, depth + 1, base)
