"""The body of a stream of a running `fleettui serve`, as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from fleettui.model.server_place import ServerAccess
from fleettui.net.server_client import absent, encode_request, make_tls, no_server

CONNECT_S = 5.0
SILENT_S = 40.0
"""A server that says nothing for so long is gone: it sends a comment every 15 s."""
MAX_HEAD_BYTES = 64 << 10
MAX_ERROR_BYTES = 64 << 10


class StreamRefused(Exception):
    """The server answered with an error."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


async def read_stream(access: ServerAccess, target: str, last_id: str = "") -> AsyncIterator[bytes]:
    """Pieces of the body; ends when the server ends it. Raises ServerError, StreamRefused."""
    more = (f"Last-Event-ID: {last_id}",) if last_id else ()
    request = encode_request(access, target, "text/event-stream", *more)
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await _open(access)
        writer.write(request)
        status, is_chunked = await _read_head(access, reader)
        if status != 200:
            async with asyncio.timeout(CONNECT_S):
                raise StreamRefused(status, await _read_error(reader))
        async for piece in _pieces(access, reader, is_chunked=is_chunked):
            yield piece
    except TimeoutError:
        raise absent(access.place, TimeoutError(), CONNECT_S if writer is None else SILENT_S) from None
    except (OSError, asyncio.IncompleteReadError) as error:
        reason = error if isinstance(error, OSError) else ConnectionResetError("it ended the connection")
        raise absent(access.place, reason, CONNECT_S) from None
    except (ValueError, asyncio.LimitOverrunError):
        raise no_server(access.place, "no HTTP") from None
    finally:
        if writer is not None:
            writer.close()


async def _open(access: ServerAccess) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    place = access.place
    if place.scheme == "unix":
        return await asyncio.open_unix_connection(place.path, limit=MAX_HEAD_BYTES)
    tls = await asyncio.to_thread(make_tls, access) if place.scheme == "https" else None
    return await asyncio.open_connection(place.host, place.port, ssl=tls, limit=MAX_HEAD_BYTES)


async def _read_head(access: ServerAccess, reader: asyncio.StreamReader) -> tuple[int, bool]:
    """Status, and whether the body comes in chunks."""
    async with asyncio.timeout(SILENT_S):
        head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").lower().split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("http/1.") or not rest[:3].isdecimal():
        raise no_server(access.place, "no HTTP")
    is_chunked = any(line.startswith("transfer-encoding:") and "chunked" in line for line in lines)
    return int(rest[:3]), is_chunked


async def _read_error(reader: asyncio.StreamReader) -> bytes:
    """The whole body: it ends with the connection."""
    body = b""
    while len(body) < MAX_ERROR_BYTES and (piece := await reader.read(MAX_ERROR_BYTES)):
        body += piece
    return body


async def _pieces(
    access: ServerAccess, reader: asyncio.StreamReader, *, is_chunked: bool
) -> AsyncIterator[bytes]:
    while True:
        async with asyncio.timeout(SILENT_S):
            if not is_chunked:
                piece = await reader.read(1 << 18)
            else:
                size = int((await reader.readuntil(b"\r\n")).split(b";", 1)[0], 16)
                if not 0 <= size <= 64 << 20:
                    raise no_server(access.place, "a chunk of no size")
                piece = (await reader.readexactly(size + 2))[:-2]
        if not piece:
            return
        yield piece
