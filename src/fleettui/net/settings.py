"""What a Connector works with: paths and limits, all of them parameters."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DEFAULT_IDENTITIES = ("id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk")


@dataclass(frozen=True, slots=True)
class ConnectorSettings:
    """Paths and limits of the SSH side."""

    home: str
    ssh_config_files: tuple[str, ...] = ()
    """The user's first: the first value found wins."""
    known_hosts_files: tuple[str, ...] = ()
    """The user's; `UserKnownHostsFile` replaces them for a host."""
    global_known_hosts_files: tuple[str, ...] = ()
    """Always read in addition."""
    default_identities: tuple[str, ...] = ()
    """Private keys tried where none is named; missing ones are skipped."""
    agent_path: str | None = None
    """Socket of ssh-agent."""
    silence_s: float = 6.0
    """An open link without a byte for so long is "silent"; keepalives are sent to find out."""
    max_logins: int = 16
    """Key exchanges and logins in flight: more only make the event loop lag."""
    max_jump_opens: int = 64
    """Connections being opened through one jump host."""
    connect_s: float = 8.0
    """Name, connection and key exchange in all."""
    address_s: float = 3.0
    """One address."""
    stagger_s: float = 0.3
    """After which the next address is tried as well."""
    authentication_s: float = 5.0
    session_s: float = 5.0
    """Opening a channel on a link."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ, **limits: float) -> ConnectorSettings:
        """The places OpenSSH reads, with $HOME and $SSH_AUTH_SOCK."""
        home = environ.get("HOME") or str(Path("~").expanduser())
        ssh = f"{home}/.ssh"
        return cls(
            home=home,
            ssh_config_files=(f"{ssh}/config", "/etc/ssh/ssh_config"),
            known_hosts_files=(f"{ssh}/known_hosts", f"{ssh}/known_hosts2"),
            global_known_hosts_files=("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"),
            default_identities=tuple(f"{ssh}/{name}" for name in DEFAULT_IDENTITIES),
            agent_path=environ.get("SSH_AUTH_SOCK") or None,
            **limits,  # type: ignore[arg-type]
        )
