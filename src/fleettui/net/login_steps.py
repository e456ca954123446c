"""How far a login is, for whoever shows it or bounds each part of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from fleettui.model.snapshot import HostKeyOffer

LoginStep = Literal[
    "jump",  # a connection to the jump host, shared or new
    "resolve",
    "connect",
    "greeting",  # connected, the server's first line is awaited
    "turn",  # waits for one of the login slots; not the machine's fault
    "key exchange",  # up to the verdict on the host key
    "authentication",
]


class LoginSteps:
    """The steps of one login as they happen. A key that is asked for again repeats some; times add up."""

    def __init__(self, on_step: Callable[[], None] | None = None) -> None:
        self.step: LoginStep | None = None
        """The one under way; None before the first and after the last."""
        self.took_s: dict[LoginStep, float] = {}
        """Of steps that ended."""
        self.user: str | None = None
        self.jump: str | None = None
        """`host:port` of the jump host."""
        self.addresses: tuple[str, ...] = ()
        """Of the name, as resolved here."""
        self.address: str | None = None
        """`192.0.2.10:22`, what was connected to."""
        self.has_greeted = False
        """The server's first bytes came soon after the connection."""
        self.key: HostKeyOffer | None = None
        """The host key the machine showed, trusted or not."""
        self.public_key: str | None = None
        """The same whole, `type base64`."""
        self.is_pinned = False
        """Its fingerprint is named by the file or was approved here; else known_hosts decides."""
        self.on_step = on_step
        self._began_at = 0.0

    def begin(self, step: LoginStep | None) -> None:
        """The step before ended; None: all of them did."""
        now = time.monotonic()
        if self.step is not None:
            self.took_s[self.step] = self.took_s.get(self.step, 0.0) + now - self._began_at
        self.step, self._began_at = step, now
        if self.on_step is not None:
            self.on_step()
