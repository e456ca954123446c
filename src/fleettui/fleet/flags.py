"""The flags of one fleet: read from the state database, followed, changed."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from fleettui.fleet.followed_state import FollowedState
from fleettui.model.snapshot import DrainFlag, MaintenanceFlag
from fleettui.store.database import StoreError
from fleettui.store.drains import load_followed_flags
from fleettui.store.flags import FleetFlags, change_maintenance, forget_flags, read_revision

if TYPE_CHECKING:
    from fleettui.store.flags import Change, Outcome

log = logging.getLogger(__name__)


class FlagBook:
    """Calls may take as long as the disk does: off the event loop."""

    def __init__(self, state_dir: str, machines_dir: str, *, is_watching: bool = False) -> None:
        self.state_dir = state_dir
        self.machines_dir = machines_dir
        self.flags = FleetFlags()
        """What was read last while the file cannot be read."""
        self.error: str | None = None
        """Why flags cannot be read; None while all is well."""
        self._state = FollowedState[FleetFlags](
            state_dir, machines_dir, what="flags of machines", empty=FleetFlags(),
            load=load_followed_flags, read_revision=read_revision, is_watching=is_watching,
        )  # fmt: skip

    @property
    def maintenance(self) -> Mapping[str, MaintenanceFlag]:
        """Machines in maintenance, by name."""
        return self.flags.maintenance

    @property
    def drains(self) -> Mapping[str, DrainFlag]:
        """Machines that shall be empty, by name."""
        return self.flags.drains

    def refresh(self) -> bool:
        """Read again what changed; True where a flag is another one now. Never raises."""
        with self._state.lock:
            try:
                flags = self._state.read()
            except StoreError as error:
                if self.error is None:
                    log.warning("flags of machines cannot be read: %s", error)
                self.error = (
                    "flags of machines cannot be read, so who is in maintenance or drained is not known: "
                    f"{error}"
                )
                return False
            self.error = None
            if flags is None or flags == self.flags:
                return False
            self.flags = flags
            return True

    def change(self, changes: Mapping[str, Change]) -> dict[str, Outcome]:
        """Apply all changes or, when one raises, none; by name what stood before and what stands now.

        Raises StoreError.
        """
        with self._state.open_for_change() as store:
            return change_maintenance(store, self.machines_dir, changes)

    def forget(self, names: Collection[str]) -> bool:
        """Drop every flag of these machines; True where one had any. Raises StoreError."""
        with self._state.open_for_change() as store:
            return forget_flags(store, self.machines_dir, names)

    def close(self) -> None:
        """Close the file; more than once is fine."""
        self._state.close()
