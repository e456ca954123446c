"""A link that stays closed: nothing at all is sent to a machine that the operator did not approve."""

from __future__ import annotations

from collections.abc import Callable

from fleettui.model.snapshot import HostKeyOffer, Trust
from fleettui.net.errors import HttpFailure, LinkError
from fleettui.net.link import CommandAnswer, DataCallback, EndCallback, LoopChannel, LostCallback
from fleettui.net.tunnel import HttpStream, KeptHttp, LoopbackHttp


class NotApproved(LinkError):
    """The machine is not contacted: rejected, expired, or nobody can tell what was decided."""

    def __init__(self, trust: Trust, text: str, offer: HostKeyOffer | None) -> None:
        super().__init__("host key", text, offer=offer, is_retryable=False)
        self.trust: Trust = trust


class ClosedLink(LoopbackHttp):
    """Opening it raises; so nothing else is ever asked of it."""

    address: str | None = None
    server_version: str | None = None

    def __init__(self, refusal: NotApproved) -> None:
        self._refusal = refusal
        self._http = KeptHttp(self._open_none, "")

    async def open(self, on_lost: LostCallback) -> None:
        raise self._refusal

    async def open_loop(self, command: str, on_data: DataCallback, on_end: EndCallback) -> LoopChannel:
        raise self._refusal

    async def run_command(self, command: str) -> CommandAnswer | None:
        raise self._refusal

    async def _open_none(self, make: Callable[[], HttpStream], host: str, port: int) -> None:
        raise HttpFailure("lost", self._refusal.text)

    async def close(self) -> None: ...
