"""What goes wrong between here and a machine, in the operator's words."""

from __future__ import annotations

from typing import Literal

from fleettui.model.snapshot import HostKeyOffer, LinkStage
from fleettui.probes.clean import clean_text

HttpFailureKind = Literal["refused", "forbidden", "timeout", "lost", "too_large", "protocol"]


class LinkError(Exception):
    """A link could not be opened, or an open one died."""

    def __init__(
        self,
        stage: LinkStage,
        text: str,
        *,
        offer: HostKeyOffer | None = None,
        is_retryable: bool = True,
        jump: str | None = None,
    ) -> None:
        super().__init__(text)
        self.stage: LinkStage = stage
        self.text = text
        """One line: what, where (host:port), why, what to do next."""
        self.offer = offer
        """The machine's own key where the stage is "host key" and approving it would help; else None."""
        self.is_retryable = is_retryable
        """False: trying again changes nothing until the operator does."""
        self.jump = jump
        """`host:port` of the jump host that failed; None when it was the machine itself."""


def clean_line(text: bytes | str) -> str:
    """A machine's own words on one short line, their end where they are long; control characters gone."""
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    return clean_text(b" ".join(raw[-4096:].split()), limit=4096)[-200:]


ENDED_WITH_LINK = "ended with the connection"
"""How the end of a loop begins where the whole link ended."""


class SessionRefused(LinkError):
    """The server starts no (further) command on an open link; tunnels and other loops go on."""

    def __init__(self, text: str) -> None:
        super().__init__("session", text)


class HttpFailure(Exception):
    """A GET brought no answer."""

    def __init__(self, kind: HttpFailureKind, text: str) -> None:
        super().__init__(text)
        self.kind: HttpFailureKind = kind
        """refused: nobody listens; forbidden: the SSH server allows no forwarding; lost: closed half-way."""
        self.text = text
