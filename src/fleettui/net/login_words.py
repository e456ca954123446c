"""Why a login failed, in the operator's words: what, where, what to do next."""

from __future__ import annotations

import asyncssh

from fleettui.net.dial import explain_os_error
from fleettui.net.dialers import Dialer
from fleettui.net.errors import LinkError, clean_line
from fleettui.net.hops import Hop
from fleettui.net.login_client import LoginClient
from fleettui.net.settings import ConnectorSettings

TRUST_STEP = "approve it: `fleettui machines approve`"


def explain_failure(error: Exception, hop: Hop, client: LoginClient, dialer: Dialer) -> LinkError:
    """The operator's words for what ended a login."""
    where = hop.where
    full = getattr(error, "reason", None) or str(error) or type(error).__name__
    reason = clean_line(full) or type(error).__name__
    if isinstance(error, asyncssh.HostKeyNotVerifiable) or client.offer is not None:
        return _explain_host_key(where, reason, client)
    if isinstance(error, asyncssh.PermissionDenied):
        return _explain_denial(hop, client)
    stage = client.stage_now
    if stage == "connect":
        if isinstance(error, OSError):
            what, hint = explain_os_error(error)
            return LinkError("connect", f"{where}: {what}; {hint or 'check network and firewall'}")
        return LinkError("settings", f"{where}: {reason}; check user and ssh settings", is_retryable=False)
    if stage == "greeting":
        return LinkError("greeting", dialer.explain_greeting())
    if stage == "key exchange":
        if isinstance(error, asyncssh.ConnectionLost):
            reason = "the server hung up; have both sides a key exchange, a cipher and a MAC in common?"
        return LinkError(
            "key exchange", f"{where}: key exchange failed: {_explain_algorithms(full) or reason}"
        )
    if "authentication failures" in reason.lower():
        return LinkError(
            "authentication",
            f"{where}: the server hung up after too many keys; name one with ssh.identity or IdentitiesOnly",
            is_retryable=False,
        )
    if stage == "authentication":
        return LinkError(stage, _explain_hang_up(hop, client, reason))
    return LinkError(stage, f"{where}: the connection ended during {stage}: {reason}; tried again by itself")


def _explain_algorithms(reason: str) -> str | None:
    """asyncssh names two long lists where nothing is in common; what the server has is enough."""
    start, _, rest = reason.partition(" algorithm found, sent ")
    _, has_received, theirs = rest.partition(" and received ")
    if not has_received:
        return None
    kind = start.removeprefix("No matching ")
    names = [name for name in theirs.split(",") if not name.startswith(("kex-strict", "ext-info"))]
    shown = clean_line(", ".join(names)[:120])
    return f"no {kind} algorithm in common, it has only {shown}; its SSH server needs an update or a setting"


def _explain_hang_up(hop: Hop, client: LoginClient, reason: str) -> str:
    said = f", it said '{client.said}'" if client.said else ""
    return (
        f"{hop.where}: the server hung up during the login of {hop.user}{said} ({reason}); is the account "
        "locked or expired, does a login guard block us?"
    )


def _explain_host_key(where: str, reason: str, client: LoginClient) -> LinkError:
    offer = client.offer
    if client.verdict == "revoked" or "revoked" in reason:
        return LinkError(
            "host key",
            f"{where}: its host key is revoked in known_hosts, nothing was sent; give it another key",
            is_retryable=False,
        )
    if offer is None:
        text = f"{where}: host certificate not accepted: {reason}; have it signed anew for this name"
        return LinkError("host key", text, is_retryable=False)
    shown = f"{offer.key_type} {offer.fingerprint}"
    if client.verdict == "changed":
        known = ", ".join(offer.expected)
        text = (
            f"{where}: HOST KEY CHANGED: now {shown}, known is {known}; find out why; if it is right: "
            f"`fleettui machines approve` with --fingerprint {offer.fingerprint}"
        )
    else:
        text = f"{where}: unknown host key {shown}; compare it on the machine, then {TRUST_STEP}"
    return LinkError("host key", text, offer=offer, is_retryable=False)


def _explain_denial(hop: Hop, client: LoginClient) -> LinkError:
    where, keys = hop.where, client.keys
    methods = ", ".join(dict.fromkeys(client.wanted_methods))
    if methods and not client.is_out_of_keys:
        text = (
            f"{where}: needs interactive login ({methods}), not possible unattended; allow {hop.user} a key"
        )
    elif keys.keys and not client.has_offered_keys and not client.is_out_of_keys:
        text = f"{where}: the server takes no keys at all; allow {hop.user} a key (PubkeyAuthentication)"
    else:
        text = f"{where}: no key of ours may log in as {hop.user}"
        if keys.problems:
            text += "; " + "; ".join(keys.problems[:3])
        else:
            root = ", PermitRootLogin" if hop.user == "root" else ""
            text += f"; check ssh.user, ssh.identity and the machine's authorized_keys{root}"
    if client.said:
        text += f"; it said '{client.said}'"
    return LinkError("authentication", text, is_retryable=False)


def explain_timeout(
    hop: Hop, client: LoginClient, dialer: Dialer | None, settings: ConnectorSettings
) -> LinkError:
    where, stage = hop.where, client.stage_now
    within = f"within {settings.connect_s:g} s"
    for_login = f"within {settings.authentication_s:g} s"
    if stage == "authentication":
        return LinkError(
            stage,
            f"{where}: no answer to the login {for_login}; is the machine overloaded?",
        )
    if stage in ("connect", "greeting") and hop.proxy_command:
        text = f"{where}: its ProxyCommand brought no SSH greeting {within}; is the machine on?"
        return LinkError("greeting", text)
    if stage == "greeting":
        return LinkError(
            stage,
            f"{where}: accepts connections, no SSH greeting {within}; is sshd hung, is ssh.port right?",
        )
    if stage == "connect":
        if dialer is not None and dialer.guard is not None:
            return LinkError(
                "greeting", f"{where}: no SSH greeting {within}; is sshd hung, is ssh.port right?"
            )
        return LinkError("connect", f"{where}: no connection {within}; is the machine on, is DNS slow?")
    return LinkError(
        "key exchange", f"{where}: the key exchange was not done {within}; is the machine overloaded?"
    )
