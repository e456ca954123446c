"""What the operator decided about a machine's host key, and which key waits for a decision."""

from __future__ import annotations

from fleettui.model.approval import PENDING_S, code_of
from fleettui.model.literal import Literal
from fleettui.model.record import dataclass
from fleettui.model.snapshot import Trust

TrustKind = Literal["pinned", "rejected", "removed", "pending"]

KNOWN_HOSTS_COUNT = 0
NOT_FOR_NAME = 1
NOT_FOR_ADDRESS = 2


@dataclass(frozen=True, slots=True)
class SeenKey:
    """A host key that a machine showed and that nobody approved."""

    key_type: str
    """`ED25519`, `RSA`, …"""
    fingerprint: str
    """`SHA256:…`, whole."""
    at: float
    """Epoch seconds: when it was first seen."""
    expected: tuple[str, ...] = ()
    """Fingerprints that were known then; empty on first contact."""

    @property
    def code(self) -> str:
        """`XXXX-XXXX`."""
        return code_of(self.fingerprint)

    @property
    def expires_at(self) -> float | None:
        """Epoch seconds; a changed key waits without an end."""
        return None if self.expected else self.at + PENDING_S

    def has_expired(self, now: float) -> bool:
        """Nobody decided in time: nothing is asked until the operator asks for it."""
        return self.expires_at is not None and now >= self.expires_at


@dataclass(frozen=True, slots=True)
class TrustDecision:
    """One machine under one address. A file that points elsewhere is another entry."""

    name: str
    address: str
    """`host:port` as dialled."""
    kind: TrustKind
    """`pending`: nothing is decided, `offer` waits."""
    key_type: str = ""
    fingerprint: str = ""
    """Of the key that was approved or rejected."""
    decided_at: float | None = None
    """Epoch seconds."""
    decided_by: str = ""
    """`user@host`."""
    how: str = ""
    """`approve`, `add`, `bulk`, `reject`, `remove`."""
    tombstone: int = KNOWN_HOSTS_COUNT
    """`NOT_FOR_NAME`: known_hosts is no approval of this machine any more; `NOT_FOR_ADDRESS`: nor of another
    machine at this address."""
    offer: SeenKey | None = None
    """The key that was shown last and is not approved."""


@dataclass(frozen=True, slots=True)
class ListedTrust:
    """How a declared machine stands, by what is known without contacting it."""

    name: str
    address: str
    """`host:port` as dialled; empty where it cannot be told."""
    trust: Trust
    decision: TrustDecision | None = None

    @property
    def offer(self) -> SeenKey | None:
        """The key that waits for a decision."""
        return self.decision.offer if self.decision is not None else None

    @property
    def waits(self) -> bool:
        """The operator has to decide."""
        return self.trust in {"pending", "key_changed"}
