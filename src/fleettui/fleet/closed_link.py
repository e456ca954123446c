"""A link that stays closed: nothing at all is sent to a machine that the operator did not approve."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.snapshot import HostKeyOffer, Trust
from fleettui.net.errors import HttpFailure, LinkError
from fleettui.net.http1 import MAX_BODY_BYTES
from fleettui.net.link import (
    CommandAnswer,
    DataCallback,
    EndCallback,
    GetCallback,
    Header,
    HttpAnswer,
    LoopChannel,
    LostCallback,
)


class NotApproved(LinkError):
    """The machine is not contacted: rejected, expired, or nobody can tell what was decided."""

    def __init__(self, trust: Trust, text: str, offer: HostKeyOffer | None) -> None:
        super().__init__("host key", text, offer=offer, is_retryable=False)
        self.trust: Trust = trust


class ClosedLink:
    """Opening it raises; so nothing else is ever asked of it."""

    address: str | None = None
    server_version: str | None = None

    def __init__(self, refusal: NotApproved) -> None:
        self._refusal = refusal

    async def open(self, on_lost: LostCallback) -> None:
        raise self._refusal

    async def open_loop(self, command: str, on_data: DataCallback, on_end: EndCallback) -> LoopChannel:
        raise self._refusal

    async def run_command(self, command: str) -> CommandAnswer | None:
        raise self._refusal

    async def get(
        self, port: int, path: str, *, headers: Sequence[Header] = (), timeout_s: float
    ) -> HttpAnswer:
        raise HttpFailure("lost", self._refusal.text)

    async def post(
        self,
        port: int,
        path: str,
        body: bytes,
        *,
        headers: Sequence[Header] = (),
        timeout_s: float,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> HttpAnswer:
        raise HttpFailure("lost", self._refusal.text)

    def start_get(
        self,
        port: int,
        path: str,
        on_answer: GetCallback,
        timeout_s: float,
        headers: Sequence[Header] = (),
    ) -> bool:
        return False

    def count_streams(self, port: int) -> int:
        return 0

    async def close(self) -> None: ...
