"""The machine's clock against ours: `date +%s.%N`."""

from __future__ import annotations

from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.numbers import is_digits


def parse_epoch(payload: bytes) -> tuple[float, float] | None:
    """Earliest and latest moment that the text stands for, epoch seconds; without a fraction a second apart.

    busybox and BSD know no `%N` and print an empty or literal fraction.
    """
    whole, _, fraction = payload.decode("ascii", "replace").strip().partition(".")
    if not is_digits(whole) or len(whole) > 11:
        return None
    if is_digits(fraction):
        moment = int(whole) + int(fraction) / 10 ** len(fraction)
        return moment, moment
    return float(whole), int(whole) + 1.0


def find_skew_s(payload: bytes, asked_at: float, received_at: float) -> Maybe[float]:
    """The machine's clock minus ours, as much as is sure, 0.1 s; 0 where it may be right.

    Question and answer bound the moment at which the machine looked, so a slow link widens what may be right.
    """
    found = parse_epoch(payload)
    if found is None or received_at < asked_at:
        return Unknown("no time from `date`")
    least, most = found[0] - received_at, found[1] - asked_at
    sure = max(0.0, least) + min(0.0, most)
    return round(sure, 1)
