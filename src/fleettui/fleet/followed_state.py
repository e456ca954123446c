"""A part of the state database, followed: read anew when this or another process changed it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from fleettui.store.database import Store, StoreError

Rows = TypeVar("Rows")

log = logging.getLogger(__name__)


class FollowedState(Generic[Rows]):
    """One fleet's rows of some tables. Calls may take as long as the disk does: off the event loop."""

    def __init__(
        self,
        state_dir: str,
        machines_dir: str,
        *,
        what: str,
        empty: Rows,
        load: Callable[[Store, str], tuple[int, Rows]],
        read_revision: Callable[[Store, str], int],
        is_watching: bool,
    ) -> None:
        self.state_dir = state_dir
        self.machines_dir = machines_dir
        self.lock = threading.RLock()
        """Held while rows are read and taken over, so that a later reading never loses to an earlier one."""
        self._what = what
        self._empty = empty
        self._load = load
        self._read_revision = read_revision
        self._is_watching = is_watching
        """Keeps the file open, to see cheaply what other processes change."""
        self._store: Store | None = None
        self._revision = -1

    def read(self) -> Rows | None:
        """All rows; None: the same as before. Raises StoreError."""
        with self.lock:
            if self._is_watching and self._store is None:
                self._store = self._open_watched()
            if self._store is not None:
                if self._revision == self._read_revision(self._store, self.machines_dir):
                    return None
                self._revision, rows = self._load(self._store, self.machines_dir)
                return rows
            store = Store.open_readonly(self.state_dir)
            if store is None:
                return self._empty  # nothing was ever written
            with store:
                return self._load(store, self.machines_dir)[1]

    @contextmanager
    def open_for_change(self) -> Iterator[Store]:
        """The file, to change rows. Raises StoreError."""
        with self.lock:
            if self._store is not None:
                yield self._store
                return
            with Store.open(self.state_dir) as store:
                yield store

    def close(self) -> None:
        """Close the file; more than once is fine."""
        with self.lock:
            if self._store is not None:
                self._store.close()
                self._store = None

    def _open_watched(self) -> Store | None:
        """None where the file may only be read: it is then read anew each time."""
        try:
            return Store.open(self.state_dir)
        except StoreError as error:
            log.info("%s can only be read: %s", self._what, error)
            return None
