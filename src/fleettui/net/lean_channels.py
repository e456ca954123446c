"""Data on SSH channels the short way: what a poll sends and receives is nothing else.

asyncssh takes each packet through a dozen calls that are there for every kind of packet, a quarter of the
collector's CPU. Here a whole packet of channel data under AES-GCM on an open channel goes straight to its
session, and a short write straight to the transport. Everything else, and all that is not in perfect order,
takes asyncssh's own way, which judges it.
"""

from __future__ import annotations

from collections.abc import Callable
from os import urandom
from time import monotonic
from typing import Any

import asyncssh

from fleettui.net.lean_packets import KeptKeyGcm, skip_packet_log

_CHANNEL_DATA = 94
_TAG_LENGTH = 16
_BLOCK = 16
_DATA_AT = 10
"""In a packet: its padding's length, its type, the channel, the length of the data; then the data."""
_SEQUENCE_MASK = 0xFFFF_FFFF

_AT_HEADER = asyncssh.SSHClientConnection._recv_pkthdr
"""asyncssh waits for a new packet."""


def receive_lean(connection: Any) -> None:
    """Have the connection hand on channel data at once."""
    receive_usually = connection.data_received

    def data_received(data: bytes, datatype: int | None = None) -> None:
        cipher = connection._recv_encryption
        if (
            connection._inpbuf
            or getattr(connection._recv_handler, "__func__", None) is not _AT_HEADER
            or not isinstance(cipher, KeptKeyGcm)
            or connection._decompressor is not None
        ):
            receive_usually(data, datatype)
            return
        start = _take_data(connection, cipher, data)
        if start < len(data) and connection._transport is not None:
            receive_usually(data[start:] if start else data, datatype)
        elif start:
            connection._reset_keepalive_timer()

    connection.data_received = data_received


def _take_data(connection: Any, cipher: KeptKeyGcm, data: bytes) -> int:
    """Hand on the packets of channel data at the front; where the first other byte stands."""
    start, whole = 0, len(data)
    while whole - start > 4 + _TAG_LENGTH:
        length = int.from_bytes(data[start : start + 4], "big")
        end = start + 4 + length + _TAG_LENGTH
        if end > whole or length > connection._max_recv_pktlen:
            break
        packet = cipher.open_ahead(data[start : start + 4], data[start + 4 : end])
        if packet is None or not _deliver(connection, packet):
            break  # the cipher keeps the packet for asyncssh, which opens it next
        cipher.take_opened()
        connection._recv_seq = (connection._recv_seq + 1) & _SEQUENCE_MASK
        start = end
        if connection._transport is None:
            break
    return start


def _deliver(connection: Any, packet: bytes) -> bool:
    """Hand the packet's data to its session; False for whatever is not such data in perfect order."""
    if len(packet) < _DATA_AT or not packet[0] or packet[1] != _CHANNEL_DATA or not connection._auth_complete:
        return False
    channel = connection._channels.get(int.from_bytes(packet[2:6], "big"))
    size = int.from_bytes(packet[6:_DATA_AT], "big")
    if (
        channel is None
        or size == 0
        or size != len(packet) - packet[0] - _DATA_AT
        or channel._recv_state != "open"
        or channel._send_state in ("close_pending", "closed")
        or channel._recv_paused
        or size > channel._recv_window
    ):
        return False
    channel._recv_window -= size
    try:
        channel._deliver_data(packet[_DATA_AT : _DATA_AT + size], None)
    except Exception:  # noqa: BLE001 - as asyncssh does: the connection ends and its owner hears why
        connection.internal_error()
    return True


def make_lean(channel: Any) -> None:
    """Have the channel log no packets, and write the short way."""
    skip_packet_log(channel)
    channel.write = _lean_write(channel)


def _lean_write(channel: Any) -> Callable[[bytes], None]:
    """The channel's `write`: bytes that need neither waiting nor cutting go out at once."""
    write_usually: Callable[[bytes], None] = channel.write
    connection = channel._conn

    def write(data: bytes) -> None:
        cipher, size = connection._send_encryption, len(data)
        if (
            not isinstance(cipher, KeptKeyGcm)
            or connection._compressor is not None
            or not (connection._kex_complete and connection._auth_complete)
            or connection._rekey_bytes_sent >= connection._rekey_bytes
            or (connection._rekey_seconds and monotonic() >= connection._rekey_time)
            or channel._send_state != "open"
            or channel._send_buf
            or channel._encoding
            or not 0 < size <= min(channel._send_window, channel._send_pktsize)
        ):
            write_usually(data)
            return
        # Padding to whole blocks, at least 4 bytes; the length itself stands outside (RFC 5647).
        padding = -(_DATA_AT + size) % _BLOCK
        if padding < 4:
            padding += _BLOCK
        head = (
            bytes((padding, _CHANNEL_DATA)) + channel._send_chan.to_bytes(4, "big") + size.to_bytes(4, "big")
        )
        packet = b"".join((head, data, urandom(padding)))
        header = len(packet).to_bytes(4, "big")
        channel._send_window -= size
        sealed, _ = cipher.encrypt_packet(0, header, packet)
        connection._send(sealed)
        connection._send_seq = (connection._send_seq + 1) & _SEQUENCE_MASK
        connection._rekey_bytes_sent += len(packet)

    return write
