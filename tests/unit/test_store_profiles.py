"""Stored profiles: dated, latest first, each folder by itself; anything odd is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleettui.model.profile import Profile, ProfileCpu, ProfileDisk, ProfileGpu
from fleettui.model.unknown import Unknown
from fleettui.store.database import Store
from fleettui.store.profiles import (
    KEPT,
    decode_profile,
    encode_profile,
    load_profiles,
    save_profiles,
)

PROFILE = Profile(
    "ada",
    ProfileCpu("X", 8, 16),
    64,
    66987520,
    (ProfileDisk("nvme0n1", 256, False),),
    (
        ProfileGpu(0, "RTX 4090", 24, 24564, (8, 10), "570", keys={"disabled": True}),
        ProfileGpu(1, "GB10", 119, 122880, (12, 1), "580", is_unified=True),
    ),
    1_790_000_000.0,
    {"cpu_roles": False},
)


def test_a_profile_comes_back_as_it_was() -> None:
    assert decode_profile(encode_profile(PROFILE)) == PROFILE


def test_what_was_not_read_comes_back_unknown() -> None:
    found = decode_profile(encode_profile(Profile("ada")))
    assert found is not None
    assert all(
        isinstance(value, Unknown) for value in (found.gpus, found.disks, found.memory_gb, found.cpu.cores)
    )


@given(
    st.text(max_size=40)
    | st.none()
    | st.sampled_from(["[]", "{}", '{"name": 1, "gpus": [1]}', '{"name":"a","cpu":3}'])
)
def test_anything_else_is_none(text: object) -> None:
    assert decode_profile(text) is None


def test_the_latest_counts_and_the_last_few_are_kept(tmp_path: Path) -> None:
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    with Store.open(str(tmp_path)) as store:
        for at in range(KEPT + 3):
            save_profiles(
                store, here, [replace(PROFILE, collected_at=1000.0 + at), replace(PROFILE, name="bora")]
            )
        save_profiles(store, here, [replace(PROFILE, name="undated", collected_at=Unknown("x"))])
        assert {name: item.collected_at for name, item in load_profiles(store, here).items()} == {
            "ada": 1000.0 + KEPT + 2, "bora": PROFILE.collected_at,
        }  # fmt: skip
        kept = "SELECT collected_at FROM profiles WHERE machine = 'ada' ORDER BY collected_at"
        dates = [at for (at,) in store.connection.execute(kept)]
        assert dates == [1000.0 + at for at in range(3, KEPT + 3)]
        store.connection.execute("UPDATE profiles SET payload = '{' WHERE collected_at = ?", (dates[-1],))
        assert load_profiles(store, here)["ada"].collected_at == dates[-2], "the latest that can be read"
        assert load_profiles(store, there) == {}


@pytest.mark.parametrize("is_there", [True, False])
def test_an_older_state_file_has_none(tmp_path: Path, is_there: bool) -> None:
    with Store.open(str(tmp_path)) as store:
        if not is_there:
            store.connection.execute("DROP TABLE profiles")
    reading = Store.open_readonly(str(tmp_path))
    assert reading is not None
    with reading:
        assert load_profiles(reading, "m") == {}
