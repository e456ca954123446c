"""Name, TCP, host key, authentication: the parts of one login, never a second one."""

from __future__ import annotations

from fleettui.fleet.doctor.check import Check, Outcome, failed, passed, skipped, split_advice
from fleettui.fleet.doctor.context import Context
from fleettui.model.approval import machines_command
from fleettui.model.machine import Machine
from fleettui.model.snapshot import LinkStage
from fleettui.net.errors import LinkError
from fleettui.net.login_steps import LoginSteps
from fleettui.probes.clean import clean_text

_RANKS: dict[LinkStage, int] = {
    "settings": 0,
    "resolve": 0,
    "connect": 1,
    "greeting": 2,
    "key exchange": 2,
    "host key": 2,
}
"""Which check a failure belongs to, in their order; the rest belongs to the last, authentication."""
_LAST_RANK = 3
_NOT_CONTACTED = "not contacted, see host key"


def is_failure_of(rank: int, error: LinkError) -> bool:
    """The failure came no later than in the check of this rank. A jump host is part of the way."""
    return (1 if error.jump is not None else _RANKS.get(error.stage, _LAST_RANK)) <= rank


def was_not_contacted(steps: LoginSteps, error: LinkError | None) -> bool:
    """What the operator decided about the key keeps us from asking at all."""
    return error is not None and error.stage == "host key" and not steps.took_s and error.jump is None


def judge_name(host: str, steps: LoginSteps, error: LinkError | None) -> Outcome:
    """Name resolution, by this computer."""
    if error is not None and is_failure_of(0, error):
        evidence, hint = split_advice(error.text)
        return failed(evidence, hint or "correct ssh.host or network.hostname, or the DNS entry")
    if was_not_contacted(steps, error):
        return skipped(_NOT_CONTACTED)
    if steps.jump is not None:
        return skipped(f"the jump host {steps.jump} resolves it")
    if not steps.addresses:
        return skipped("ProxyCommand connects by itself")
    if steps.addresses == (host,):
        return passed("an address, no name", steps.took_s.get("resolve"))
    return passed(f"{host} is {', '.join(steps.addresses[:4])}", steps.took_s.get("resolve"))


def judge_tcp(steps: LoginSteps, error: LinkError | None) -> Outcome:
    """The way to the SSH port, through jump hosts where there are any."""
    if error is not None and is_failure_of(1, error):
        evidence, hint = split_advice(error.text)
        return failed(evidence, hint or "is the machine on, is the way to it open?")
    if was_not_contacted(steps, error):
        return skipped(_NOT_CONTACTED)
    took_s = steps.took_s.get("connect", 0.0) + steps.took_s.get("jump", 0.0)
    through = f" through {steps.jump}" if steps.jump is not None else ""
    return passed(f"{steps.address or 'connected by ProxyCommand'}{through}", took_s)


def judge_host_key(machine: Machine, steps: LoginSteps, error: LinkError | None) -> Outcome:
    """The host key. Nothing of the account was sent before it is right."""
    took_s = steps.took_s.get("greeting", 0.0) + steps.took_s.get("key exchange", 0.0)
    key = steps.key
    if error is not None and is_failure_of(2, error):
        return _judge_bad_key(machine, steps, error)
    if key is None:
        return passed("certificate of a trusted authority", took_s)
    if machine.ssh.host_key is not None:
        source = "as ssh.host_key says"
    elif steps.is_pinned:
        source = "approved"
    else:
        source = "in known_hosts"
    return passed(f"{key.key_type} {key.fingerprint}, {source}", took_s)


def _judge_bad_key(machine: Machine, steps: LoginSteps, error: LinkError) -> Outcome:
    evidence, hint = split_advice(error.text)
    offer, key = error.offer, steps.key
    if error.stage != "host key":
        return failed(evidence, hint or "is ssh.port right, is sshd healthy?")
    approve = machines_command("approve", machine.name)
    if was_not_contacted(steps, error):
        return failed(evidence, hint or f"if its key is right: {approve}")
    if offer is not None and offer.expected:
        known = ", ".join(clean_text(fingerprint) for fingerprint in offer.expected[:3])
        return failed(
            f"HOST KEY CHANGED: {offer.key_type} {offer.fingerprint}, known is {known}; nothing was sent",
            f"find out why it changed; if it is right: {approve}",
        )
    if offer is not None:
        return failed(
            f"unknown key {offer.key_type} {offer.fingerprint} ({offer.code}); nothing was sent",
            f"compare it on the machine; if it is the same: {approve}",
        )
    if "revoked" in evidence:
        shown = f" {key.key_type} {key.fingerprint}" if key is not None else ""
        return failed(
            f"host key{shown} is revoked in known_hosts; nothing was sent",
            "give the machine a new host key, or find out who answers at this address",
        )
    return failed(evidence, hint or "renew the host certificate, or trust the key itself")


def judge_authentication(steps: LoginSteps, server_version: str | None, error: LinkError | None) -> Outcome:
    """The login itself."""
    if error is not None:
        evidence, hint = split_advice(error.text)
        return failed(evidence, hint or "check ssh.user, ssh.identity and the machine's authorized_keys")
    software = clean_text((server_version or "").removeprefix("SSH-2.0-"), 60)
    as_user = f"as {clean_text(steps.user or '?', 60)}"
    return passed(f"{as_user}, {software}" if software else as_user, steps.took_s.get("authentication"))


async def _check_name(context: Context) -> Outcome:
    error = await context.login.get_past("resolve" if context.steps.jump is None else "jump")
    machine = context.machine
    return judge_name(machine.ssh.host or machine.hostname, context.steps, error)


async def _check_tcp(context: Context) -> Outcome:
    return judge_tcp(context.steps, await context.login.get_past("connect"))


async def _check_host_key(context: Context) -> Outcome:
    error = await context.login.get_past("key exchange")
    return judge_host_key(context.machine, context.steps, error)


async def _check_authentication(context: Context) -> Outcome:
    error = await context.login.get_past("authentication")
    return judge_authentication(context.steps, context.link.server_version, error)


def not_over_ssh(context: Context) -> str | None:
    """`ssh: local`: there is no SSH to check."""
    return "ssh: local" if context.is_local else None


LOGIN_CHECKS = (
    Check("name", "name", _check_name, ("file",), not_over_ssh, has_own_limit=True),
    Check("tcp", "TCP", _check_tcp, ("name",), not_over_ssh, has_own_limit=True),
    Check("host_key", "host key", _check_host_key, ("tcp",), not_over_ssh, has_own_limit=True),
    Check(
        "authentication", "authentication", _check_authentication, ("host_key",), not_over_ssh,
        has_own_limit=True,
    ),
)  # fmt: skip
