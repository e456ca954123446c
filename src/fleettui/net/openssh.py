"""The command line of OpenSSH's own client for a machine, with host keys verified as strictly as here. Pure.

It reads the operator's ssh_config itself, so only what the machine file says is given, and what must not be
weaker than our own login: whatever the configuration says, an unknown key is refused without a question."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.machine import Machine
from fleettui.net.errors import LinkError

KEY_ALIAS = "fleettui-approved"
"""The name under which the approved key stands in a known_hosts file of its own."""

STRICT = ("StrictHostKeyChecking=yes", "VerifyHostKeyDNS=no", "ControlMaster=no", "ControlPath=none")
"""A connection that another ssh keeps open was verified by its rules, not by ours: none is shared."""


def ssh_command(
    machine: Machine, *, key_file: str | None = None, config_file: str | None = None
) -> tuple[str, ...]:
    """Arguments from `ssh` on. `key_file`: known_hosts with the approved key alone, under KEY_ALIAS;
    `config_file`: instead of the operator's, jump hosts read it too. Raises LinkError(stage="settings")."""
    ssh = machine.ssh
    host = (ssh.host or machine.hostname).removeprefix("[").removesuffix("]")
    for what, word in (("host", host), ("ssh.user", ssh.user or ""), ("ssh.jump", ssh.jump or "")):
        if any(part.strip().startswith("-") for part in word.split(",")):
            text = f"{machine.name}: {what} {word[:80]!r} begins with a dash; correct {machine.config_file}"
            raise LinkError("settings", text, is_retryable=False)
    words: list[str] = ["ssh", "-t"]
    if config_file is not None:
        words += ["-F", config_file]
    options = list(STRICT)
    if key_file is not None:
        options += [
            f"HostKeyAlias={KEY_ALIAS}",
            f'UserKnownHostsFile="{key_file.replace("%", "%%")}"',
            "GlobalKnownHostsFile=/dev/null",
            "CheckHostIP=no",
            "UpdateHostKeys=no",
            "IgnoreUnknown=*",  # OpenSSH before 8.5 does not know the next one
            "KnownHostsCommand=none",
        ]
    if ssh.jump is not None and ssh.jump.lower() == "none":
        options += ["ProxyJump=none"]
    for option in options:
        words += ["-o", option]
    if ssh.jump and ssh.jump.lower() != "none":
        words += ["-J", ssh.jump.replace(" ", "")]
    if ssh.user:
        words += ["-l", ssh.user]
    if ssh.port:
        words += ["-p", str(ssh.port)]
    if ssh.identity:
        words += ["-i", ssh.identity]
    return (*words, "--", host)


def strict_config(files: Sequence[str]) -> str:
    """These files, but strict: for jump hosts, which do not get what stands on the command line."""
    lines = [option.replace("=", " ", 1) for option in STRICT]
    return "\n".join([*lines, *(f'Include "{path}"' for path in files)]) + "\n"


def key_line(public_key: str) -> str:
    """The line of known_hosts for a key `type base64`."""
    return f"{KEY_ALIAS} {public_key}\n"
