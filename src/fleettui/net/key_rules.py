"""What the operator decided about a host key, put to the hops of a login. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fleettui.net.hops import Hop


@dataclass(frozen=True, slots=True)
class KeyRule:
    """How a machine's host key is judged."""

    pins: tuple[str, ...] = ()
    """Approved fingerprints: where there are any, only these count (`ssh.host_key` aside)."""
    counts_known_hosts: bool = True
    """False: rejected or removed here, so what stands in known_hosts is no approval any more."""
    is_reading: bool = False
    """Only look at the key; `pins` are then the ones to look for."""


USUAL = KeyRule()
RuleAt = Callable[[str], KeyRule]
"""The rule of a jump host by its `host:port`."""


def apply_rule(hops: tuple[Hop, ...], rule: KeyRule, jump_rule: RuleAt | None) -> tuple[Hop, ...]:
    """The hops with the machine's rule at the last one and what is known of jump hosts at the others."""
    *jumps, target = hops
    if jump_rule is not None:
        jumps = [_with(hop, jump_rule(hop.where)) for hop in jumps]
    return (*jumps, _with(target, rule))


def _with(hop: Hop, rule: KeyRule) -> Hop:
    if rule == USUAL:
        return hop
    pins = hop.pins if hop.pins and not rule.is_reading else rule.pins
    return replace(hop, pins=pins, counts_known_hosts=rule.counts_known_hosts, is_reading=rule.is_reading)
