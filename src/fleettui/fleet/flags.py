"""The flags of one fleet: read from the state database, followed, changed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from fleettui.model.snapshot import MaintenanceFlag
from fleettui.store.database import Store, StoreError
from fleettui.store.flags import change_maintenance, forget_flags, load_flags, read_revision

if TYPE_CHECKING:
    from fleettui.store.flags import Change, Outcome

log = logging.getLogger(__name__)


class FlagBook:
    """Calls may take as long as the disk does: off the event loop."""

    def __init__(self, state_dir: str, machines_dir: str, *, is_watching: bool = False) -> None:
        self.state_dir = state_dir
        self.machines_dir = machines_dir
        self.maintenance: Mapping[str, MaintenanceFlag] = {}
        """Machines in maintenance, by name; what was read last while the file cannot be read."""
        self.error: str | None = None
        """Why flags cannot be read; None while all is well."""
        self._is_watching = is_watching
        """Keeps the file open, to see cheaply what other processes set."""
        self._store: Store | None = None
        self._revision = -1
        self._lock = threading.Lock()

    def refresh(self) -> bool:
        """Read again what changed; True where a flag is another one now. Never raises."""
        with self._lock:
            try:
                flags = self._read()
            except StoreError as error:
                if self.error is None:
                    log.warning("flags of machines cannot be read: %s", error)
                self.error = (
                    f"flags of machines cannot be read, so who is in maintenance is not known: {error}"
                )
                return False
            self.error = None
            if flags is None or flags == self.maintenance:
                return False
            self.maintenance = flags
            return True

    def change(self, changes: Mapping[str, Change]) -> dict[str, Outcome]:
        """Apply all changes or, when one raises, none; by name what stood before and what stands now.

        Raises StoreError.
        """
        with self._lock:
            if self._store is not None:
                return change_maintenance(self._store, self.machines_dir, changes)
            with Store.open(self.state_dir) as store:
                return change_maintenance(store, self.machines_dir, changes)

    def forget(self, names: Collection[str]) -> bool:
        """Drop every flag of these machines; True where one had any. Raises StoreError."""
        with self._lock:
            if self._store is not None:
                return forget_flags(self._store, self.machines_dir, names)
            with Store.open(self.state_dir) as store:
                return forget_flags(store, self.machines_dir, names)

    def close(self) -> None:
        """Close the file; more than once is fine."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None

    def _read(self) -> Mapping[str, MaintenanceFlag] | None:
        """All flags; None: the same as before. Raises StoreError."""
        if self._is_watching and self._store is None:
            self._store = self._open_watched()
        if self._store is not None:
            if self._revision == read_revision(self._store, self.machines_dir):
                return None
            self._revision, flags = load_flags(self._store, self.machines_dir)
            return flags
        store = Store.open_readonly(self.state_dir)
        if store is None:
            return {}  # no flag was ever set
        with store:
            return load_flags(store, self.machines_dir)[1]

    def _open_watched(self) -> Store | None:
        """None where the file may only be read: it is then read anew each time."""
        try:
            return Store.open(self.state_dir)
        except StoreError as error:
            log.info("flags of machines can only be read: %s", error)
            return None
