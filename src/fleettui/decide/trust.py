"""How a machine stands with its host key, from what was decided. Pure.

Order: `ssh.host_key` of the file, our pins, known_hosts, else pending. A rejection or removal leaves a
tombstone: known_hosts is then no approval, for that name and for that address, until the machine is approved.
A pin holds for name and address together: a file that points elsewhere is not covered by it.
"""

from __future__ import annotations

from fleettui.model.approval import PENDING_WORDS, code_of, machines_command
from fleettui.model.clock import iso_utc
from fleettui.model.record import dataclass, replace
from fleettui.model.snapshot import HostKeyOffer, Trust
from fleettui.model.trust import KNOWN_HOSTS_COUNT, NOT_FOR_ADDRESS, SeenKey, TrustDecision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fleettui.model.machine import Machine


@dataclass(frozen=True, slots=True)
class Standing:
    """What may be done with a machine now."""

    trust: Trust = "approved"
    """What is shown until the machine was asked."""
    pins: tuple[str, ...] = ()
    """Approved fingerprints: where there are any, only these count."""
    counts_known_hosts: bool = True
    refusal: str | None = None
    """Why nothing at all is asked; None: the host key decides."""
    offer: HostKeyOffer | None = None
    """The key a refusal is about."""


class TrustTable:
    """All decisions of one fleet."""

    def __init__(self, decisions: Iterable[TrustDecision] = ()) -> None:
        self.decisions = {(item.name, item.address): item for item in decisions}
        dead = [item for item in self.decisions.values() if item.tombstone != KNOWN_HOSTS_COUNT]
        self._dead_names = {item.name for item in dead}
        self._dead_addresses = {item.address for item in dead if item.tombstone == NOT_FOR_ADDRESS}

    def find(self, name: str, address: str) -> TrustDecision | None:
        """The entry of a machine under an address."""
        return self.decisions.get((name, address))

    def of_name(self, name: str) -> tuple[TrustDecision, ...]:
        """All entries of a name, whatever the address."""
        return tuple(item for item in self.decisions.values() if item.name == name)

    def counts_known_hosts(self, name: str, address: str) -> bool:
        """False after a rejection or removal of this name or this address."""
        return name not in self._dead_names and address not in self._dead_addresses

    def standing(self, machine: Machine, address: str, now: float, knows_key: Callable[[], bool]) -> Standing:
        """`knows_key`: known_hosts has some key for the machine; only asked where it matters."""
        if machine.ssh.is_local or machine.ssh.host_key is not None:
            return Standing()
        found = self.find(machine.name, address)
        counts = self.counts_known_hosts(machine.name, address)
        if found is not None:
            if found.kind == "pinned":
                return Standing(pins=(found.fingerprint,))
            if found.kind == "rejected":
                return Standing("rejected", (), False, rejection_text(found), rejected_key(found))
            offer = found.offer
            if offer is not None and offer.has_expired(now) and not (counts and knows_key()):
                text = expiry_text(machine.name, address, offer)
                return Standing("pending", (), counts, text, as_offer(offer))
        return Standing(counts_known_hosts=counts)

    def jump_pins(self, address: str) -> tuple[tuple[str, ...], bool]:
        """For a jump host at that address: keys approved for a machine there, and whether known_hosts counts.

        A removed machine may stay a jump host; a rejected key may not.
        """
        here = [item for item in self.decisions.values() if item.address == address]
        pins = tuple(item.fingerprint for item in here if item.kind == "pinned")
        return pins, not any(item.kind == "rejected" for item in here)


def as_offer(key: SeenKey) -> HostKeyOffer:
    """A stored key as a snapshot shows it."""
    return HostKeyOffer(key.key_type, key.fingerprint, key.code, key.expected, key.expires_at)


def rejected_key(decision: TrustDecision) -> HostKeyOffer | None:
    """The key that was rejected; None where it was never read."""
    if not decision.fingerprint:
        return None
    fingerprint = decision.fingerprint
    return HostKeyOffer(decision.key_type, fingerprint, code_of(fingerprint))


def rejection_text(decision: TrustDecision) -> str:
    """Why a rejected machine is not asked."""
    known = filter(None, (decision.key_type, decision.fingerprint))
    key = " ".join(("host key", *known)) if decision.fingerprint else "machine"
    at = f" on {iso_utc(decision.decided_at)[:10]}" if decision.decided_at is not None else ""
    by = f" by {decision.decided_by}" if decision.decided_by else ""
    return (
        f"{decision.address}: {key} was rejected{by}{at}, nothing is asked; "
        f"if it is right after all: {machines_command('approve', decision.name)}"
    )


def expiry_text(name: str, address: str, offer: SeenKey) -> str:
    """Why a machine whose key nobody decided about is not asked any more."""
    return (
        f"{address}: host key {offer.key_type} {offer.fingerprint} was not approved within {PENDING_WORDS}, "
        f"nothing is asked any more; to look at it again: {machines_command('approve', name)}"
    )


def note_offer(before: TrustDecision | None, name: str, address: str, seen: SeenKey) -> TrustDecision:
    """The entry after a machine showed a key that is not approved; the first sight of the same key counts."""
    if before is None:
        return TrustDecision(name, address, "pending", offer=seen)
    if before.kind == "rejected" or (before.kind == "pinned" and before.fingerprint == seen.fingerprint):
        return before  # decided meanwhile
    known = before.offer
    if known is not None and (known.fingerprint, known.expected) == (seen.fingerprint, seen.expected):
        return before
    return replace(before, offer=seen)


def clear_offer(before: TrustDecision | None) -> TrustDecision | None:
    """The entry after the machine showed a key that is trusted, or was asked for again."""
    if before is None or (before.kind == "pending" and before.tombstone == KNOWN_HOSTS_COUNT):
        return None
    return replace(before, offer=None)
