"""How often something may happen for each key: a bucket of tries that fills again."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Mapping
from typing import Any

from fleettui.serve.listening import read_address
from fleettui.serve.permission import PEER

KEPT_KEYS = 4096


class Rate:
    """`burst` at once, then `per_s`."""

    def __init__(self, per_s: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_s = per_s
        self.burst = burst
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}
        """Key -> how many are left, as of when. The last used stands last."""

    def take(self, key: str) -> float:
        """Use one up: 0. None is left: the seconds until there is one."""
        now = self._clock()
        left, at = self._left.pop(key, (float(self.burst), now))
        left = min(self.burst, left + (now - at) * self.per_s)
        is_free = left >= 1
        self._left[key] = (left - 1 if is_free else left, now)
        while len(self._left) > KEPT_KEYS:
            del self._left[next(iter(self._left))]
        return 0.0 if is_free else (1 - left) / self.per_s


def client_key(scope: Mapping[str, Any]) -> str:
    """Who counts as one client: an address, of IPv6 its network, or the user at the Unix socket."""
    uid = scope["state"].get(PEER)
    if uid is not None:
        return f"uid {uid}"
    client = scope.get("client")
    text = str(client[0]) if client else ""
    address = read_address(text)
    if address is None:
        return text
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((address, 64), strict=False))
