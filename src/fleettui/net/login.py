"""One SSH login: dial, key exchange, host key, authentication; each failure named by its stage."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from dataclasses import dataclass

import asyncssh

from fleettui.net.dialers import Dialer, LoginContext
from fleettui.net.errors import LinkError
from fleettui.net.hops import Hop
from fleettui.net.host_keys import HostTrust
from fleettui.net.identities import KeySet
from fleettui.net.lean_packets import keep_keys
from fleettui.net.login_client import LoginClient
from fleettui.net.login_steps import LoginSteps
from fleettui.net.login_words import explain_failure, explain_timeout
from fleettui.net.settings import ConnectorSettings

# AES-GCM costs a quarter of chacha20 in Python; an order, nothing is left out of asyncssh's defaults.
ENCRYPTION_ORDER = (
    "aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes256-ctr", "aes192-ctr", "aes128-ctr",
    "chacha20-poly1305@openssh.com",
)  # fmt: skip
# ssh's order, so that first contact shows the fingerprint that ssh shows.
HOST_KEY_ORDER = (
    "ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
    "sk-ecdsa-sha2-nistp256@openssh.com", "sk-ssh-ed25519@openssh.com", "ssh-ed448",
    "rsa-sha2-512", "rsa-sha2-256", "ssh-rsa",
)  # fmt: skip
_RSA_ALGORITHMS = ("rsa-sha2-512", "rsa-sha2-256", "ssh-rsa")


def build_options(settings: ConnectorSettings) -> asyncssh.SSHClientConnectionOptions:
    """The options all logins share, checked once. No configuration file, no default key, no password."""
    keep_keys()
    return asyncssh.SSHClientConnectionOptions(
        config=None,
        client_keys=None,
        agent_path=None,
        known_hosts=([], [], []),
        x509_trusted_certs=None,
        x509_trusted_cert_paths=[],
        gss_host=None,
        username="",
        encryption_algs=list(ENCRYPTION_ORDER),
        compression_algs=["none"],
        # The last two are never carried out: being asked for them tells what the server wants.
        preferred_auth=["publickey", "keyboard-interactive", "password"],
        host_based_auth=False,
        utf8_decode_errors="replace",
        login_timeout=0,
        request_pty=False,
        encoding=None,
    )


@dataclass(frozen=True, slots=True)
class Login:
    """A logged-in connection."""

    connection: asyncssh.SSHClientConnection
    client: LoginClient
    where: str
    """`host:port` as configured, for messages."""
    address: str
    """`192.0.2.10:22` as connected."""


DialerFactory = Callable[[Hop, LoginContext, asyncio.Timeout], Dialer]


async def log_in(
    hop: Hop,
    trust: HostTrust,
    keys: KeySet,
    context: LoginContext,
    make_dialer: DialerFactory = Dialer,
    steps: LoginSteps | None = None,
) -> Login:
    """Connect, verify the key, authenticate. Raises LinkError; the keys' agent is closed afterwards."""
    settings = context.settings
    loop = asyncio.get_running_loop()
    plans = _algorithm_plans(trust)
    first_failure: LinkError | None = None
    steps = steps or LoginSteps()
    steps.user = hop.user
    client = LoginClient(hop, trust, keys, lambda: None, steps)
    dialer: Dialer | None = None
    try:
        async with asyncio.timeout(settings.connect_s) as deadline:
            while True:
                dialer = make_dialer(hop, context, deadline)
                dialer.steps = steps
                client = LoginClient(
                    hop,
                    trust,
                    keys,
                    lambda: deadline.reschedule(loop.time() + settings.authentication_s),
                    steps,
                )
                try:
                    return await _log_in_once(hop, client, dialer, context, plans.pop(0))
                except LinkError as error:
                    if error.stage == "authentication":
                        raise _after_hang_up(error, hop, context) from None
                    if error.stage not in ("host key", "key exchange") or client.verdict == "revoked":
                        raise
                    if trust.is_reading and error.offer and error.offer.fingerprint in trust.fingerprints:
                        raise
                    if first_failure is None:
                        first_failure = error
                        plans = [plan for plan in plans if client.offered_algorithm not in plan]
                    if error.stage == "key exchange" and first_failure is error:
                        raise
                    if not plans:
                        raise first_failure from None
                finally:
                    dialer.release_slot()
    except TimeoutError:
        raise explain_timeout(hop, client, dialer, settings) from None
    finally:
        steps.begin(None)
        keys.close()


async def _log_in_once(
    hop: Hop, client: LoginClient, dialer: Dialer, context: LoginContext, algorithms: list[str]
) -> Login:
    trust = client.trust
    revoked = [_import_key(key.key_type, key.blob) for key in trust.revoked] if trust.authorities else []
    try:
        connection = await asyncssh.connect(
            hop.host,
            hop.port,
            config=None,
            options=context.options,
            username=hop.user,
            known_hosts=([], [], [key for key in revoked if key]),
            host_key_alias=hop.host_key_alias,
            server_host_key_algs=algorithms,
            client_factory=lambda: client,
            tunnel=dialer,
        )
    except (LinkError, TimeoutError):
        raise
    except Exception as error:  # noqa: BLE001 - asyncssh reports what a peer sends by many types
        raise explain_failure(error, hop, client, dialer) from None
    client.finish_login()
    context.connections.add(connection)
    context.keep_alive(connection)
    context.hung_up.discard((hop.where, hop.user))
    return Login(connection, client, hop.where, dialer.address or hop.where)


def _after_hang_up(error: LinkError, hop: Hop, context: LoginContext) -> LinkError:
    """A server that ends a login without a word is tried once more, for it may just have been restarted.

    The second time it counts as a refusal: PAM ends logins that way, and login guards count them.
    """
    if not error.is_retryable:
        return error
    place = (hop.where, hop.user)
    if place in context.hung_up:
        return LinkError(error.stage, f"{error.text}; not tried a third time", is_retryable=False)
    context.hung_up.add(place)
    return error


def _algorithm_plans(trust: HostTrust) -> list[list[str]]:
    """Host key algorithms to ask for; later plans follow when the key of the first is not the one we know.

    A fingerprint does not tell its key's type: the server's other keys are asked for before it counts
    as changed. None of this authenticates.
    """
    known: list[str] = []
    for key_type in trust.key_types:
        known += _RSA_ALGORITHMS if key_type == "ssh-rsa" else (key_type,)
    order = list(dict.fromkeys([name for name in known if name in HOST_KEY_ORDER] + list(HOST_KEY_ORDER)))
    if trust.fingerprints:
        families = [
            ["ssh-ed25519"],
            [name for name in order if name.startswith("ecdsa")],
            list(_RSA_ALGORITHMS),
        ]
        return [order, *families]
    if trust.authorities:
        names = [name for name in order if not name.startswith("sk-") and name != "ssh-rsa"]
        certificates = [f"{name}-cert-v01@openssh.com" for name in names]
        return [certificates + order, order]
    return [order]


def _import_key(key_type: str, blob: bytes) -> asyncssh.SSHKey | None:
    try:
        return asyncssh.import_public_key(f"{key_type} {base64.b64encode(blob).decode()}")
    except asyncssh.KeyImportError:
        return None
