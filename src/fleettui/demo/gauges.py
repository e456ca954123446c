"""Needles that follow activity: temperature, power, utilisation of a card; counters of the host."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

from fleettui.demo.hardware import CardKind, HostKind

JIFFIES_S = 100
"""USER_HZ: unit of /proc/stat."""


@dataclass(slots=True)
class CardGauge:
    """What a card's sensors show."""

    kind: CardKind
    utilisation_percent: float = 0.0
    temperature_c: float = 0.0
    power_w: float = 0.0
    fan_percent: float = 0.0
    is_awake: bool = False
    """Something lies in its memory: it then idles in P8, but warmer."""

    def settle(self, activity_percent: float) -> None:
        """Jumps to where the needles end up at this activity."""
        self.utilisation_percent = activity_percent
        self.temperature_c = self._aim_temperature()
        self.power_w = self._aim_power()
        self.fan_percent = self._aim_fan()

    def step(self, activity_percent: float, step_s: float, rng: Random) -> None:
        """Moves the needles on by one step; heat is slower than work."""
        shaken = activity_percent + rng.gauss(0, 4) if activity_percent > 0 else 0.0
        self.utilisation_percent = min(100.0, max(0.0, shaken))
        self.temperature_c += (self._aim_temperature() - self.temperature_c) * _approach(step_s, 25)
        self.power_w += (self._aim_power() - self.power_w) * _approach(step_s, 1.5) + rng.gauss(0, 0.15)
        self.fan_percent += (self._aim_fan() - self.fan_percent) * _approach(step_s, 12)

    def _aim_temperature(self) -> float:
        kind, share = self.kind, self.utilisation_percent / 100
        warmth = 3.0 if self.is_awake else 0.0
        return kind.idle_temperature_c + warmth + (kind.busy_temperature_c - kind.idle_temperature_c) * share

    def _aim_power(self) -> float:
        kind, share = self.kind, self.utilisation_percent / 100
        idle = kind.idle_power_w * (1.4 if self.is_awake else 1.0)
        return idle + (kind.busy_power_w - idle) * math.sqrt(share)

    def _aim_fan(self) -> float:
        return 0.0 if self.temperature_c < 45 else min(100.0, (self.temperature_c - 45) * 1.6 + 28)

    @property
    def pstate(self) -> str:
        if self.utilisation_percent > 0:
            return "P0" if not self.kind.has_fan else "P2"
        return "P8"


def _approach(step_s: float, time_constant_s: float) -> float:
    """Share of the way that an exponential approach makes in a step."""
    return 1 - math.exp(-step_s / time_constant_s)


@dataclass(slots=True)
class HostCounters:
    """Counters of /proc since boot. Between two steps they run on at the rates of the last one."""

    host: HostKind
    booted_s: float
    """Uptime when the simulation starts."""
    at_s: float = 0.0
    """Simulated seconds to which the counters are summed up."""
    busy_share: float = 0.02
    load: tuple[float, float, float] = (0.1, 0.1, 0.1)
    rx_bytes_s: float = 0.0
    tx_bytes_s: float = 0.0
    busy_jiffies: float = 0.0
    rx_bytes: float = 0.0
    tx_bytes: float = 0.0

    def start(self, rng: Random) -> None:
        """Counters as after `booted_s` of ordinary life."""
        self.busy_jiffies = self.booted_s * JIFFIES_S * self.host.threads * rng.uniform(0.02, 0.06)
        self.rx_bytes = self.booted_s * rng.uniform(20_000, 200_000)
        self.tx_bytes = self.booted_s * rng.uniform(10_000, 120_000)

    def step(self, now: float, busy_share: float, rx_bytes_s: float, tx_bytes_s: float) -> None:
        """Sums up to `now` at the old rates, then takes the new ones."""
        elapsed = now - self.at_s
        self.busy_jiffies, self.rx_bytes, self.tx_bytes = self.sums_at(now)
        self.at_s = now
        self.busy_share = min(1.0, max(0.0, busy_share))
        self.rx_bytes_s, self.tx_bytes_s = rx_bytes_s, tx_bytes_s
        running = self.busy_share * self.host.threads
        one, five, fifteen = self.load
        self.load = (
            one + (running - one) * _approach(elapsed, 60),
            five + (running - five) * _approach(elapsed, 300),
            fifteen + (running - fifteen) * _approach(elapsed, 900),
        )

    def sums_at(self, now: float) -> tuple[float, float, float]:
        """Busy jiffies, received and sent bytes at `now`."""
        elapsed = max(0.0, now - self.at_s)
        return (
            self.busy_jiffies + elapsed * JIFFIES_S * self.host.threads * self.busy_share,
            self.rx_bytes + elapsed * self.rx_bytes_s,
            self.tx_bytes + elapsed * self.tx_bytes_s,
        )

    def uptime_at(self, now: float) -> float:
        return self.booted_s + now
