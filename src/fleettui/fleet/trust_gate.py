"""Between pollers and machines: who may be asked, by what was decided about host keys."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleettui.decide.trust import Standing, clear_offer, note_offer
from fleettui.fleet.closed_link import ClosedLink, NotApproved
from fleettui.fleet.record import MachineRecord
from fleettui.fleet.trust_book import TrustBook
from fleettui.model.machine import Machine
from fleettui.model.record import replace
from fleettui.model.snapshot import HostKeyOffer
from fleettui.model.trust import SeenKey
from fleettui.net.connector import Connector
from fleettui.net.errors import LinkError
from fleettui.net.key_rules import KeyRule
from fleettui.net.link import Link
from fleettui.net.login_steps import LoginSteps
from fleettui.store.database import StoreError

if TYPE_CHECKING:
    from fleettui.store.trust import Change, Key

log = logging.getLogger(__name__)

_Signature = tuple[Standing, tuple[KeyRule, ...]]
"""A machine's standing and the rules of its jump hosts: where it differs, the connection is made anew."""


@dataclass(frozen=True, slots=True)
class _Entry:
    machine: Machine
    addresses: tuple[str, ...]
    signature: _Signature

    @property
    def key(self) -> Key:
        return self.machine.name, self.addresses[-1]


class TrustGate:
    """Hands out links by decisions, notes which keys wait, tells whose standing changed."""

    def __init__(self, book: TrustBook, connector: Connector, clock: Callable[[], float]) -> None:
        self.book = book
        self._connector = connector
        self._clock = clock
        self._entries: dict[str, _Entry] = {}
        self._offers: dict[str, HostKeyOffer | None] = {}
        """Machines with a key that waits, and the one that was last noted of each."""
        self._unsaved: dict[Key, Change] = {}
        self._can_keep = True
        """As far as it was tried last."""
        self._judged_by = book.table
        """The table when standings were last compared; the book may be read by others in between."""
        connector.jump_rule = book.jump_rule

    def link_for(self, machine: Machine, steps: LoginSteps | None = None) -> Link:
        """A fresh link; one that stays closed where nothing may be asked."""
        try:
            addresses = self._connector.addresses_of(machine)
        except LinkError:
            return self._connector.link_for(machine, steps=steps)  # opening it says what is wrong
        entry = _Entry(machine, addresses, self._judge(machine, addresses))
        self._entries[machine.name] = entry
        found = self.book.table.find(*entry.key) if self.book.table is not None else None
        if found is not None and found.offer is not None:
            self._offers.setdefault(machine.name, None)
        standing = entry.signature[0]
        if standing.refusal is not None:
            return ClosedLink(NotApproved(standing.trust, standing.refusal, standing.offer))
        rule = KeyRule(standing.pins, standing.counts_known_hosts)
        return self._connector.link_for(machine, steps=steps, rule=rule)

    def note_failure(self, record: MachineRecord) -> None:
        """A machine showed a key that is not approved: it is kept, with the time it waits until."""
        offer = record.link.offer
        name = record.machine.name
        entry = self._entries.get(name)
        if offer is None or entry is None or offer is self._offers.get(name):
            return
        if entry.signature[0].refusal is not None or self.book.table is None:
            return
        seen = SeenKey(offer.key_type, offer.fingerprint, self._clock(), offer.expected)
        known = note_offer(self.book.table.find(*entry.key), *entry.key, seen).offer or seen
        dated = replace(offer, expires_at=known.expires_at)
        record.link = replace(record.link, offer=dated)
        self._offers[name] = dated
        self._unsaved[entry.key] = lambda before: note_offer(before, *entry.key, seen)

    async def load(self) -> None:
        """Read the decisions before anything is asked."""
        await asyncio.to_thread(self.book.refresh)
        self._judged_by = self.book.table

    async def refresh(self, records: Callable[[str], MachineRecord | None]) -> set[str]:
        """Once a cycle: keep what was noted, see what was decided; names whose standing changed."""
        self._settle(records)
        changes, self._unsaved = self._unsaved, {}
        if not await asyncio.to_thread(self._synchronise, changes):
            self._unsaved = {**changes, **self._unsaved}
        now = self._clock()
        names = set(self._entries) if self.book.table is not self._judged_by else set()
        self._judged_by = self.book.table
        names.update(name for name, offer in self._offers.items() if offer and offer.has_expired(now))
        stale = {name for name in names & self._entries.keys() if self._differs(name)}
        for name in stale & self._offers.keys():
            self._offers[name] = None
        return stale

    async def close(self, records: Callable[[str], MachineRecord | None]) -> None:
        """Keep what was noted and close the file."""
        self._settle(records)
        await asyncio.to_thread(self._synchronise, self._unsaved)
        self.book.close()

    def _settle(self, records: Callable[[str], MachineRecord | None]) -> None:
        """A machine that is connected has no key that waits: the operator accepted it with ssh."""
        for name in tuple(self._offers):
            record = records(name)
            if record is None:
                del self._offers[name]
            elif record.is_up:
                del self._offers[name]
                self._unsaved[self._entries[name].key] = clear_offer

    def _synchronise(self, changes: dict[Key, Change]) -> bool:
        """Keep what was noted, read what was decided; False where it could not be kept."""
        has_kept = True
        if changes:
            try:
                self.book.change(changes)
            except StoreError as error:
                has_kept = False
                if self._can_keep:
                    log.warning("what waits for approval cannot be kept: %s", error)
            self._can_keep = has_kept
        self.book.refresh()
        return has_kept

    def _differs(self, name: str) -> bool:
        entry = self._entries[name]
        return self._judge(entry.machine, entry.addresses) != entry.signature

    def _judge(self, machine: Machine, addresses: tuple[str, ...]) -> _Signature:
        *jumps, address = addresses
        rules = tuple(self.book.jump_rule(jump) for jump in jumps)
        table = self.book.table
        if table is not None:
            return table.standing(machine, address, self._clock(), lambda: self._knows_key(machine)), rules
        if machine.ssh.is_local or machine.ssh.host_key is not None:
            return Standing(), rules
        # Somebody may have been rejected: without the decisions nobody is asked.
        return Standing("pending", (), False, f"{address}: nothing is asked: {self.book.error}"), rules

    def _knows_key(self, machine: Machine) -> bool:
        try:
            return self._connector.knows_key_of(machine)
        except LinkError:
            return False
