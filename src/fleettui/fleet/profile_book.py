"""Stored profiles for a front end that stays: read off the event loop, again now and then while it asks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from fleettui.model.profile import Profile
from fleettui.store.database import Store, StoreError
from fleettui.store.profiles import load_profiles, profile_dates

AGAIN_S = 5.0
"""What `inventory collect` measures in another terminal is seen that late."""


class ProfileBook:
    """The latest profile of each machine of one folder."""

    def __init__(self, state_dir: str, machines_dir: str) -> None:
        self.state_dir = state_dir
        self.machines_dir = machines_dir
        self.error: str | None = None
        """Why profiles cannot be read; None while all is well."""
        self._profiles: Mapping[str, Profile] = {}
        self._dates: Mapping[str, float] = {}
        self._read_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None

    @property
    def latest(self) -> Mapping[str, Profile]:
        """As read last, the same object while nothing changed; where it is old it is read anew meanwhile."""
        now = time.monotonic()
        if now - self._read_at >= AGAIN_S and (self._reading is None or self._reading.done()):
            self._read_at = now
            self._reading = asyncio.get_running_loop().create_task(self._read_again())
        return self._profiles

    async def read(self) -> Mapping[str, Profile]:
        """Read now."""
        self._read_at = time.monotonic()
        await self._read_again()
        return self._profiles

    async def _read_again(self) -> None:
        try:
            dates, found = await asyncio.to_thread(self._read)
        except StoreError as error:
            self.error = str(error)
            return
        self.error = None
        self._dates = dates
        if found != self._profiles:
            self._profiles = found

    def _read(self) -> tuple[Mapping[str, float], Mapping[str, Profile]]:
        store = Store.open_readonly(self.state_dir)
        if store is None:
            return {}, {}
        with store:
            dates = profile_dates(store, self.machines_dir)
            if dates == self._dates:  # 3 ms of 300 machines, where reading them again is 50
                return dates, self._profiles
            return dates, load_profiles(store, self.machines_dir)


def open_profile_book(state_dir: str | None, machines_dir: str) -> ProfileBook | None:
    """None without a state folder."""
    return None if state_dir is None else ProfileBook(state_dir, machines_dir)
