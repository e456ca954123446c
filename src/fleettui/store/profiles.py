"""Profiles of machines, dated: what was measured last, and before."""

from __future__ import annotations

import json
import os

from fleettui.model.profile import Profile
from fleettui.model.unknown import Unknown
from fleettui.view.profile_document import profile_document, profile_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleettui.store.database import Store

KEPT = 10
"""Profiles of one machine."""


def save_profiles(store: Store, machines_dir: str, profiles: Iterable[Profile]) -> None:
    """Keep these beside the earlier ones of a machine; one without a date is not kept. Raises StoreError."""
    folder = os.path.realpath(machines_dir)
    with store.transaction() as connection:
        for profile in profiles:
            if isinstance(profile.collected_at, Unknown):
                continue
            connection.execute(
                "INSERT OR REPLACE INTO profiles (machines_dir, machine, collected_at, payload) "
                "VALUES (?, ?, ?, ?)",
                (folder, profile.name, profile.collected_at, encode_profile(profile)),
            )
            connection.execute(
                "DELETE FROM profiles WHERE machines_dir = ? AND machine = ? AND collected_at NOT IN "
                "(SELECT collected_at FROM profiles WHERE machines_dir = ? AND machine = ? "
                "ORDER BY collected_at DESC LIMIT ?)",
                (folder, profile.name, folder, profile.name, KEPT),
            )


def load_profiles(store: Store, machines_dir: str) -> dict[str, Profile]:
    """The latest profile of each machine that can be read, by name. Raises StoreError."""
    with store.transaction("DEFERRED") as connection:
        if not store.has_table("profiles"):
            return {}
        rows = connection.execute(
            "SELECT machine, payload FROM profiles WHERE machines_dir = ? ORDER BY collected_at DESC",
            (os.path.realpath(machines_dir),),
        ).fetchall()
    found: dict[str, Profile] = {}
    for machine, payload in rows:
        profile = None if machine in found else decode_profile(payload)
        if profile is not None:
            found[machine] = profile
    return found


def profile_dates(store: Store, machines_dir: str) -> dict[str, float]:
    """When each machine was measured last, by name: changes with every profile. Raises StoreError."""
    with store.transaction("DEFERRED") as connection:
        if not store.has_table("profiles"):
            return {}
        rows = connection.execute(
            "SELECT machine, MAX(collected_at) FROM profiles WHERE machines_dir = ? GROUP BY machine",
            (os.path.realpath(machines_dir),),
        )
        return dict(rows.fetchall())


def encode_profile(profile: Profile) -> str:
    """JSON text of a profile."""
    return json.dumps(profile_document(profile), separators=(",", ":"))


def decode_profile(text: object) -> Profile | None:
    """The profile of `encode_profile`'s text; None for any other. Never raises."""
    try:
        document = json.loads(text) if isinstance(text, str) else None
        return profile_of(document) if isinstance(document, dict) else None
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
