"""What front ends call on a running service: decisions about machines that take effect at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from fleettui.fleet.machine_adding import AddRequest, add_machines
from fleettui.fleet.record import MachineRecord
from fleettui.fleet.trust_desk import TrustDesk
from fleettui.fleet.trust_words import ShownKey, TrustResult
from fleettui.net.errors import LinkError


class TrustOperations:
    """Each method decides, then lets the pollers follow. Raises TrustError (`add` AddError too)."""

    def __init__(
        self,
        desk: TrustDesk,
        follow: Callable[[], Awaitable[None]],
        record_of: Callable[[str], MachineRecord | None],
    ) -> None:
        self.desk = desk
        self._follow = follow
        self._record_of = record_of

    def route_to(self, name: str) -> tuple[str, ...]:
        """Addresses as dialled, jump hosts first, the machine's own last; empty where they cannot be told."""
        record = self._record_of(name)
        try:
            return () if record is None else self.desk.connector.addresses_of(record.machine)
        except LinkError:
            return ()

    async def read_key(self, name: str) -> ShownKey:
        """The key that the machine shows now; one that had expired waits anew."""
        shown = await self.desk.read_key(name)
        await self._follow()
        return shown

    async def approve(self, name: str, fingerprint: str | None = None, by: str | None = None) -> TrustResult:
        """Approve the key of that fingerprint, or the one the snapshot shows; refused if the machine
        shows another one now. `by`: who decides; None: who runs this."""
        record = self._record_of(name)
        offer = record.link.offer if record is not None else None
        result = await self.desk.approve(name, fingerprint or (offer.fingerprint if offer else None), by=by)
        await self._follow()
        return result

    async def reject(self, name: str, by: str | None = None) -> TrustResult:
        """Ask nothing of the machine any more."""
        result = await self.desk.reject(name, by)
        await self._follow()
        return result

    async def remove(self, name: str, *, is_file_deleted: bool = False) -> TrustResult:
        """Forget the approval, delete the file only when asked."""
        try:
            return await self.desk.remove(name, is_file_deleted=is_file_deleted)
        finally:
            await self._follow()

    async def add(self, requests: Sequence[AddRequest], how: str = "add") -> list[TrustResult]:
        """Create machine files, approve keys given beforehand."""
        results = await add_machines(self.desk, requests, how)
        await self._follow()
        return results
