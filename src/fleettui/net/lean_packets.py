"""Makes asyncssh's packets cheaper: keys prepared once, no empty packets, no log, no timer.

A poll is six packets. Together this saves a seventh of the collector's CPU (docs/performance.md).
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

import asyncssh
from asyncssh.encryption import GCMEncryption, register_encryption_alg
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MSG_IGNORE = 2
_COUNTER_MASK = (1 << 64) - 1


class KeptKeyGcm(GCMEncryption):
    """AES-GCM as RFC 5647 has it; asyncssh makes the cipher anew for every packet, which doubles its cost."""

    def __init__(self, key: bytes, iv: bytes) -> None:
        self._aead = AESGCM(key)
        self._fixed = iv[:4]
        self._counter = int.from_bytes(iv[4:], "big")
        self._opened: bytes | None = None

    @classmethod
    def new(
        cls,
        cipher_name: str,
        key: bytes,
        iv: bytes,
        mac_alg: bytes = b"",
        mac_key: bytes = b"",
        etm: bool = False,
    ) -> KeptKeyGcm:
        """asyncssh's constructor; GCM needs no more than key and nonce."""
        return cls(key, iv)

    def _next_nonce(self) -> bytes:
        counter = self._counter
        self._counter = (counter + 1) & _COUNTER_MASK
        return self._fixed + counter.to_bytes(8, "big")

    def encrypt_packet(self, seq: int, header: bytes, packet: bytes) -> tuple[bytes, bytes]:
        """The packet with its tag, which asyncssh sends one behind the other anyway."""
        return header + self._aead.encrypt(self._next_nonce(), packet, header), b""

    def decrypt_packet(
        self, seq: int, first: bytes, rest: bytes, header_len: int, mac: bytes
    ) -> bytes | None:
        """The packet's content; None where the tag does not fit."""
        if self._opened is not None:
            return self.take_opened()
        sealed = b"".join((first[header_len:], rest, mac))
        try:
            return self._aead.decrypt(self._next_nonce(), sealed, first[:header_len])
        except InvalidTag:
            return None

    def open_ahead(self, header: bytes, sealed: bytes) -> bytes | None:
        """The content of the next packet, kept until it is taken; None where the tag does not fit.

        Then asyncssh judges these bytes by the same nonce: by the next one it would take the packet that
        follows one which somebody took away.
        """
        counter = self._counter
        try:
            self._opened = self._aead.decrypt(self._next_nonce(), sealed, header)
        except InvalidTag:
            self._counter = counter
            return None
        return self._opened

    def take_opened(self) -> bytes | None:
        """Let go of the packet that was opened ahead."""
        opened, self._opened = self._opened, None
        return opened


@cache
def keep_keys() -> None:
    """Have asyncssh use this AES-GCM for every connection of the process."""
    for name in ("aes128-gcm", "aes256-gcm"):
        register_encryption_alg(f"{name}@openssh.com".encode(), KeptKeyGcm, name, default=False)


def send_lean(connection: asyncssh.SSHClientConnection) -> None:
    """Send no empty packet before each packet, and log none.

    asyncssh guards CBC ciphers by them; with AES-GCM and ChaCha20-Poly1305 they guard nothing, and OpenSSH
    sends none. On a connection of another cipher they stay.
    """
    skip_packet_log(connection)
    keep_alive_lazily(connection)
    if not is_authenticated_cipher(connection.get_extra_info("send_cipher")):
        return
    send: Any = connection.send_packet

    def send_packet(pkttype: int, *args: bytes, handler: Any = None) -> None:
        if pkttype != MSG_IGNORE:
            send(pkttype, *args, handler=handler)

    connection.send_packet = send_packet  # type: ignore[method-assign]


def is_authenticated_cipher(name: object) -> bool:
    """Encryption and authentication in one: no two packets are chained."""
    return isinstance(name, str) and ("gcm" in name or name.startswith("chacha20-poly1305"))


def skip_packet_log(speaker: Any) -> None:
    """asyncssh writes each packet's text for a log that is off: 4 % of the collector's CPU."""
    speaker.log_sent_packet = speaker.log_received_packet = _log_nothing


def _log_nothing(*_: object) -> None: ...


def forget_command(channel: Any) -> None:
    """Let go of the exec string, which asyncssh keeps with the channel: 8 KB for each loop."""
    channel._command = None


def keep_alive_lazily(connection: Any) -> None:
    """Move the keepalive's timer when it fires instead of at each packet: a timer less for each."""
    now = asyncio.get_running_loop().time
    reset_at_once, fire = connection._reset_keepalive_timer, connection._keepalive_timer_callback
    heard_at = now()

    def reset() -> None:
        nonlocal heard_at
        heard_at = now()
        timer = connection._keepalive_timer
        if timer is None or timer.when() > heard_at + connection._keepalive_interval:
            reset_at_once()

    def look() -> None:
        rest_s = heard_at + connection._keepalive_interval - now()
        if rest_s > 0:
            connection._keepalive_timer = asyncio.get_running_loop().call_later(rest_s, look)
        else:
            fire()

    connection._reset_keepalive_timer, connection._keepalive_timer_callback = reset, look
