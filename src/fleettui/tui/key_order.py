"""Keys one at a time: what is typed ahead goes where the key before it has led.

Textual hands each key to the widget that has the focus when the key arrives, though the key before, which may
move the focus, is not done yet: of `/mia` arriving at once, as over a slow line, `m` would be a command.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any

from textual import events
from textual.app import App
from textual.message_pump import MessagePump
from textual.timer import Timer

ROUNDS = 2
"""From the focus up to the app: once for the key itself, once for what it made a widget tell its parents."""
LOOK_S, PATIENCE_S = 0.05, 2.0
"""While keys wait it is looked whether the widget of the one under way is still there; whatever happens to
it, the next key waits no longer than that."""


class KeyOrder:
    """Holds keys back until the one before has been all the way from its widget to the app."""

    def __init__(self, app: App[Any], handle: Callable[[events.Event], Awaitable[None]]) -> None:
        self._app = app
        self._handle = handle
        self._waiting: deque[events.Key] = deque()
        self._turn = 0
        self._since: float | None = None
        """When the key under way was handed on; None: none is."""
        self._alarm: Timer | None = None
        """While keys wait."""
        self._node: MessagePump | None = None
        """Where the key under way is; None: still with the app."""

    async def take(self, event: events.Key) -> None:
        """A key of the operator."""
        self._waiting.append(event)
        await self._hand_on()

    async def _hand_on(self) -> None:
        if self._is_under_way():
            if self._waiting and self._alarm is None:
                self._alarm = self._app.set_timer(LOOK_S, self._look_again)
            return
        while self._waiting:
            self._turn += 1
            self._since, self._node = monotonic(), None
            await self._handle(self._waiting.popleft())
            if self._send_up(self._start(), self._turn, ROUNDS):
                return
        self._since = None

    def _is_under_way(self) -> bool:
        if self._since is None or monotonic() - self._since >= PATIENCE_S:
            return False
        return self._node in (None, self._app) or (self._node.is_attached and not self._node._closing)

    async def _look_again(self) -> None:
        self._alarm = None
        await self._hand_on()

    def _start(self) -> MessagePump:
        return self._app.focused or self._app.screen

    def _send_up(self, node: MessagePump, turn: int, rounds: int) -> bool:
        """Queue a mark behind all that the node has to do; False where it takes no more."""
        self._node = node
        return node.call_later(self._arrived, node, turn, rounds)

    async def _arrived(self, node: MessagePump, turn: int, rounds: int) -> None:
        if turn != self._turn:
            return  # it came too late; the next key is under way
        above = node._parent
        if node is not self._app and above is not None and self._send_up(above, turn, rounds):
            return
        if rounds > 1 and self._send_up(self._start(), turn, rounds - 1):
            return
        self._since = None
        await self._hand_on()
