"""asyncssh's callbacks during a login: the verdict on the host key, the keys offered, how far it came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import asyncssh

from fleettui.model.snapshot import HostKeyOffer, LinkStage
from fleettui.net.errors import clean_line
from fleettui.net.hops import Hop
from fleettui.net.host_keys import HostTrust, KeyVerdict, offer_of, public_key_text
from fleettui.net.identities import KeySet
from fleettui.net.login_steps import LoginSteps

LossCallback = Callable[[Exception | None], None]


class LoginClient(asyncssh.SSHClient):
    """asyncssh's callbacks during one login and, afterwards, the news of its end."""

    def __init__(
        self,
        hop: Hop,
        trust: HostTrust,
        keys: KeySet,
        on_accepted: Callable[[], None],
        steps: LoginSteps,
    ) -> None:
        self.stage: LinkStage = "connect"
        self.verdict: KeyVerdict | None = None
        self.offer: HostKeyOffer | None = None
        self.offered_algorithm = ""
        self.wanted_methods: list[str] = []
        self.is_out_of_keys = False
        self.has_offered_keys = False
        self.said = ""
        """The server's words before the login: its banner, or why it refuses."""
        self.connection: asyncssh.SSHClientConnection | None = None
        self.on_lost: LossCallback | None = None
        self._hop = hop
        self.trust = trust
        self.keys = keys
        self._on_accepted = on_accepted
        self._steps = steps

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self.connection = conn
        self.stage = "greeting"
        self._steps.begin("key exchange")

    def connection_lost(self, exc: Exception | None) -> None:
        if self.on_lost is not None:
            on_lost, self.on_lost = self.on_lost, None
            on_lost(exc)

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """The only place that lets a login go on; nothing was sent of user or key before."""
        self.stage = "host key"
        blob = key.public_data
        self.offered_algorithm = key.get_algorithm()
        self.verdict = self.trust.judge(blob)
        self._steps.key = offer_of(self.offered_algorithm, blob)
        self._steps.public_key = public_key_text(blob)
        self._steps.is_pinned = bool(self.trust.fingerprints)
        if self.verdict != "trusted":
            expected = self.trust.expected if self.verdict == "changed" else ()
            self.offer = offer_of(self.offered_algorithm, blob, expected)
            return False
        self._accept()
        return True

    def validate_host_ca_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """A host certificate's signer; asyncssh then checks its names and dates."""
        self.stage = "host key"
        if any(known.blob == key.public_data for known in self.trust.authorities):
            self._accept()
            return True
        return False

    def _accept(self) -> None:
        self.stage = "authentication"
        self._steps.begin("authentication")
        self._on_accepted()

    def finish_login(self) -> None:
        """Logged in: when keys are exchanged anew later, nobody waits for the verdict any more."""
        self._on_accepted = lambda: None

    def public_key_auth_requested(self) -> Any:
        if self.is_out_of_keys or not self.keys.keys:
            self.is_out_of_keys = True
            return None
        self.has_offered_keys = True
        keys, self.keys.keys = self.keys.keys, []
        return keys

    def auth_banner_received(self, msg: str, lang: str) -> None:
        """Kept for the case that the login fails; PAM says there that an account has expired."""
        self.said = clean_line(f"{self.said} {msg[:4096]}")

    def kbdint_auth_requested(self) -> None:
        self.wanted_methods.append("keyboard-interactive")

    def password_auth_requested(self) -> None:
        self.wanted_methods.append("password")

    @property
    def stage_now(self) -> LinkStage:
        """The callbacks' stage, refined by the server's version line."""
        if self.stage == "greeting" and self.connection is not None:
            return "key exchange" if self.connection.get_extra_info("server_version") else "greeting"
        return self.stage
