"""TCP to a host with several addresses."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from fleettui.net.errors import LinkError

Address = tuple[int, tuple[Any, ...]]
"""Address family and socket address."""

_FAMILIES = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}
_HINTS = {
    errno.ECONNREFUSED: ("connection refused", "is sshd running there?"),
    errno.EHOSTUNREACH: ("no route to host", "is the machine on, is the VPN up?"),
    errno.ENETUNREACH: ("network unreachable", "is this machine's network up?"),
    errno.ETIMEDOUT: ("no answer", "is the machine on, does a firewall drop the port?"),
    errno.ECONNRESET: ("connection reset", "does a firewall or a login guard refuse us?"),
    errno.EMFILE: ("too many open files here", "raise `ulimit -n`"),
}


async def resolve(host: str, port: int, family: str) -> list[Address]:
    """Addresses of a name. Raises LinkError(stage="resolve").

    In a daemon thread of its own: a dead name server holds up neither other machines nor our exit.
    """
    with suppress(ValueError):
        literal = ipaddress.ip_address(host)
        if literal.version == 4:
            return [(socket.AF_INET, (host, port))]
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[Address]] = loop.create_future()

    def settle(found: list[Address] | None, error: OSError | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(found or [])

    def look_up() -> None:
        found: list[Address] = []
        failure: OSError | None = None
        try:
            entries = socket.getaddrinfo(
                host, port, _FAMILIES.get(family, socket.AF_UNSPEC), socket.SOCK_STREAM
            )
            found = list(dict.fromkeys((int(entry[0]), entry[4]) for entry in entries))
        except OSError as error:
            failure = error
        except UnicodeError:
            failure = OSError("not a host name")
        with suppress(RuntimeError):  # the loop is gone
            loop.call_soon_threadsafe(settle, found, failure)

    threading.Thread(target=look_up, name=f"resolve {host}", daemon=True).start()
    try:
        found = await answer
    except OSError as error:
        raise LinkError("resolve", _explain_lookup(f"{host}:{port}", family, error)) from None
    if not found:
        raise LinkError("resolve", f"{host}:{port}: the name has no address; check DNS")
    return found


def _explain_lookup(where: str, family: str, error: OSError) -> str:
    """Why a name gave no address: no such name, no address of the kind, or nobody to ask."""
    reason = error.strerror or str(error) or type(error).__name__
    kind = error.errno
    if kind == socket.EAI_AGAIN:
        return f"{where}: the name server does not answer ({reason}); is this machine's network or VPN up?"
    if kind in (socket.EAI_NODATA, socket.EAI_ADDRFAMILY):
        wanted = {"inet": "IPv4 ", "inet6": "IPv6 "}.get(family, "")
        return f"{where}: the name has no {wanted}address ({reason}); check DNS or AddressFamily"
    if kind == socket.EAI_NONAME:
        return f"{where}: name not found ({reason}); check network.hostname, ssh.host or DNS"
    return f"{where}: the name cannot be looked up ({reason}); check network.hostname, ssh.host or DNS"


async def connect_any(
    where: str,
    addresses: Sequence[Address],
    *,
    address_s: float,
    stagger_s: float,
    bind_address: str | None = None,
) -> socket.socket:
    """A connected socket to the first address that answers. Raises LinkError(stage="connect").

    Each address has its own deadline and the next is tried `stagger_s` later (RFC 8305), so that one
    black hole among the addresses does not use up the time.
    """
    waiting = list(_interleave(addresses))
    running: dict[asyncio.Task[socket.socket], Address] = {}
    failures: list[tuple[Address, OSError]] = []
    winner: socket.socket | None = None
    try:
        while winner is None and (waiting or running):
            if waiting:
                address = waiting.pop(0)
                running[asyncio.create_task(_connect_one(address, address_s, bind_address))] = address
            timeout = stagger_s if waiting else None
            done, _ = await asyncio.wait(running, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                address = running.pop(task)
                error = task.exception()
                if isinstance(error, OSError):
                    failures.append((address, error))
                elif error is not None:
                    raise error
                elif winner is None:
                    winner = task.result()
                else:
                    task.result().close()
    except BaseException:
        if winner is not None:
            winner.close()
        raise
    finally:
        for task in running:
            task.cancel()
            task.add_done_callback(_drop_late)
    if winner is None:
        raise LinkError("connect", _explain(where, failures, address_s))
    return winner


def _drop_late(task: asyncio.Task[socket.socket]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()


async def _connect_one(address: Address, address_s: float, bind_address: str | None) -> socket.socket:
    family, target = address
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        if bind_address is not None:
            try:
                sock.bind((bind_address, 0))
            except OSError as error:
                reason = error.strerror or str(error)
                raise OSError(
                    None, f"cannot use BindAddress {bind_address} of ssh_config ({reason})"
                ) from None
        async with asyncio.timeout(address_s):
            await asyncio.get_running_loop().sock_connect(sock, target)
    except TimeoutError as error:
        sock.close()
        if error.errno is not None:
            raise
        raise OSError(errno.ETIMEDOUT, "timed out") from None
    except BaseException:
        sock.close()
        raise
    return sock


def _interleave(addresses: Sequence[Address]) -> list[Address]:
    """The resolver's order with the families taking turns (RFC 8305 section 4)."""
    if not addresses:
        return []
    first = [address for address in addresses if address[0] == addresses[0][0]]
    others = [address for address in addresses if address[0] != addresses[0][0]]
    mixed: list[Address] = []
    for index in range(max(len(first), len(others))):
        mixed += first[index : index + 1] + others[index : index + 1]
    return mixed


def explain_os_error(error: OSError) -> tuple[str, str]:
    """(what, what to do next) for a socket error."""
    what, hint = _HINTS.get(error.errno or 0, (error.strerror or str(error) or type(error).__name__, ""))
    return what, hint


def _explain(where: str, failures: Sequence[tuple[Address, OSError]], address_s: float) -> str:
    reasons: dict[str, list[str]] = {}
    hint = ""
    for (_, target), error in failures:
        what, advice = explain_os_error(error)
        if error.errno == errno.ETIMEDOUT:
            what = f"no answer within {address_s:g} s"
        shown = f"[{target[0]}]" if ":" in str(target[0]) else str(target[0])
        reasons.setdefault(what, []).append(shown)
        hint = hint or advice
    if len(failures) > 1 or (failures and str(failures[0][0][1][0]) not in where):
        told = ", ".join(f"{what} ({', '.join(hosts)})" for what, hosts in reasons.items())
    else:
        told = ", ".join(reasons)
    return f"{where}: {told}; {hint or 'check network and firewall'}"
