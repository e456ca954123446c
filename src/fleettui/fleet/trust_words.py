"""What comes out of a decision about a machine: a result, or why nothing was decided."""

from __future__ import annotations

import getpass
import socket

from fleettui.model.approval import code_of
from fleettui.model.literal import Literal
from fleettui.model.machine import Machine
from fleettui.model.record import dataclass
from fleettui.model.snapshot import HostKeyOffer
from fleettui.model.trust import TrustDecision

Outcome = Literal[
    "approved",
    "already_approved",
    "needs_no_approval",  # `ssh: local`, or the file names the key
    "rejected",
    "already_rejected",
    "removed",
    "added",
    "already_known",
]
FailureKind = Literal[
    "unknown_name",
    "no_contact",
    "other_key",  # the machine shows another key than the one to approve
    "not_shown",  # nobody saw a key yet
    "file_decides",  # ssh.host_key of the file counts first
    "changed_meanwhile",  # another process decided
    "declared_otherwise",
    "state",
    "file",
]


class TrustError(Exception):
    """Nothing was decided. `text`: what, where, why, what to do next."""

    def __init__(
        self,
        kind: FailureKind,
        name: str,
        text: str,
        *,
        offer: HostKeyOffer | None = None,
        expected: tuple[str, ...] = (),
    ) -> None:
        super().__init__(text)
        self.kind: FailureKind = kind
        self.name = name
        self.text = text
        self.offer = offer
        """The key that the machine showed."""
        self.expected = expected
        """Fingerprints that it should have had."""


@dataclass(frozen=True, slots=True)
class TrustResult:
    """What was decided about one machine."""

    name: str
    address: str
    """`host:port` as dialled."""
    outcome: Outcome
    text: str
    """One sentence, with what follows from it."""
    key_type: str = ""
    fingerprint: str = ""
    file: str | None = None
    """The machine file that was created or deleted."""

    def document(self) -> dict[str, str | None]:
        """As JSON."""
        return {
            "name": self.name,
            "address": self.address,
            "outcome": self.outcome,
            "key_type": self.key_type or None,
            "fingerprint": self.fingerprint or None,
            "code": code_of(self.fingerprint) or None,
            "file": self.file,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class ShownKey:
    """A key read for the operator to compare."""

    machine: Machine
    address: str
    offer: HostKeyOffer
    """`expected`: what was approved or stands in known_hosts."""
    decision: TrustDecision | None
    """What was decided before."""

    @property
    def is_known(self) -> bool:
        """The key is one that was approved before."""
        return self.offer.fingerprint in self.offer.expected


def operator_name() -> str:
    """`user@host`, for the record of who decided."""
    return f"{login_user()}@{socket.gethostname()}"


def login_user() -> str:
    """Who is logged in here, for the record of who set a flag."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
