"""Makes an asyncssh server speak on the wire as OpenSSH does, which the demo machines stand for."""

from __future__ import annotations

from typing import Any

import asyncssh

MSG_IGNORE = 2


def speak_as_openssh(connection: asyncssh.SSHServerConnection) -> None:
    """Leave out the empty packet that asyncssh sends before every packet.

    OpenSSH sends none (it guards CBC ciphers, which neither side prefers), and each costs the client a packet
    to receive: a demo machine would be dearer to poll than a real one.
    """
    send: Any = connection.send_packet

    def send_packet(pkttype: int, *args: bytes, handler: Any = None) -> None:
        if pkttype != MSG_IGNORE:
            send(pkttype, *args, handler=handler)

    connection.send_packet = send_packet  # type: ignore[method-assign]
