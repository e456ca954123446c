"""~/.ssh/config, read leniently: one file parse for all machines, an odd line is a notice, never an outage.

asyncssh's parser refuses whole files over one line that OpenSSH accepts (trailing comment, `10s`, a newer
Match word) and parses the file anew for each host; so the dozen keys that matter here are read by hand.
Source of the format: ssh_config(5); which value wins: the first one.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass

from fleettui.net.ssh_config_keywords import LIST_KEYWORDS
from fleettui.net.ssh_config_lines import ConfigLine, ConfigLines
from fleettui.net.ssh_config_words import expand_home, expand_tokens, expand_variables, local_user, match_list

_YES = {"yes", "true"}
_FAMILIES = {"any", "inet", "inet6"}
_NOT_MATCHED = {
    "exec": "is not carried out here",
    "localnetwork": "is not looked at here",
    "version": "means ssh, which is not used here",
}


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
    identity_files: tuple[str, ...] | None = None
    """None: the usual ones; empty: none (`IdentityFile none`)."""
    certificate_files: tuple[str, ...] = ()
    is_identities_only: bool = False
    identity_agent: str | None = None
    """Path, `SSH_AUTH_SOCK`, or `none`."""
    address_family: str = "any"
    """`any`, `inet`, `inet6`."""
    bind_address: str | None = None
    """Address or name of this computer to connect from."""
    known_hosts_files: tuple[str, ...] | None = None
    """User's files; None: the usual ones."""
    global_known_hosts_files: tuple[str, ...] | None = None
    """The system's files; None: the usual ones."""


class SshConfig(ConfigLines):
    """The configuration files, to be evaluated for one name after the other."""

    def settings_for(self, alias: str, *, user: str | None = None) -> HostConfig:
        """What applies to one name, as `ssh -G` shows it."""
        return _Evaluation(self, alias, user).result()


class _Evaluation:
    """One pass over the lines for one name."""

    def __init__(self, config: SshConfig, alias: str, user: str | None) -> None:
        self._config = config
        self._alias = alias
        self._values: dict[str, tuple[str, ...]] = {}
        self._origin: dict[str, ConfigLine] = {}
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
        verdicts: dict[ConfigLine, bool] = {}
        for line in self._config.lines:
            if all(self._holds(opener, verdicts) for opener in line.block):
                self._origin.setdefault(line.key, line)
                if line.key in LIST_KEYWORDS:
                    have = self._values.get(line.key, ())
                    if line.words[0] not in have:
                        self._values[line.key] = (*have, line.words[0])
                elif line.key not in self._values:
                    self._values[line.key] = line.words

    def _holds(self, opener: ConfigLine, verdicts: dict[ConfigLine, bool]) -> bool:
        if opener not in verdicts:
            if opener.key == "host":
                verdicts[opener] = match_list(self._alias, opener.words)
            else:
                verdicts[opener] = self._match(opener)
        return verdicts[opener]

    def _match(self, opener: ConfigLine) -> bool:
        words = list(opener.words)
        if not words:
            return False
        while words:
            word, _, inline = words.pop(0).partition("=")
            is_negated, word = word.startswith("!"), word.lstrip("!").lower()
            if word in ("all", "final", "canonical"):
                self._wants_final = self._wants_final or word == "final"
                holds = word == "all" or self._is_final
            else:
                argument = inline or (words.pop(0) if words else "")
                known = self._match_value(word)
                if known is None:
                    why = _NOT_MATCHED.get(word, "is not known here")
                    note = f"Match {word[:40]} {why}; its block is left out"
                    self._config.note(opener.file, opener.number, note)
                    return False
                argument = argument.lower() if word == "host" else argument
                holds = match_list(known, argument.split(","))
            if holds == is_negated:
                return False
        return True

    def _match_value(self, word: str) -> str | None:
        """What a condition is compared with; None where it cannot be known."""
        if word == "host":
            return self._host_name()
        if word == "originalhost":
            return self._alias
        if word == "user":
            return self._one("User") or local_user()
        if word == "localuser":
            return local_user()
        if word == "tagged":
            return self._one("Tag") or ""
        return {"sessiontype": "exec", "command": ""}.get(word)

    def _one(self, key: str) -> str | None:
        values = self._values.get(key)
        return values[0] if values else None

    def _host_name(self) -> str:
        """Name to connect to, in lower case as ssh has it."""
        name = self._one("HostName")
        if not name:
            return self._alias.lower()
        try:
            return expand_tokens(name, {"%": "%", "h": self._alias}).strip("[]").lower()
        except ValueError as error:
            line = self._origin["HostName"]
            self._config.note(line.file, line.number, f"HostName: {error}; the value is left out")
            return self._alias.lower()

    def _build(self) -> HostConfig:
        port = self._number("Port")
        expand = self._expander(port)
        jump, command = self._proxy()
        return HostConfig(
            host_name=self._host_name(),
            user=self._one("User"),
            port=port,
            proxy_jump=self._expand("ProxyJump", jump, expand),
            proxy_command=self._expand("ProxyCommand", command, expand, has_variables=False),
            host_key_alias=self._one("HostKeyAlias"),
            identity_files=self._paths("IdentityFile", expand),
            certificate_files=self._paths("CertificateFile", expand) or (),
            is_identities_only=(self._one("IdentitiesOnly") or "no").lower() in _YES,
            identity_agent=self._agent(expand),
            address_family=self._family(),
            bind_address=self._one("BindAddress"),
            known_hosts_files=self._paths("UserKnownHostsFile", expand),
            global_known_hosts_files=self._paths("GlobalKnownHostsFile", expand),
        )

    def _proxy(self) -> tuple[str | None, str | None]:
        """(ProxyJump, ProxyCommand): whichever comes first counts; a jump of `none` hinders no command."""
        jump, command = self._one("ProxyJump"), self._one("ProxyCommand")
        if jump and command and self._comes_first("ProxyCommand", "ProxyJump"):
            jump = None
        if jump and jump.lower() == "none":
            jump = None
        if command and (command.lower() == "none" or jump):
            command = None
        return jump, command

    def _agent(self, expand: Callable[[str], str]) -> str | None:
        """IdentityAgent: a path, `$NAME` of a variable that holds one, `none` or `SSH_AUTH_SOCK`."""
        text = self._one("IdentityAgent")
        if text is not None and text.startswith("$") and not text.startswith("${"):
            return os.environ.get(text[1:]) or "none"
        path = self._expand("IdentityAgent", text, expand)
        return None if path is None else expand_home(path, self._config.home)

    def _family(self) -> str:
        family = (self._one("AddressFamily") or "any").lower()
        if family in _FAMILIES:
            return family
        line = self._origin["AddressFamily"]
        self._config.note(
            line.file, line.number, f"AddressFamily {family[:40]!r} is none; the line is skipped"
        )
        return "any"

    def _comes_first(self, key: str, other: str) -> bool:
        lines = self._config.lines
        return lines.index(self._origin[key]) < lines.index(self._origin[other])

    def _number(self, key: str) -> int | None:
        text = self._one(key)
        if text is None:
            return None
        if text.isascii() and text.isdigit() and 0 < int(text[:6]) < 65536:
            return int(text)
        line = self._origin[key]
        self._config.note(line.file, line.number, f"{key} {text[:40]!r} is no port; the line is skipped")
        return None

    def _paths(self, key: str, expand: Callable[[str], str]) -> tuple[str, ...] | None:
        """The files named; None where no line names any, empty for `none`."""
        if key not in self._values:
            return None
        found = []
        for text in self._values[key]:
            path = None if text.lower() == "none" else self._expand(key, text, expand)
            if path:
                found.append(expand_home(path, self._config.home))
        return tuple(found)

    def _expand(
        self, key: str, text: str | None, expand: Callable[[str], str], *, has_variables: bool = True
    ) -> str | None:
        if text is None:
            return None
        try:
            return expand(expand_variables(text) if has_variables else text)
        except ValueError as error:
            line = self._origin[key]
            self._config.note(line.file, line.number, f"{key}: {error}; the value is left out")
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
