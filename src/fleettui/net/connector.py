"""Makes links. One per process: configuration, known hosts, keys and options are parsed once and shared."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleettui.model.machine import ConfigProblem, Machine
from fleettui.net.errors import LinkError
from fleettui.net.hops import Hop, plan_hops
from fleettui.net.host_keys import HostTrust, KnownHosts, normalise_fingerprint
from fleettui.net.key_rules import USUAL, KeyRule, RuleAt, apply_rule
from fleettui.net.link import Link
from fleettui.net.settings import ConnectorSettings
from fleettui.net.ssh_config import SshConfig
from fleettui.net.stamps import Stamps, forget_stamps, stamp_of

if TYPE_CHECKING:
    from fleettui.model.snapshot import HostKeyOffer
    from fleettui.net.dialers import LoginContext
    from fleettui.net.identities import KeyRing
    from fleettui.net.jumps import Jump, Jumps
    from fleettui.net.login import Login
    from fleettui.net.login_steps import LoginSteps

JITTER_S = 0.1
"""Logins that start together are spread over this, so that a fleet behind one firewall is no burst."""


class Connector:
    """Hands out links; `link_for` is cheap, everything slow happens in `Link.open`."""

    def __init__(self, settings: ConnectorSettings | None = None) -> None:
        self.settings = settings or ConnectorSettings.from_environment()
        self._config = SshConfig(self.settings.home)
        self._config_stamps: Stamps | None = None
        self._known: dict[tuple[str, ...], tuple[Stamps, KnownHosts]] = {}
        self._ssh: _SshParts | None = None
        self._opening = 0
        self.jump_rule: RuleAt | None = None
        """What was decided about the host keys of jump hosts, by `host:port`."""

    async def warm(self) -> None:
        """Import asyncssh in a thread (0.35 s), so that the first paint does not wait for it."""
        await asyncio.to_thread(_import_ssh)

    def link_for(self, machine: Machine, *, steps: LoginSteps | None = None, rule: KeyRule = USUAL) -> Link:
        """A fresh, unopened link. `steps` is told how far the login is; `rule` is what the operator decided
        about the key (`ssh.host_key` overrides its pins)."""
        if machine.ssh.is_local:
            from fleettui.net.local_link import LocalLink

            return LocalLink(machine.name)
        from fleettui.net.ssh_link import SshLink

        parts = self._parts()

        async def open_login() -> tuple[Login, Jump | None]:
            return await self._open_login(machine, rule, steps)

        where = machine.ssh.host or machine.hostname
        port = machine.ssh.port or 22
        return SshLink(
            f"{where}:{port}", open_login, parts.jumps.release, self.settings.session_s, machine.hostname
        )

    def addresses_of(self, machine: Machine) -> tuple[str, ...]:
        """`host:port` as dialled, by the file and ssh_config: jump hosts first, the machine last.

        Raises LinkError(stage="settings").
        """
        if machine.ssh.is_local:
            return ("local",)
        return tuple(hop.where for hop in plan_hops(machine, self._load_config()))

    def knows_key_of(self, machine: Machine) -> bool:
        """known_hosts has a key or an authority for the machine; whether it is the right one is not asked."""
        trust = self._trust_for(plan_hops(machine, self._load_config())[-1])
        return any(key.kind != "revoked" for key in trust.keys + trust.fallback_keys)

    def known_fingerprints_of(self, machine: Machine) -> tuple[str, ...]:
        """Of the keys that known_hosts has for the machine."""
        return self._trust_for(replace(plan_hops(machine, self._load_config())[-1], pins=())).expected

    async def read_host_key(self, machine: Machine, wanted: str | None = None) -> HostKeyOffer:
        """The key that the machine shows now; of several kinds the `wanted` one where it has it.

        Nothing follows the key exchange: no user name, no key of ours, no command. Raises LinkError.
        """
        rule = KeyRule((wanted,) if wanted else (), counts_known_hosts=False, is_reading=True)
        try:
            login, jump = await self._open_login(machine, rule, None)
        except LinkError as error:
            if error.offer is None:
                raise
            return error.offer
        login.connection.abort()  # cannot be: reading trusts no key
        if jump is not None:
            self._parts().jumps.release(jump)
        raise LinkError("host key", f"{login.where}: its host key could not be read", is_retryable=False)

    async def read_public_key(self, machine: Machine, fingerprint: str) -> str:
        """The machine's host key of that fingerprint, `type base64`; as `read_host_key`, none other.

        Raises LinkError.
        """
        from fleettui.net.login_steps import LoginSteps

        steps, fingerprint = LoginSteps(), normalise_fingerprint(fingerprint)
        rule = KeyRule((fingerprint,), counts_known_hosts=False, is_reading=True)
        try:
            login, _ = await self._open_login(machine, rule, steps)
            login.connection.abort()  # cannot be: reading trusts no key
        except LinkError as error:
            if error.offer is None:
                raise
            if error.offer.fingerprint == fingerprint and steps.public_key is not None:
                return steps.public_key
            shown = f"{error.offer.key_type} {error.offer.fingerprint}"
            text = f"{machine.name}: shows another key than the approved {fingerprint}: {shown}; find out why"
            raise LinkError("host key", text, is_retryable=False) from None
        raise LinkError("host key", f"{login.where}: its host key could not be read", is_retryable=False)

    def jump_fingerprints_of(self, machine: Machine) -> dict[str, tuple[str, ...]]:
        """What known_hosts has for each jump host of the machine, by `host:port`."""
        hops = plan_hops(machine, self._load_config())
        return {hop.where: self._trust_for(replace(hop, pins=())).expected for hop in hops[:-1]}

    def problems(self) -> tuple[ConfigProblem, ...]:
        """What was odd in ssh_config and known_hosts so far."""
        known = [problem for _, index in self._known.values() for problem in index.problems]
        return (*self._config.problems, *known)

    async def read_stamp(self) -> Hashable:
        """Changes when a refused login may go differently: ssh_config, known hosts, key files, agent."""
        forget_stamps()
        settings = self.settings
        identities = self._ssh.ring.paths if self._ssh is not None else settings.default_identities
        paths = [*self._load_config().files, *settings.known_hosts_files, *settings.global_known_hosts_files]
        paths += [path for files in self._known for path in files]
        paths += [path + suffix for path in identities for suffix in ("", ".pub", "-cert.pub")]
        agent_keys = await self._parts().ring.agent_blobs()
        return tuple(stamp_of(path) for path in dict.fromkeys(paths)), agent_keys

    def forget_failures(self) -> None:
        """Try refusing jump hosts again, with what stands in the files now: the operator asked for it."""
        forget_stamps()
        if self._ssh is not None:
            self._ssh.jumps.forget_failures()
            self._ssh.context.hung_up.clear()

    def set_silence(self, silence_s: float) -> None:
        """How long an open link may give no byte, from now on and on open links too."""
        self.settings = replace(self.settings, silence_s=silence_s)
        if self._ssh is not None:
            self._ssh.context.set_silence(silence_s)

    def close(self) -> None:
        """End shared connections; links are closed by their owners."""
        if self._ssh is not None:
            self._ssh.jumps.close()

    def _parts(self) -> _SshParts:
        if self._ssh is None:
            self._ssh = _SshParts(self.settings, self._log_in_to)
        return self._ssh

    def _load_config(self) -> SshConfig:
        """The parsed ssh_config, read again when one of its files changed."""
        if self._config_stamps is None or self._config_stamps.have_changed():
            config = SshConfig(self.settings.home)
            for path in self.settings.ssh_config_files:
                config.add_file(path)
            self._config, self._config_stamps = config, Stamps(config.files)
        return self._config

    def _known_hosts_for(self, hop: Hop) -> KnownHosts:
        own = self.settings.known_hosts_files if hop.known_hosts_files is None else hop.known_hosts_files
        shared = hop.global_known_hosts_files
        files = (*own, *(self.settings.global_known_hosts_files if shared is None else shared))
        kept = self._known.get(files)
        if kept is None or kept[0].have_changed():
            index = KnownHosts()
            stamps = Stamps(files)
            for path in files:
                try:
                    index.add_file(path, Path(path).read_bytes().decode("utf-8", "replace"))
                except FileNotFoundError:
                    continue
                except OSError as error:
                    index.problems.append(
                        ConfigProblem(path, None, None, f"cannot be read: {error.strerror}")
                    )
            kept = self._known[files] = (stamps, index)
        return kept[1]

    def _trust_for(self, hop: Hop) -> HostTrust:
        found = self._known_hosts_for(hop).trust_for(
            hop.host, hop.port, alias=hop.host_key_alias, pins=hop.pins
        )
        return found.limited(counts_known_hosts=hop.counts_known_hosts, is_reading=hop.is_reading)

    async def _open_login(
        self, machine: Machine, rule: KeyRule, steps: LoginSteps | None
    ) -> tuple[Login, Jump | None]:
        hops = apply_rule(plan_hops(machine, self._load_config()), rule, self.jump_rule)
        self._opening += 1
        try:
            if self._opening > 2:
                await asyncio.sleep(random.uniform(0, JITTER_S))
            jump: Jump | None = None
            jumps = self._parts().jumps
            if len(hops) > 1:
                if steps is not None:
                    steps.jump = hops[-2].where
                    steps.begin("jump")
                jump = await jumps.lease(hops[:-1])
            try:
                return await self._log_in_to(hops[-1], jump, steps), jump
            except BaseException:
                if jump is not None:
                    jumps.release(jump)
                raise
        finally:
            self._opening -= 1

    async def _log_in_to(self, hop: Hop, jump: Jump | None, steps: LoginSteps | None = None) -> Login:
        from fleettui.net.dialers import Dialer
        from fleettui.net.login import log_in
        from fleettui.net.proxy_command import CommandDialer

        parts = self._parts()
        trust = self._trust_for(hop)
        keys = await parts.ring.keys_for(hop)
        way = CommandDialer if hop.proxy_command else Dialer
        make_dialer = way if jump is None else jump.make_dialer
        if jump is not None and jump.login is None:
            raise LinkError(
                "lost", f"{jump.where}: jump host connection lost; tried again by itself", jump=jump.where
            )
        return await log_in(hop, trust, keys, parts.context, make_dialer, steps)


class _SshParts:
    """What needs asyncssh, made on first use."""

    def __init__(self, settings: ConnectorSettings, log_in_to: Any) -> None:
        _import_ssh()
        from fleettui.net.dialers import MUTES_PER_TURN, LoginContext
        from fleettui.net.identities import KeyRing
        from fleettui.net.jumps import Jumps
        from fleettui.net.login import build_options

        self.ring: KeyRing = KeyRing(settings.agent_path, settings.default_identities)
        self.jumps: Jumps = Jumps(log_in_to, settings.max_jump_opens)
        self.context: LoginContext = LoginContext(
            settings,
            build_options(settings),
            asyncio.Semaphore(settings.max_logins),
            asyncio.Semaphore(max(8, MUTES_PER_TURN * settings.max_logins)),
            settings.silence_s,
        )


def _import_ssh() -> None:
    import asyncssh

    asyncssh.set_log_level("ERROR")  # its messages reach the operator as LinkError, not as text on stderr
