"""Machines that wait for approval, and a host key beside what it is compared with, as text and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fleettui.model.approval import COMPARE_LINE, FINGERPRINT_DECIDES, approving_command, code_of
from fleettui.model.clock import iso_utc
from fleettui.model.machine import ConfigProblem, Machine
from fleettui.model.snapshot import HostKeyOffer
from fleettui.model.trust import ListedTrust
from fleettui.view.document import machines_document
from fleettui.view.json_values import Document
from fleettui.view.text import clean
from fleettui.view.units import remaining


def pending_lines(listed: Sequence[ListedTrust], now: float) -> list[str]:
    """Each machine with its key, what was approved before, and the command to approve it."""
    lines: list[str] = []
    for item in listed:
        lines += [*_machine_lines(item, now), ""]
    if any(item.offer is not None for item in listed):
        lines += compare_lines("the machine")
    return lines or ["no machine waits for approval"]


def compare_lines(where: str) -> list[str]:
    """What to run on the machine, and what counts."""
    return [
        f"to compare, run this on {clean(where)} in sh; it prints code and fingerprint of all of its keys:",
        f"  {COMPARE_LINE}",
        f"{FINGERPRINT_DECIDES}.",
    ]


def key_lines(offer: HostKeyOffer) -> list[str]:
    """A key in full, beside the ones that were approved."""
    rows = [
        ("key type", clean(offer.key_type)),
        ("fingerprint", clean(offer.fingerprint)),
        ("code", offer.code),
    ]
    if offer.expected:
        rows = [
            *(("approved", f"{clean(known)}  {code_of(known)}") for known in offer.expected),
            ("now", f"{clean(offer.fingerprint)}  {offer.code}  {clean(offer.key_type)}"),
        ]
    return [f"  {head:<11}  {text}" for head, text in rows]


def pending_document(
    machines: Sequence[Machine],
    listed: Mapping[str, ListedTrust],
    problems: Sequence[ConfigProblem],
    now: float,
) -> Document:
    """`machines list --pending --json`: the files as in `machines list --json`, each with `_trust`."""
    chosen = [machine for machine in machines if machine.name in listed]
    document = machines_document(chosen, problems)
    for body, machine in zip(document["machines"], chosen, strict=True):
        body["_trust"] = _trust_document(listed[machine.name], now)
    return document


def _machine_lines(item: ListedTrust, now: float) -> list[str]:
    offer, name = item.offer, clean(item.name)
    word = item.trust.replace("_", " ")
    if offer is None:
        told = "its key was not read yet; to read it"
        return [f"{name}  {clean(item.address)}  {word}", f"  {told}: {approving_command(name)}"]
    left = "" if offer.expires_at is None else f", expires in {remaining(offer.expires_at - now)}"
    if offer.has_expired(now):
        left = ", expired: nothing is asked until you approve it"
    shown = HostKeyOffer(offer.key_type, offer.fingerprint, offer.code, offer.expected)
    command = approving_command(name, offer.fingerprint, offer.expected)
    return [f"{name}  {clean(item.address)}  {word}{left}", *key_lines(shown), f"  to approve: {command}"]


def _trust_document(item: ListedTrust, now: float) -> Document:
    offer = item.offer
    if offer is None:
        offered = None
    else:
        ends_at = offer.expires_at
        offered = {
            "key_type": offer.key_type,
            "fingerprint": offer.fingerprint,
            "code": offer.code,
            "expected": list(offer.expected),
            "first_seen": iso_utc(offer.at),
            "expires_at": None if ends_at is None else iso_utc(ends_at),
            "expired": offer.has_expired(now),
        }
    return {"state": item.trust, "address": item.address, "offered": offered}
