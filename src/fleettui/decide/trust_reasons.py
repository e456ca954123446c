"""Why a machine whose host key is not approved is not asked, and what to do."""

from __future__ import annotations

from fleettui.model.approval import PENDING_WORDS, approving_command
from fleettui.model.snapshot import MachineSnapshot, Reason


def trust_reason(snapshot: MachineSnapshot, now: float) -> Reason:
    """The one reason of a machine that is pending, rejected, or shows another key than approved."""
    link, name = snapshot.link, snapshot.machine.name
    if snapshot.trust == "key_changed":
        text = f"host key changed, nothing is asked: {changed_step(snapshot)}"
        return Reason("offline", "key_changed", text)
    if snapshot.trust == "rejected":
        text = f"host key rejected, nothing is asked; if it is right after all: {approve_command(snapshot)}"
        return Reason("note", "rejected", text)
    if link.offer is None:
        return Reason("note", "pending", link.error or "host key not read yet")
    if link.offer.has_expired(now):
        again = approving_command(name)
        text = f"host key not approved within {PENDING_WORDS}, nothing is asked; to look at it again: {again}"
        return Reason("note", "pending", text)
    step = f"compare the fingerprint on the machine; if it is right: {approve_command(snapshot)}"
    return Reason("note", "pending", f"host key not approved yet: {step}")


def approve_command(snapshot: MachineSnapshot) -> str:
    """The command that approves the key."""
    offer, name = snapshot.link.offer, snapshot.machine.name
    return (
        approving_command(name)
        if offer is None
        else approving_command(name, offer.fingerprint, offer.expected)
    )


def changed_step(snapshot: MachineSnapshot) -> str:
    """What to do about a changed key."""
    machine, offer = snapshot.machine, snapshot.link.offer
    if machine.ssh.host_key is not None:
        new = offer.fingerprint if offer is not None else "it"
        return f"find out why; if the new key is right, write {new} into {machine.config_file} (ssh.host_key)"
    return f"find out why; if the new key is right: {approve_command(snapshot)}"
