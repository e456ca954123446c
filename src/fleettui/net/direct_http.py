"""HTTP straight to an engine, where SSH allows no forwarding or an endpoint has its own URL. By httpx."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fleettui.net.errors import HttpFailure
from fleettui.net.http1 import MAX_BODY_BYTES
from fleettui.net.link import Header, HttpAnswer

if TYPE_CHECKING:
    import httpx


class DirectHttp:
    """A kept httpx client (making one costs 20 ms). No redirects, no proxy from outside."""

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None

    @property
    def is_open(self) -> bool:
        """It may hold connections."""
        return self._client is not None

    async def get(self, url: str, *, headers: Sequence[Header] = (), timeout_s: float) -> HttpAnswer:
        """One GET. Raises HttpFailure."""
        return await self._ask("GET", url, None, headers, timeout_s, MAX_BODY_BYTES)

    async def post(
        self,
        url: str,
        body: bytes,
        *,
        headers: Sequence[Header] = (),
        timeout_s: float,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> HttpAnswer:
        """One POST of a JSON document. Raises HttpFailure."""
        sent = (("Content-Type", "application/json"), *headers)
        return await self._ask("POST", url, body, sent, timeout_s, max_body_bytes)

    async def _ask(
        self,
        method: str,
        url: str,
        body: bytes | None,
        headers: Sequence[Header],
        timeout_s: float,
        max_body_bytes: int,
    ) -> HttpAnswer:
        import asyncio

        import httpx

        if self._client is None:
            self._client = httpx.AsyncClient(trust_env=False, follow_redirects=False)
        chunks: list[bytes] = []
        size = 0
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._client.stream(
                    method, url, content=body, headers=list(headers), timeout=timeout_s
                ) as answer,
            ):
                async for chunk in answer.aiter_bytes():
                    size += len(chunk)
                    if size > max_body_bytes:
                        raise HttpFailure("too_large", f"{url}: answer of more than {max_body_bytes} bytes")
                    chunks.append(chunk)
        except (TimeoutError, httpx.TimeoutException):
            raise HttpFailure("timeout", f"{url}: no answer within {timeout_s:g} s") from None
        except httpx.ConnectError as error:
            raise HttpFailure("refused", f"{url}: cannot connect ({error})") from None
        except httpx.RemoteProtocolError as error:
            is_cut = "disconnected" in str(error) or "closed" in str(error)
            raise HttpFailure("lost" if is_cut else "protocol", f"{url}: {error}") from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, ValueError) as error:
            raise HttpFailure("protocol", f"{url}: {error}; check engines[].url") from None
        except (httpx.HTTPError, OSError) as error:
            raise HttpFailure("lost", f"{url}: {error or type(error).__name__}") from None
        found = tuple((name.lower(), value) for name, value in answer.headers.multi_items())
        return HttpAnswer(answer.status_code, found, b"".join(chunks), time.time())

    async def close(self) -> None:
        """Close kept connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


async def get_direct(url: str, *, headers: Sequence[Header] = (), timeout_s: float) -> HttpAnswer:
    """One GET with a client of its own; a poller keeps a DirectHttp instead. Raises HttpFailure."""
    direct = DirectHttp()
    try:
        return await direct.get(url, headers=headers, timeout_s=timeout_s)
    finally:
        await direct.close()


async def post_direct(
    url: str,
    body: bytes,
    *,
    headers: Sequence[Header] = (),
    timeout_s: float,
    max_body_bytes: int = MAX_BODY_BYTES,
) -> HttpAnswer:
    """One POST of a JSON document with a client of its own. Raises HttpFailure."""
    direct = DirectHttp()
    try:
        return await direct.post(
            url, body, headers=headers, timeout_s=timeout_s, max_body_bytes=max_body_bytes
        )
    finally:
        await direct.close()
