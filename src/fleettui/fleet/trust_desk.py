"""Where the operator decides about host keys: approve, reject, remove. Nothing here logs in anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from fleettui.config.machine_folder import MachineFiles
from fleettui.config.machine_writing import MachineFileError, delete_machine_file
from fleettui.decide.trust import clear_offer, note_offer
from fleettui.fleet.flags import FlagBook
from fleettui.fleet.trust_book import TrustBook
from fleettui.fleet.trust_words import ShownKey, TrustError, TrustResult, operator_name
from fleettui.model.approval import machines_command
from fleettui.model.machine import Machine
from fleettui.model.record import replace
from fleettui.model.snapshot import HostKeyOffer
from fleettui.model.trust import NOT_FOR_ADDRESS, NOT_FOR_NAME, SeenKey, TrustDecision
from fleettui.net.connector import Connector
from fleettui.net.errors import LinkError
from fleettui.store.database import StoreError

if TYPE_CHECKING:
    from fleettui.store.trust import Change, Key


class TrustDesk:
    """Decisions of one operator about one fleet; usable with and without a running service."""

    def __init__(
        self,
        book: TrustBook,
        connector: Connector,
        files: Callable[[], MachineFiles],
        clock: Callable[[], float],
        by: str | None = None,
    ) -> None:
        self.book = book
        self.connector = connector
        self.files = files
        self.clock = clock
        self.by = by or operator_name()
        connector.jump_rule = book.jump_rule

    # -- approve ------------------------------------------------------------------------------------

    async def read_key(self, name: str, wanted: str | None = None) -> ShownKey:
        """The key the machine shows now, beside what was approved; it waits from now on, also where one
        had expired. Raises TrustError."""
        machine = self.machine(name)
        address = self.address_of(machine)
        await self.refresh(name)
        shown = await self._read(machine, address, wanted)
        if machine.ssh.host_key is None:
            offer = shown.offer
            seen = SeenKey(offer.key_type, offer.fingerprint, self.clock(), offer.expected)
            ask_again = clear_offer if shown.is_known else _ask_again(name, address, seen)
            await self.change(name, {(name, address): ask_again})
        return shown

    async def _read(self, machine: Machine, address: str, wanted: str | None) -> ShownKey:
        name = machine.name
        decision = self._find(name, address)
        try:
            offer = await self.connector.read_host_key(machine, wanted)
        except LinkError as error:
            kind = "other_key" if error.stage == "host key" and error.jump is None else "no_contact"
            raise TrustError(kind, name, error.text) from None  # type: ignore[arg-type]
        return ShownKey(machine, address, replace(offer, expected=self._expected(machine, address)), decision)

    async def approve(
        self,
        name: str,
        fingerprint: str | None = None,
        shown: ShownKey | None = None,
        how: str = "approve",
        by: str | None = None,
    ) -> TrustResult:
        """Read the key again and pin it if it is the one given or shown, none else. Raises TrustError.

        Without both: the key that waits, as `status` and the dashboard show it.
        """
        machine = self.machine(name)
        if machine.ssh.is_local:
            text = f"{name} is this computer (ssh: local) and needs no approval"
            return TrustResult(name, "local", "needs_no_approval", text)
        address = self.address_of(machine)
        await self.refresh(name)
        before = self._find(name, address) if shown is None else shown.decision
        wanted = fingerprint or (shown.offer.fingerprint if shown else machine.ssh.host_key)
        if wanted is None and (before is None or before.offer is None):
            if before is not None and before.kind == "pinned":
                return self._already(before)
            if self._expected(machine, address):
                text = f"{name}: its key stands in known_hosts; there is nothing to approve"
                return TrustResult(name, address, "needs_no_approval", text)
        wanted = wanted or self._waiting(name, before)
        if machine.ssh.host_key is not None and wanted != machine.ssh.host_key:
            raise _file_decides(machine, wanted)
        if before is not None and before.kind == "pinned" and before.fingerprint == wanted:
            return self._already(before)
        offer = (await self._read(machine, address, wanted)).offer
        if offer.fingerprint != wanted:
            await self._note_other(name, address, offer)
            raise _other_key(name, address, offer, wanted)
        if machine.ssh.host_key is not None:
            text = f"{name}: {machine.config_file} names this key (ssh.host_key); there is nothing to approve"
            return TrustResult(name, address, "needs_no_approval", text, offer.key_type, wanted)
        pin = TrustDecision(name, address, "pinned", offer.key_type, wanted, self.clock(), by or self.by, how)
        await self.change(name, {(name, address): lambda now: _pin_over(now, before, pin)})
        text = f"{name} is approved with {offer.key_type} {wanted} ({offer.code}) at {address}"
        return TrustResult(name, address, "approved", text, offer.key_type, wanted)

    # -- reject and remove --------------------------------------------------------------------------

    async def reject(self, name: str, by: str | None = None) -> TrustResult:
        """Nothing is asked of the machine any more; the key is remembered. Raises TrustError."""
        machine = self.machine(name)
        address = self.address_of(machine)
        if machine.ssh.is_local or machine.ssh.host_key is not None:
            line = "ssh: local" if machine.ssh.is_local else "ssh.host_key"
            text = f"{name}: `{line}` in {machine.config_file} counts first; remove that line, then reject"
            raise TrustError("file_decides", name, text)
        await self.refresh(name)
        before = self._find(name, address)
        if before is not None and before.kind == "rejected":
            text = f"{name} was rejected by {before.decided_by} already"
            return TrustResult(name, address, "already_rejected", text, before.key_type, before.fingerprint)
        key_type, fingerprint = _key_of(before)
        rejected = TrustDecision(
            name, address, "rejected", key_type, fingerprint, self.clock(), by or self.by, "reject",
            self._scope(machine, address),
        )  # fmt: skip
        await self.change(name, {(name, address): lambda _: rejected})
        key = " ".join(("", "with", *filter(None, (key_type, fingerprint)))) if fingerprint else ""
        text = f"{name}{key} is rejected: nothing is asked of {address}, whatever known_hosts says"
        return TrustResult(name, address, "rejected", text, key_type, fingerprint)

    async def remove(self, name: str, *, is_file_deleted: bool = False) -> TrustResult:
        """Forget approval and flags; known_hosts is no approval any more. Models are not touched.

        Raises TrustError.
        """
        await self.refresh(name)
        machine = self.files().find(name)
        rows = self.book.table.of_name(name) if self.book.table is not None else ()
        if machine is None and not rows:
            raise self._unknown(name)
        address = self.address_of(machine) if machine is not None else rows[0].address
        changes: dict[Key, Change] = {(row.name, row.address): _forget for row in rows}
        if machine is None or not machine.ssh.is_local:
            scope = NOT_FOR_ADDRESS if machine is None else self._scope(machine, address)
            now, by = self.clock(), self.by
            gone = TrustDecision(name, address, "removed", "", "", now, by, "remove", scope)
            changes[name, address] = lambda _: gone
        await self.change(name, changes)
        await self._forget_flags(name)
        file = None
        if machine is not None and is_file_deleted:
            try:
                await asyncio.to_thread(delete_machine_file, machine)
            except MachineFileError as error:
                raise TrustError("file", name, f"{error}; its approval is forgotten") from None
            file = machine.config_file
        return TrustResult(name, address, "removed", _removal_text(name, machine, file), file=file)

    async def is_approved(self, name: str) -> bool:
        """Its key is approved, here or in known_hosts; whether the machine still has it is not asked."""
        machine = self.machine(name)
        address = self.address_of(machine)
        await self.refresh(name)
        found = self._find(name, address)
        return (found is None or found.offer is None) and bool(self._expected(machine, address))

    async def _forget_flags(self, name: str) -> None:
        flags = FlagBook(self.book.state_dir, self.book.machines_dir)
        try:
            await asyncio.to_thread(flags.forget, (name,))
        except StoreError as error:
            text = f"{name}: its approval is forgotten, its flags are not: {error}"
            raise TrustError("state", name, text) from None

    # -- what they share ----------------------------------------------------------------------------

    def machine(self, name: str) -> Machine:
        """The declared machine of that name. Raises TrustError."""
        machine = self.files().find(name)
        if machine is None:
            raise self._unknown(name)
        return machine

    def address_of(self, machine: Machine) -> str:
        """`host:port` as dialled. Raises TrustError."""
        try:
            return self.connector.addresses_of(machine)[-1]
        except LinkError as error:
            raise TrustError("file", machine.name, error.text) from None

    async def change(self, name: str, changes: dict[Key, Change]) -> None:
        """Write decisions and read them again. Raises TrustError."""
        try:
            await asyncio.to_thread(self.book.change, changes)
        except StoreError as error:
            raise TrustError("state", name, f"nothing was decided: {error}") from None
        await self.refresh(name)

    async def refresh(self, name: str) -> None:
        """Read the decisions again. Raises TrustError."""
        await asyncio.to_thread(self.book.refresh)
        if self.book.table is None:
            raise TrustError("state", name, self.book.error or "decisions cannot be read")

    def _find(self, name: str, address: str) -> TrustDecision | None:
        return None if self.book.table is None else self.book.table.find(name, address)

    def _expected(self, machine: Machine, address: str) -> tuple[str, ...]:
        """Fingerprints that are trusted for the machine now."""
        if machine.ssh.host_key is not None:
            return (machine.ssh.host_key,)
        found = self._find(machine.name, address)
        if found is not None and found.kind == "pinned":
            return (found.fingerprint,)
        table = self.book.table
        if table is None or not table.counts_known_hosts(machine.name, address):
            return ()
        return self.connector.known_fingerprints_of(machine)

    def _waiting(self, name: str, before: TrustDecision | None) -> str:
        """The fingerprint that was shown and waits for a decision. Raises TrustError."""
        offer = before.offer if before is not None else None
        look = "look at it first: `fleettui machines list --pending`, or name it with --fingerprint SHA256:…"
        if offer is None:
            raise TrustError("not_shown", name, f"{name}: no key of it waits for approval; {look}")
        if offer.expected:
            raise TrustError(
                "not_shown",
                name,
                f"{name}: HOST KEY CHANGED: now {offer.key_type} {offer.fingerprint}, approved is "
                f"{', '.join(offer.expected)}; find out why; if the new one is right: "
                f"{machines_command('approve', name, '--fingerprint', offer.fingerprint)}",
                expected=offer.expected,
            )
        if offer.has_expired(self.clock()):
            again = machines_command("approve", name)
            raise TrustError("not_shown", name, f"{name}: the key that waited has expired; again: {again}")
        return offer.fingerprint

    async def _note_other(self, name: str, address: str, offer: HostKeyOffer) -> None:
        """Keep the key that was seen instead, so that it can be looked at."""
        seen = SeenKey(offer.key_type, offer.fingerprint, self.clock(), offer.expected)
        await self.change(name, {(name, address): lambda now: note_offer(now, name, address, seen)})

    def _scope(self, machine: Machine, address: str) -> int:
        """A tombstone holds for the address too, unless another file declares a machine there."""
        for other in self.files().machines:
            if other.name != machine.name and not other.ssh.is_local:
                try:
                    if self.connector.addresses_of(other)[-1] == address:
                        return NOT_FOR_NAME
                except LinkError:
                    continue
        return NOT_FOR_ADDRESS

    def _already(self, decision: TrustDecision) -> TrustResult:
        text = f"{decision.name} was approved with this key by {decision.decided_by} already"
        return TrustResult(
            decision.name, decision.address, "already_approved", text, decision.key_type, decision.fingerprint
        )

    def _unknown(self, name: str) -> TrustError:
        return TrustError("unknown_name", name, f"no machine is named {name!r} in {self.book.machines_dir}")


def _pin_over(now: TrustDecision | None, before: TrustDecision | None, pin: TrustDecision) -> TrustDecision:
    """The pin, unless somebody decided otherwise since the operator looked. Raises TrustError."""
    if now is not None and (now.kind, now.fingerprint) == ("pinned", pin.fingerprint):
        return replace(now, offer=None)
    seen = (before.kind, before.fingerprint, before.decided_at) if before is not None else None
    is_same = now is None or now.kind == "pending" or (now.kind, now.fingerprint, now.decided_at) == seen
    if not is_same and now is not None:
        raise TrustError(
            "changed_meanwhile",
            pin.name,
            f"{pin.name}: {now.decided_by} decided meanwhile ({now.kind} {now.fingerprint}); look again",
        )
    return pin


def _ask_again(name: str, address: str, seen: SeenKey) -> Change:
    """The key waits anew; a rejection stays one until the operator approves."""

    def change(now: TrustDecision | None) -> TrustDecision:
        if now is None:
            return TrustDecision(name, address, "pending", offer=seen)
        return now if now.kind == "rejected" else replace(now, offer=seen)

    return change


def _forget(_: TrustDecision | None) -> None:
    return None


def _key_of(decision: TrustDecision | None) -> tuple[str, str]:
    """Type and fingerprint that a rejection is about: the key that waits, else the approved one."""
    if decision is None:
        return "", ""
    if decision.offer is not None:
        return decision.offer.key_type, decision.offer.fingerprint
    return decision.key_type, decision.fingerprint


def _file_decides(machine: Machine, wanted: str) -> TrustError:
    text = (
        f"{machine.name}: {machine.config_file} names {machine.ssh.host_key} (ssh.host_key), which counts "
        f"before any approval; if {wanted} is right, write it there"
    )
    return TrustError("file_decides", machine.name, text, expected=(machine.ssh.host_key or "",))


def _other_key(name: str, address: str, offer: HostKeyOffer, wanted: str) -> TrustError:
    text = (
        f"{name}: {address} shows another key: {offer.key_type} {offer.fingerprint} ({offer.code}), "
        f"to be approved is {wanted}; nothing is approved; find out why"
    )
    return TrustError("other_key", name, text, offer=offer, expected=(wanted,))


def _removal_text(name: str, machine: Machine | None, deleted: str | None) -> str:
    text = f"{name} is removed: its approval is forgotten, what known_hosts says of it counts no more"
    if machine is None:
        return text
    if deleted is not None:
        return f"{text}; {deleted} is deleted"
    if machine.ssh.is_local or machine.ssh.host_key is not None:
        why = "ssh: local" if machine.ssh.is_local else "ssh.host_key"
        return f"{text}; but {machine.config_file} is still there and says `{why}`, so it is still asked"
    return f"{text}; {machine.config_file} is still there, so it is pending until you delete or approve it"
