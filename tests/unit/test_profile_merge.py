"""A new profile over an old one: keys of the operator stay, nothing that was known is lost."""

from __future__ import annotations

from dataclasses import replace

from fleettui.decide.profile_merge import merge_profile, with_keys_of, with_machine_keys
from fleettui.model.machine import Machine
from fleettui.model.profile import Profile, ProfileCpu, ProfileDisk, ProfileGap, ProfileGpu
from fleettui.model.unknown import Unknown

OLD = Profile(
    "ada",
    ProfileCpu("X", 8, 16),
    64,
    66987520,
    (ProfileDisk("nvme0n1", 256, False),),
    (
        ProfileGpu(0, "RTX 4090", 24, 24564, (8, 9), "570", keys={"disabled": True, "note": "hot"}),
        ProfileGpu(1, "RTX 3090", 24, 24576, (8, 6), "570", keys={"slot": "left"}),
    ),
    1000.0,
    {"cpu_roles": False, "rack": 4},
)
UNREAD = Unknown("hung")


def test_what_was_measured_is_new_and_what_the_operator_wrote_stays() -> None:
    new = Profile(
        "ada",
        ProfileCpu("X", 8, 16),
        128,
        131886540,
        (ProfileDisk("nvme0n1", 256, False), ProfileDisk("sda", 4001, True)),
        (
            ProfileGpu(0, "RTX 4090", 24, 24564, (8, 9), "580"),
            ProfileGpu(1, "RTX 5090", 32, 32607, (12, 0), "580"),
            ProfileGpu(2, "T4", 15, 15360, (7, 5), "580"),
        ),
        2000.0,
    )
    merged = merge_profile(OLD, new)
    assert not isinstance(merged.profile.gpus, Unknown)
    assert [gpu.keys for gpu in merged.profile.gpus] == [
        {"disabled": True, "note": "hot"}, {"slot": "left"}, {},
    ]  # fmt: skip
    assert [gpu.is_disabled for gpu in merged.profile.gpus] == [True, False, False]
    assert merged.profile.keys == {"cpu_roles": False, "rack": 4}
    assert not merged.profile.takes_cpu_roles
    assert replace(merged.profile, gpus=new.gpus, keys={}) == new
    assert merged.warnings == ("GPU 1 was RTX 3090, is RTX 5090 now; still: slot",)


def test_a_card_that_is_gone_is_told() -> None:
    assert not isinstance(OLD.gpus, Unknown)
    merged = merge_profile(OLD, replace(OLD, gpus=OLD.gpus[:1]))
    assert merged.profile.gpus == OLD.gpus[:1]
    assert merged.warnings == ("GPU 1 (RTX 3090) is gone",)


def test_what_could_not_be_read_stays_as_it_was() -> None:
    new = Profile("ada", ProfileCpu(UNREAD, UNREAD, UNREAD), UNREAD, UNREAD, UNREAD, UNREAD, 2000.0)
    gaps = tuple(ProfileGap(part, "hung") for part in ("gpus", "memory", "cpu", "disks"))
    merged = merge_profile(OLD, new, gaps)
    assert merged.profile == replace(OLD, collected_at=2000.0)
    assert merged.warnings == ()
    # A lost card is no card that is gone.
    assert not isinstance(OLD.gpus, Unknown)
    partly = merge_profile(OLD, replace(OLD, gpus=OLD.gpus[1:]), (ProfileGap("gpus", "GPU is lost"),))
    assert partly.profile.gpus == OLD.gpus
    assert partly.warnings == ()


def test_keys_of_the_file_take_the_place_of_those_that_were_stored() -> None:
    assert not isinstance(OLD.gpus, Unknown)
    own = replace(OLD, gpus=(replace(OLD.gpus[0], keys={"note": "new"}),), keys={"tags": ["lab"]})
    found = with_keys_of(OLD, own)
    assert found.keys == {"tags": ["lab"]}
    assert not isinstance(found.gpus, Unknown)
    assert [gpu.keys for gpu in found.gpus] == [{"note": "new"}, {}]
    assert with_keys_of(OLD, replace(own, gpus=UNREAD)).gpus == OLD.gpus


def test_a_first_profile_has_what_the_machine_file_says_of_planning() -> None:
    document = {
        "tags": ["lab"], "cpu_roles": False, "note": "of the file",
        "gpus": [{"index": 0, "disabled": True, "name": "never"}, "odd", {"index": 7}, {"disabled": True}],
    }  # fmt: skip
    machine = Machine("ada", "gpu-host", "ada.lan", document=document)
    gpus = (ProfileGpu(0, "RTX 4090"), ProfileGpu(1, "RTX 3090"))
    found = with_machine_keys(Profile("ada", gpus=gpus), machine)
    assert found.keys == {"cpu_roles": False, "tags": ["lab"]}
    assert found.gpus == (ProfileGpu(0, "RTX 4090", keys={"disabled": True}), ProfileGpu(1, "RTX 3090"))
    assert merge_profile(None, found).profile is found
