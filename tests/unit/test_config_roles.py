"""roles.yaml: what it may say, every error at once with its line, what stays in use while it is broken."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fleettui.config.catalog_folder import CatalogFolder, load_catalog_files
from fleettui.config.catalog_roles_file import read_roles_file
from fleettui.config.schemas import roles_schema
from fleettui.model.placement import PlanRole
from fleettui.view.problems import problem_line

SHIPPED = Path(__file__).parents[2] / "catalog"
HERE = "c/roles.yaml"

FULL = """\
note: mine
roles:
  chat:
    needs: {engine: [vllm, pytorch, vllm], min_vram_gb: 20, min_cc: 8.9, max_cc: "8.10", gpus: 2}
    prefer: largest
    count: 2
    slots: 8
    priority: 1
    owner: mia
  embed:
    needs: {engine: pytorch, gpu: false, min_ram_gb: 4.5}
    count: 0
    share_with: chat
    cpu_fallback: true
  bare:
"""
ROLES = (
    PlanRole("chat", ("vllm", "pytorch"), 20, (8, 9), (8, 10), True, 0, 2, "largest", 2, 8, 1, None),
    PlanRole("embed", ("pytorch",), gpu=False, min_ram_gb=4.5, count=0, share_with="chat", cpu_fallback=True,
             position=1),
    PlanRole("bare", position=2),
)  # fmt: skip


def read_good(text: str) -> tuple[PlanRole, ...]:
    roles, problems = read_roles_file(text.encode(), HERE, ["pytorch"])
    assert problems == ()
    assert roles is not None
    return roles


def faults(text: str) -> list[str]:
    roles, problems = read_roles_file(text.encode(), HERE, ["pytorch"])
    assert roles is None
    return [problem_line(problem).removeprefix(f"{HERE}:") for problem in problems]


def test_every_key_is_read_and_what_is_left_out_has_its_default() -> None:
    assert read_good(FULL) == ROLES


def test_a_list_says_the_same() -> None:
    text = "roles:\n- {name: chat, count: 2}\n- {name: embed, share_with: chat}\n"
    assert read_good(text) == read_good("roles: {chat: {count: 2}, embed: {share_with: chat}}\n")
    assert [role.position for role in read_good(text)] == [0, 1]


@pytest.mark.parametrize("text", ["roles:", "roles: {}", "roles: []", "note: none yet"])
def test_no_roles_are_no_error(text: str) -> None:
    assert read_good(text) == ()


WRONG = """\
roles:
  a: {needs: {engine: vlm, min_cc: 9.0, max_cc: 8.9, min_vram_gb: -1, gpus: 0}, share_with: a}
  b: {share_with: c, prefer: biggest, count: -1, slots: 0}
  c: {share_with: b, cpu_fallback: "yes", priority: high}
  d: {share_with: chatt, count: 1.5, min_vram_gb: 3, need: {}}
  e: 7
  chat: {needs: {engine: [vllm, tgi], min_cc: new, gpu: 1, min_ram_gb: 4 GB}}
  a: {}
"""


def test_more_copies_than_can_be_planned() -> None:
    assert read_good("roles: {a: {count: 10000}}")[0].count == 10_000
    assert faults("roles: {a: {count: 9999999999}}") == [
        "1: roles.a.count: roles.a.count must be 10000 at most; write `count: 2`."
    ]


def test_every_error_at_once_with_line_key_and_what_to_do() -> None:
    known = "pytorch, ollama, vllm, llamacpp, llamaswap, lmstudio, sglang"
    assert [line.replace(f" {line.split()[1].rstrip(':')}", "", 1) for line in faults(WRONG)] == [
        "2:: roles.a.needs.min_vram_gb must be a number of GiB, 0 or more; write for example 16.",
        "2:: roles.a.needs.gpus must be a whole number from 1 on; write `gpus: 2`.",
        "2:: roles.a.needs.engine names the engine 'vlm', which is not known; write vllm, or add it under "
        "engines in models.yaml.",
        "2:: roles.a.needs.min_cc is 9.0, above max_cc 8.9: no card has both; correct one of the two.",
        "2:: roles.a.share_with names the role itself; name another role, or remove the key.",
        "3:: roles.b.prefer must be one of largest or smallest_fitting; write `prefer: largest`.",
        "3:: roles.b.count must be a whole number from 0 on; write `count: 2`.",
        "3:: roles.b.slots must be a whole number from 1 on; write `slots: 4`.",
        "3:: roles.b.share_with leads in a circle (b -> c -> b); remove one of these shares.",
        "4:: roles.c.priority must be a number without quotes or unit; write `priority: 10`.",
        "4:: roles.c.cpu_fallback must be true or false, not text; write `cpu_fallback: true`.",
        "5:: roles.d.count must be a whole number, not a number; write `count: 2`.",
        "5:: roles.d.min_vram_gb is read below needs; write `needs: {min_vram_gb: …}`.",
        "5:: roles.d.need is no key that is read; write needs if that is meant, else another word.",
        "5:: roles.d.share_with names the role 'chatt', which does not exist; write chat.",
        "6:: roles.e must be a map of keys; write `chat: {needs: {engine: vllm, min_vram_gb: 20}}`.",
        "7:: roles.chat.needs.min_cc must be a compute capability; write for example 8.9.",
        "7:: roles.chat.needs.gpu must be true or false, not a number; write `gpu: false`.",
        "7:: roles.chat.needs.min_ram_gb must be a number without quotes or unit; write `min_ram_gb: 16`.",
        f"7:: roles.chat.needs.engine[1] names the engine 'tgi', which is not known; write one of {known}, "
        "or add it under engines in models.yaml.",
        "8:: This key stands in line 2 already; remove one of the two.",
    ]


def test_names_in_a_list() -> None:
    text = "roles:\n  - {name: a}\n  - {name: a}\n  - {count: 2}\n  - {name: x, needs: [3]}\n  - b\n"
    assert faults(text) == [
        "3: roles[1]: roles[1] has the name a of another role (line 2); give it one of its own.",
        "4: roles[2].name: roles[2].name is missing; add `name: chat`.",
        "5: roles[3].needs: roles[3].needs must be a map of keys, not a list; "
        "write `needs: {engine: vllm, min_vram_gb: 20}`.",
        "6: roles[4]: roles[4] must be a map of keys; "
        "write `chat: {needs: {engine: vllm, min_vram_gb: 20}}`.",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", " The file is empty; write its keys or delete it."),
        ("- a", "1: Roles stand in a map of keys; begin with the line `roles:`."),
        ("roles: 3", "1: roles: roles must be a map of roles or a list of them; "
         "write `roles: {chat: {needs: {engine: vllm}}}`."),
        ("role: {}", "1: role: role is no key that is read; "
         "write roles if that is meant, else another word."),
    ],
)  # fmt: skip
def test_what_is_no_list_of_roles(text: str, said: str) -> None:
    assert [line.removeprefix(f"{HERE}:") for line in faults(text)] == [said]


KEYS = st.sampled_from([
    "roles", "name", "needs", "engine", "min_vram_gb", "min_cc", "max_cc", "gpu", "gpus", "prefer", "count",
    "slots", "priority", "share_with", "cpu_fallback", "a", "b",
])  # fmt: skip
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 9)
    | st.floats()
    | st.sampled_from(["", "a", "b", "vllm", "8.10"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_any_document_is_roles_or_told(document: dict[str, object]) -> None:
    for whole in (document, {"roles": document}, {"roles": [document]}):
        roles, problems = read_roles_file(yaml.safe_dump(whole).encode(), HERE)
        assert (roles is None) == bool(problems)
        assert all(problem.message.endswith(".") for problem in problems)


def test_the_shipped_roles_are_sound() -> None:
    told = load_catalog_files(str(SHIPPED))
    assert told.problems == ()
    names = [role.name for role in told.catalog.roles]
    assert names == ["llm-main", "llm-small", "embed", "rerank", "tts", "gpu-flex"]
    assert told.catalog.roles_file == str(SHIPPED / "roles.yaml")


def write(path: Path, text: str) -> None:
    """As an editor does it: a new file in place of the old one, so that its stamp differs."""
    new = path.with_name("new")
    new.write_text(text)
    new.replace(path)


def test_roles_are_followed_and_a_broken_file_keeps_the_last_good_ones(tmp_path: Path) -> None:
    folder = CatalogFolder(str(tmp_path))
    write(tmp_path / "roles.yaml", "roles: {tts: {needs: {engine: tortoise}}}\n")
    (problem,) = folder.refresh().problems
    assert problem.is_of_catalog
    assert problem.message.startswith("roles.tts.needs.engine names the engine 'tortoise'")
    # The engine becomes known by the other file; that one's own errors hide it from nobody.
    write(tmp_path / "models.yaml", "engines: {tortoise: {min_cc: x}}\n")
    (problem,) = folder.refresh().problems
    assert problem.key == "engines.tortoise.min_cc"
    first = folder.refresh().catalog
    assert [role.name for role in first.roles] == ["tts"]
    write(tmp_path / "roles.yaml", "roles: {tts: {count: two}}\n")
    broken = folder.refresh()
    assert broken.catalog is first
    assert broken.problems[1].message.endswith(
        "write `count: 2`. The last good roles stay in use until then."
    )
    write(tmp_path / "roles.yaml", "roles: {tts: {count: 2}}\n")
    write(tmp_path / "models.yaml", "models: {a: {}}\n")
    told = folder.refresh()
    assert told.problems == ()
    assert (told.catalog.roles[0].count, told.catalog.models[0].id) == (2, "a")
    assert folder.refresh() is told
    (tmp_path / "roles.yaml").unlink()
    assert (folder.refresh().catalog.roles, folder.refresh().catalog.roles_file) == ((), "")


def test_the_schema_has_both_forms() -> None:
    schema = roles_schema()
    as_map, as_list, _ = schema["properties"]["roles"]["anyOf"]
    assert (as_map["type"], as_list["type"]) == ("object", "array")
    assert schema["$defs"]["ListedRolePart"]["required"] == ["name"]
    assert schema["$defs"]["NeedsPart"]["properties"]["gpus"]["anyOf"][0] == {"minimum": 1, "type": "integer"}
