"""From a machine file and ~/.ssh/config to the logins it takes: jump hosts first, the machine last. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fleettui.model.machine import Machine
from fleettui.net.errors import LinkError
from fleettui.net.ssh_config import HostConfig, SshConfig
from fleettui.net.ssh_config_words import expand_home, local_user

MAX_HOPS = 8


@dataclass(frozen=True, slots=True)
class Hop:
    """One SSH login."""

    host: str
    """Name or address to connect to."""
    port: int
    user: str
    pins: tuple[str, ...] = ()
    """Fingerprints the host key must have, of `ssh.host_key` and of earlier approval."""
    counts_known_hosts: bool = True
    """False: after a rejection or removal only pins make a key trusted."""
    is_reading: bool = False
    """Only the key is wanted: no key is trusted, so that nothing follows the key exchange."""
    host_key_alias: str | None = None
    identity_files: tuple[str, ...] | None = None
    """Named by the operator; tried before anything else. None: none named; empty: there shall be none."""
    certificate_files: tuple[str, ...] = ()
    is_identities_only: bool = False
    identity_agent: str | None = None
    """IdentityAgent: path, `none`, or None for the environment's."""
    address_family: str = "any"
    bind_address: str | None = None
    """Of this computer, to connect from."""
    proxy_command: str | None = None
    known_hosts_files: tuple[str, ...] | None = None
    global_known_hosts_files: tuple[str, ...] | None = None

    @property
    def where(self) -> str:
        """`host:port`, for messages."""
        return format_address(self.host, self.port)


def format_address(host: str, port: int) -> str:
    """`host:port`, `[::1]:port`."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def plan_hops(machine: Machine, config: SshConfig) -> tuple[Hop, ...]:
    """Jump hosts in order, then the machine. Raises LinkError(stage="settings")."""
    ssh = machine.ssh
    alias = _without_brackets(ssh.host or machine.hostname)
    found = config.settings_for(alias, user=ssh.user)
    pins = () if ssh.host_key is None else (ssh.host_key,)
    identities = (expand_home(ssh.identity, config.home),) if ssh.identity else found.identity_files
    jump = found.proxy_jump if ssh.jump is None else ssh.jump
    target = _hop(found, ssh.user, ssh.port, pins, identities)
    if jump and jump.lower() != "none":
        jumps = _plan_jumps(jump, config, machine.name, depth=0)
        return (*jumps, _without_proxy_command(target))
    return (target if ssh.jump is None else _without_proxy_command(target),)


def _plan_jumps(text: str, config: SshConfig, machine: str, depth: int) -> tuple[Hop, ...]:
    """`[user@]host[:port],…`; the first one's own ProxyJump applies too, as with ssh -J."""
    hops: list[Hop] = []
    for index, word in enumerate(part.strip() for part in text.split(",")):
        user, host, port = parse_jump(word, machine)
        found = config.settings_for(host, user=user)
        hop = _hop(found, user, port, (), found.identity_files)
        if index == 0 and found.proxy_jump:
            if depth >= MAX_HOPS:
                raise LinkError(
                    "settings",
                    f"{machine}: ProxyJump of {host} leads in a circle; correct ~/.ssh/config",
                    is_retryable=False,
                )
            hops.extend(_plan_jumps(found.proxy_jump, config, machine, depth + 1))
        hops.append(hop if not hops else _without_proxy_command(hop))
    if len(hops) > MAX_HOPS:
        raise LinkError(
            "settings",
            f"{machine}: more than {MAX_HOPS} jump hosts; shorten ssh.jump or ProxyJump",
            is_retryable=False,
        )
    return tuple(hops)


def parse_jump(word: str, machine: str) -> tuple[str | None, str, int | None]:
    """`[ssh://][user@]host[:port]` -> (user, host, port). Raises LinkError(stage="settings")."""
    text = word.removeprefix("ssh://").rstrip("/")
    user, at, rest = text.rpartition("@")
    host, port = rest, ""
    if rest.startswith("["):
        host, end, tail = rest[1:].partition("]")
        host, port = (host, tail.removeprefix(":")) if end else ("", "")
    elif rest.count(":") == 1:
        host, _, port = rest.partition(":")
    is_port = not port or (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536)
    if not host or not is_port:
        raise LinkError(
            "settings",
            f"{machine}: jump host {word[:80]!r} is not [user@]host[:port]; correct ssh.jump or ProxyJump",
            is_retryable=False,
        )
    return (user if at else None), host, (int(port) if port else None)


def _hop(
    found: HostConfig,
    user: str | None,
    port: int | None,
    pins: tuple[str, ...],
    identities: tuple[str, ...] | None,
) -> Hop:
    return Hop(
        host=found.host_name,
        port=port or found.port or 22,
        user=user or found.user or local_user(),
        pins=pins,
        host_key_alias=found.host_key_alias,
        identity_files=identities,
        certificate_files=found.certificate_files,
        is_identities_only=found.is_identities_only,
        identity_agent=found.identity_agent,
        address_family=found.address_family,
        proxy_command=found.proxy_command,
        bind_address=found.bind_address,
        known_hosts_files=found.known_hosts_files,
        global_known_hosts_files=found.global_known_hosts_files,
    )


def _without_brackets(host: str) -> str:
    """`[2001:db8::1]` -> `2001:db8::1`."""
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def _without_proxy_command(hop: Hop) -> Hop:
    return hop if hop.proxy_command is None else replace(hop, proxy_command=None)
