"""Whether addresses take a TCP connection from here; all are tried at once, each for a short while."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Collection

CONNECT_S = 1.5
"""A host that is there answers within a round trip; a firewall that drops packets never does."""
NAME_S = 1.0
"""More, where names are looked for by DNS."""
AT_ONCE = 64
"""Threads; each waits on one address."""

Place = tuple[str, int]
"""Host and port."""


def find_unreachable(
    places: Collection[Place], connect_s: float = CONNECT_S, name_s: float = NAME_S
) -> dict[Place, str]:
    """Those that take no connection, with why in the operator's words. Opens and closes, sends nothing."""
    failures: dict[Place, str] = {}
    wanted = list(dict.fromkeys(places))
    for start in range(0, len(wanted), AT_ONCE):
        some = wanted[start : start + AT_ONCE]
        found: dict[Place, str | None] = {}
        threads = [
            threading.Thread(target=_try, args=(place, connect_s, found), daemon=True) for place in some
        ]
        for thread in threads:
            thread.start()
        until = time.monotonic() + connect_s + name_s
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        for place in some:
            why = found.get(place, "its name is not found in time")
            if why is not None:
                failures[place] = why
    return failures


def _try(place: Place, connect_s: float, found: dict[Place, str | None]) -> None:
    try:
        with socket.create_connection(place, timeout=connect_s):
            found[place] = None
    except TimeoutError:
        found[place] = f"no answer within {connect_s:g} s"
    except socket.gaierror as error:
        found[place] = f"its name is not found ({error.strerror})"
    except ConnectionRefusedError:
        found[place] = "connection refused"
    except (OSError, UnicodeError) as error:
        found[place] = str(getattr(error, "strerror", None) or error)
