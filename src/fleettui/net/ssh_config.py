"""~/.ssh/config, read leniently: one file parse for all machines, an odd line is a notice, never an outage.

asyncssh's parser refuses whole files over one line that OpenSSH accepts (trailing comment, `10s`, a newer
Match word) and parses the file anew for each host; so the dozen keys that matter here are read by hand.
Source of the format: ssh_config(5); which value wins: the first one.
"""

from __future__ import annotations

import glob
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fleettui.model.machine import ConfigProblem
from fleettui.net.ssh_config_words import (
    expand_home,
    expand_tokens,
    local_user,
    match_list,
    rest_of,
    split_line,
)

_KEYWORDS = (
    "HostName User Port ProxyJump ProxyCommand HostKeyAlias IdentitiesOnly IdentityAgent AddressFamily "
    "IdentityFile CertificateFile UserKnownHostsFile"
)
_WANTED = {name.lower(): name for name in _KEYWORDS.split()}
_LISTS = {"IdentityFile", "CertificateFile"}
_MAX_INCLUDE_DEPTH = 8
_YES = {"yes", "true"}


@dataclass(frozen=True, slots=True)
class HostConfig:
    """What the user's configuration says of one host; None: nothing."""

    host_name: str
    user: str | None = None
    port: int | None = None
    proxy_jump: str | None = None
    """None also for `ProxyJump none`."""
    proxy_command: str | None = None
    host_key_alias: str | None = None
    identity_files: tuple[str, ...] = ()
    certificate_files: tuple[str, ...] = ()
    is_identities_only: bool = False
    identity_agent: str | None = None
    """Path, `SSH_AUTH_SOCK`, or `none`."""
    address_family: str = "any"
    """`any`, `inet`, `inet6`."""
    known_hosts_files: tuple[str, ...] | None = None
    """User's files; None: the usual ones."""


@dataclass(frozen=True, slots=True)
class _Line:
    key: str
    """Canonical name; `host` and `match` open a block."""
    words: tuple[str, ...]
    file: str
    number: int
    block: tuple[_Line, ...] = ()
    """Enclosing Host and Match lines, outermost first (an Include inside a block obeys it)."""


@dataclass(slots=True)
class SshConfig:
    """All lines of the configuration files, in order."""

    home: str
    problems: list[ConfigProblem] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """Every file read or looked for, to be watched for changes."""
    _lines: list[_Line] = field(default_factory=list)

    def add_file(self, path: str) -> None:
        """Read a file with what it includes; a missing one is no problem."""
        self._read(path, (), 0, base=str(Path(path).parent))

    def settings_for(self, alias: str, *, user: str | None = None) -> HostConfig:
        """Evaluate for one name, as `ssh -G` does."""
        return _Evaluation(self, alias, user).result()

    def _note(self, file: str, number: int, message: str) -> None:
        problem = ConfigProblem(file, number, None, message)
        if problem not in self.problems:
            self.problems.append(problem)

    def _read(self, path: str, outer: tuple[_Line, ...], depth: int, base: str) -> None:
        self.files.append(path)
        try:
            text = Path(path).read_bytes().decode("utf-8", "replace")
        except FileNotFoundError:
            return
        except OSError as error:
            self._note(path, 1, f"cannot be read: {error.strerror}")
            return
        block = outer
        for number, raw in enumerate(text.splitlines(), 1):
            try:
                words = split_line(raw)
            except ValueError as error:
                self._note(path, number, f"{error}; the line is skipped")
                continue
            if not words:
                continue
            key = words[0].lower()
            if key in ("host", "match"):
                block = (*outer, _Line(key, tuple(words[1:]), path, number))
            elif key == "include":
                self._include(_Line(key, tuple(words[1:]), path, number, block), depth, base)
            elif key in _WANTED:
                name = _WANTED[key]
                values = [rest_of(raw)] if name == "ProxyCommand" else words[1:]
                if not values or not values[0]:
                    self._note(path, number, f"{name} without a value; the line is skipped")
                    continue
                self._lines.append(_Line(name, tuple(values), path, number, block))

    def _include(self, line: _Line, depth: int, base: str) -> None:
        if depth >= _MAX_INCLUDE_DEPTH:
            self._note(line.file, line.number, "Include nested too deeply; the line is skipped")
            return
        for pattern in line.words:
            full = os.path.join(base, expand_home(pattern, self.home))  # noqa: PTH118 - keeps absolute patterns
            for path in sorted(glob.glob(full)):  # noqa: PTH207 - pattern is absolute
                self._read(path, line.block, depth + 1, base)


class _Evaluation:
    """One pass over the lines for one name."""

    def __init__(self, config: SshConfig, alias: str, user: str | None) -> None:
        self._config = config
        self._alias = alias
        self._values: dict[str, tuple[str, ...]] = {}
        self._origin: dict[str, _Line] = {}
        if user is not None:
            self._values["User"] = (user,)
        self._is_final = False
        self._wants_final = False

    def result(self) -> HostConfig:
        self._run()
        if self._wants_final:
            self._is_final = True
            self._run()
        return self._build()

    def _run(self) -> None:
        verdicts: dict[_Line, bool] = {}
        for line in self._config._lines:
            if all(self._holds(opener, verdicts) for opener in line.block):
                if line.key in _LISTS:
                    have = self._values.get(line.key, ())
                    if line.words[0] not in have:
                        self._values[line.key] = (*have, line.words[0])
                elif line.key not in self._values:
                    self._values[line.key] = line.words
                self._origin.setdefault(line.key, line)

    def _holds(self, opener: _Line, verdicts: dict[_Line, bool]) -> bool:
        if opener not in verdicts:
            if opener.key == "host":
                verdicts[opener] = match_list(self._alias, opener.words)
            else:
                verdicts[opener] = self._match(opener)
        return verdicts[opener]

    def _match(self, opener: _Line) -> bool:
        words = list(opener.words)
        while words:
            word = words.pop(0).lower()
            is_negated, word = word.startswith("!"), word.lstrip("!")
            word, _, inline = word.partition("=")
            if word in ("all", "final", "canonical"):
                self._wants_final = self._wants_final or word == "final"
                holds = word == "all" or (word == "final" and self._is_final)
            else:
                argument = inline or (words.pop(0) if words else "")
                known = self._match_value(word)
                if known is None:
                    self._config._note(
                        opener.file,
                        opener.number,
                        f"Match {word} is not understood here; its block is left out",
                    )
                    return False
                argument = argument.lower() if word == "host" else argument
                holds = match_list(known, argument.split(","))
            if holds == is_negated:
                return False
        return True

    def _match_value(self, word: str) -> str | None:
        if word == "host":
            return self._host_name()
        if word == "originalhost":
            return self._alias
        if word == "user":
            return self._one("User") or local_user()
        if word == "localuser":
            return local_user()
        return "exec" if word == "sessiontype" else None

    def _one(self, key: str) -> str | None:
        values = self._values.get(key)
        return values[0] if values else None

    def _host_name(self) -> str:
        name = self._one("HostName")
        if not name:
            return self._alias
        return (
            name.replace("%%", "\0").replace("%h", self._alias).replace("%n", self._alias).replace("\0", "%")
        )

    def _build(self) -> HostConfig:
        port = self._number("Port")
        jump = self._one("ProxyJump")
        command = self._one("ProxyCommand")
        if jump and command and self._comes_first("ProxyCommand", "ProxyJump"):
            jump = None
        if jump and jump.lower() == "none":
            jump = command = None
        if command and (command.lower() == "none" or jump):
            command = None
        known = self._values.get("UserKnownHostsFile")
        expand = self._expander(port)
        return HostConfig(
            host_name=self._host_name(),
            user=self._one("User"),
            port=port,
            proxy_jump=jump,
            proxy_command=self._expand("ProxyCommand", command, expand),
            host_key_alias=self._one("HostKeyAlias"),
            identity_files=self._paths("IdentityFile", expand),
            certificate_files=self._paths("CertificateFile", expand),
            is_identities_only=(self._one("IdentitiesOnly") or "no").lower() in _YES,
            identity_agent=self._expand("IdentityAgent", self._one("IdentityAgent"), expand),
            address_family=(self._one("AddressFamily") or "any").lower(),
            known_hosts_files=None if known is None else self._paths("UserKnownHostsFile", expand),
        )

    def _comes_first(self, key: str, other: str) -> bool:
        lines = self._config._lines
        return lines.index(self._origin[key]) < lines.index(self._origin[other])

    def _number(self, key: str) -> int | None:
        text = self._one(key)
        if text is None:
            return None
        if text.isascii() and text.isdigit() and 0 < int(text[:6]) < 65536:
            return int(text)
        line = self._origin[key]
        self._config._note(line.file, line.number, f"{key} {text[:40]!r} is no port; the line is skipped")
        return None

    def _paths(self, key: str, expand: Callable[[str], str]) -> tuple[str, ...]:
        found = []
        for text in self._values.get(key, ()):
            path = None if text.lower() == "none" else self._expand(key, text, expand)
            if path:
                found.append(expand_home(path, self._config.home))
        return tuple(found)

    def _expand(self, key: str, text: str | None, expand: Callable[[str], str]) -> str | None:
        if text is None:
            return None
        try:
            return expand(text)
        except ValueError as error:
            line = self._origin[key]
            self._config._note(line.file, line.number, f"{key}: {error}; the value is left out")
            return None

    def _expander(self, port: int | None) -> Callable[[str], str]:
        name = self._host_name()
        user = self._one("User") or local_user()
        local = socket.gethostname()
        tokens = {
            "%": "%", "h": name, "n": self._alias, "p": str(port or 22), "r": user, "u": local_user(),
            "d": self._config.home, "i": str(os.getuid()), "l": local, "L": local.partition(".")[0],
            "k": self._one("HostKeyAlias") or self._alias,
        }  # fmt: skip
        return lambda text: expand_tokens(text, tokens)
