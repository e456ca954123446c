"""The decisions about host keys of one fleet: read from the state database, followed, changed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fleettui.decide.trust import TrustTable
from fleettui.model.trust import TrustDecision
from fleettui.net.key_rules import USUAL, KeyRule
from fleettui.store.database import Store, StoreError
from fleettui.store.trust import change_decisions, load_decisions, read_revision

if TYPE_CHECKING:
    from fleettui.store.trust import Change, Key

log = logging.getLogger(__name__)


class TrustBook:
    """Calls may take as long as the disk does: off the event loop."""

    def __init__(self, state_dir: str, machines_dir: str, *, is_watching: bool = False) -> None:
        self.state_dir = state_dir
        self.machines_dir = machines_dir
        self.table: TrustTable | None = None
        """None until it could be read: then nobody can tell who was rejected."""
        self.error: str | None = None
        """Why decisions cannot be read or kept; None while all is well."""
        self._is_watching = is_watching
        """Keeps the file open, to see cheaply what other processes decide."""
        self._store: Store | None = None
        self._revision = -1
        self._rows: tuple[TrustDecision, ...] = ()
        self._lock = threading.Lock()

    def refresh(self) -> bool:
        """Read again what changed; True where the table is another one now. Never raises."""
        with self._lock:
            try:
                rows = self._read()
            except StoreError as error:
                self._note_error(str(error))
                return False
            self.error = None
            if rows is None or (self.table is not None and rows == self._rows):
                return False
            self.table, self._rows = TrustTable(rows), rows
            return True

    def change(self, changes: Mapping[Key, Change]) -> bool:
        """Apply all changes or, when one raises, none; True where an entry differs now. Raises StoreError."""
        with self._lock:
            if self._store is not None:
                return change_decisions(self._store, self.machines_dir, changes)
            with Store.open(self.state_dir) as store:
                return change_decisions(store, self.machines_dir, changes)

    def jump_rule(self, address: str) -> KeyRule:
        """How the host key of a jump host is judged: by what was decided about a machine at that address."""
        if self.table is None:
            return USUAL
        pins, counts_known_hosts = self.table.jump_pins(address)
        return KeyRule(pins, counts_known_hosts)

    def close(self) -> None:
        """Close the file; more than once is fine."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None

    def _read(self) -> tuple[TrustDecision, ...] | None:
        """All entries; None: the same as before. Raises StoreError."""
        if self._is_watching and self._store is None:
            self._store = self._open_watched()
        if self._store is not None:
            if self._revision == read_revision(self._store, self.machines_dir):
                return None
            self._revision, rows = load_decisions(self._store, self.machines_dir)
            return rows
        store = Store.open_readonly(self.state_dir)
        if store is None:
            return ()  # nothing was ever decided
        with store:
            return load_decisions(store, self.machines_dir)[1]

    def _open_watched(self) -> Store | None:
        """None where the file may only be read: it is then read anew each time."""
        try:
            return Store.open(self.state_dir)
        except StoreError as error:
            log.info("decisions about host keys can only be read: %s", error)
            return None

    def _note_error(self, text: str) -> None:
        if self.error is None:
            log.warning("decisions about host keys cannot be read: %s", text)
        self.error = f"decisions about host keys cannot be read: {text}"
