"""Which copy and which file is meant by a name: digest, own name, aliases, adapters, the catalog."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import NOW, digest_of, make_copy, make_engine, make_fleet, make_installed, make_snapshot
from fleettui.decide.knowledge import RouteKnowledge
from fleettui.decide.lease_effect import shown_leases
from fleettui.decide.lease_terms import lease_on
from fleettui.decide.matching import Asked, Match, find_on_engine
from fleettui.decide.routing import decide_route
from fleettui.model.catalog import EMPTY_CATALOG, Catalog, CatalogModel, catalog_names, find_in_catalog
from fleettui.model.machine import EngineKind
from fleettui.model.readings import EngineReading, ModelTraits
from fleettui.model.route import RouteDecision, RouteQuery
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Unknown

HF = "meta-llama/Llama-3.1-8B-Instruct"
CATALOG = Catalog(
    (
        CatalogModel(
            "llama-8b",
            names=(
                ("ollama", ("llama3.1:8b", "llama3.1:8b-instruct-q4_K_M")),
                ("vllm", (HF,)),
                ("llamacpp", ("llama-3.1-8b-q4",)),
            ),
        ),
        CatalogModel(
            "qwen3:8b", names=(("ollama", ("qwen3:8b", "qwen3:8b-q8_0")), ("vllm", ("Qwen/Qwen3-8B",)))
        ),
        CatalogModel("nameless"),
    )
)  # fmt: skip


def find(engine: EngineReading, name: str, catalog: Catalog = CATALOG) -> Match | None:
    return find_on_engine(engine, Asked(name, catalog))


def found_name(kind: EngineKind, listed: list[str], asked: str, catalog: Catalog = CATALOG) -> str | None:
    """What a request has to call it on an engine that has these installed."""
    engine = make_engine(kind=kind, installed=[make_installed(name, engine=kind) for name in listed])
    match = find(engine, asked, catalog)
    return None if match is None else match.name


@pytest.mark.parametrize(
    ("kind", "listed", "asked", "name"),
    [
        # the engine's own name, by its own rules
        ("ollama", ["qwen3:8b", "llama3.1:8b"], "LLAMA3.1:8b", "llama3.1:8b"),
        ("ollama", ["llama3.2:latest"], "llama3.2", "llama3.2:latest"),
        ("ollama", ["llama3.2:1b"], "llama3.2", None),
        ("vllm", [HF], HF, HF),
        ("vllm", [HF], HF.lower(), None),
        ("llamacpp", ["x"], "x:latest", None),
        # the catalog's id means every name of it
        ("ollama", ["llama3.1:8b"], "llama-8b", "llama3.1:8b"),
        ("ollama", ["Llama3.1:8B-instruct-q4_K_M"], "llama-8b", "Llama3.1:8B-instruct-q4_K_M"),
        ("vllm", [HF], "llama-8b", HF),
        ("llamacpp", ["llama-3.1-8b-q4"], "llama-8b", "llama-3.1-8b-q4"),
        ("sglang", [HF], "llama-8b", None),
        # a name of one engine means the names of the others
        ("vllm", [HF], "llama3.1:8b", HF),
        ("vllm", [HF], "Llama3.1:8B", HF),
        ("ollama", ["llama3.1:8b-instruct-q4_K_M"], HF, "llama3.1:8b-instruct-q4_K_M"),
        ("llamacpp", ["llama-3.1-8b-q4"], HF, "llama-3.1-8b-q4"),
        ("sglang", [HF], HF, HF),
        # and on its own engine only itself: that is what the caller will send
        ("ollama", ["llama3.1:8b-instruct-q4_K_M"], "llama3.1:8b", None),
        ("ollama", ["llama3.1:8b"], "LLAMA3.1:8b-instruct-q4_K_M", None),
        # an id that is a name too means all of them, itself first
        ("ollama", ["qwen3:8b-q8_0"], "qwen3:8b", "qwen3:8b-q8_0"),
        ("ollama", ["qwen3:8b-q8_0", "qwen3:8b"], "qwen3:8b", "qwen3:8b"),
        # never by likeness
        ("ollama", ["llama3.1:8b"], "llama-8", None),
        ("vllm", [HF], "llama3.1", None),
        ("ollama", ["nameless:latest"], "nameless", "nameless:latest"),
    ],
)  # fmt: skip
def test_names(kind: EngineKind, listed: list[str], asked: str, name: str | None) -> None:
    assert found_name(kind, listed, asked) == name


def test_without_a_catalog_each_engine_knows_its_own_names_only() -> None:
    assert found_name("vllm", [HF], "llama3.1:8b", EMPTY_CATALOG) is None
    assert found_name("ollama", ["llama3.1:8b"], "llama3.1:8b", EMPTY_CATALOG) == "llama3.1:8b"


def with_names(
    kind: EngineKind, aliases: tuple[str, ...] = (), adapters: tuple[str, ...] = ()
) -> EngineReading:
    copy = make_copy("base", engine=kind, traits=ModelTraits(aliases, adapters))
    return make_engine(kind=kind, loaded=[copy], installed=[])


@pytest.mark.parametrize(
    ("engine", "asked", "name", "is_by_catalog"),
    [
        (with_names("llamacpp", aliases=("gpt", "other")), "other", "other", False),
        (with_names("vllm", adapters=("sql-lora",)), "sql-lora", "sql-lora", False),
        (with_names("vllm", adapters=("sql-lora",)), "base", "base", False),
        (with_names("llamacpp", aliases=("llama-3.1-8b-q4",)), "llama-8b", "llama-3.1-8b-q4", True),
        (with_names("llamacpp", aliases=("gpt",)), "gp", None, False),
    ],
)
def test_aliases_and_adapters_are_names_of_the_engine(
    engine: EngineReading, asked: str, name: str | None, is_by_catalog: bool
) -> None:
    match = find(engine, asked)
    if name is None:
        assert match is None
        return
    assert match is not None
    assert match.copy is engine.loaded[0]  # type: ignore[index]
    assert (match.name, match.is_by_catalog) == (name, is_by_catalog)


def test_the_own_name_beats_an_alias_of_another_model_and_the_catalog() -> None:
    other = make_copy("other", engine="vllm", traits=ModelTraits(("base",)))
    base = make_copy("base", engine="vllm")
    match = find(make_engine(kind="vllm", loaded=[other, base]), "base")
    assert match is not None
    assert match.copy is base
    hf = make_copy(HF, engine="vllm")
    own = make_copy("llama-8b", engine="vllm")
    match = find(make_engine(kind="vllm", loaded=[hf, own]), "llama-8b")
    assert match is not None
    assert (match.copy, match.is_by_catalog) == (own, False)


def test_the_digest_comes_first() -> None:
    """Tags that share weights share a runner, and `/api/ps` lists only the tag that loaded it."""
    shared = digest_of("weights")
    copy = make_copy("llama3.1:8b-instruct-q4_K_M", digest=shared)
    files = [make_installed("llama3.1:8b", digest=shared), make_installed(copy.name, digest=shared)]
    engine = make_engine(loaded=[make_copy("qwen3:8b"), copy], installed=files)
    for asked in ("llama3.1:8b", "llama-8b", HF):
        match = find(engine, asked)
        assert match is not None
        assert (match.copy, match.installed) == (copy, files[0]), asked
        assert match.name == "llama3.1:8b"


def test_of_the_catalog_s_names_a_resident_one_comes_first() -> None:
    copy = make_copy("llama3.1:8b-instruct-q4_K_M")
    files = [make_installed("llama3.1:8b"), make_installed(copy.name)]
    match = find(make_engine(loaded=[copy], installed=files), HF)
    assert match is not None
    assert (match.copy, match.installed, match.name) == (copy, files[1], copy.name)


def test_what_stops_is_not_resident_and_what_runs_in_a_cloud_comes_last() -> None:
    stopping = make_copy("llama3.1:8b", state="stopping")
    match = find(make_engine(loaded=[stopping]), "llama3.1:8b")
    assert match is not None
    assert match.copy is None
    cloud = make_installed("llama3.1:8b", remote_host="https://ollama.com:443")
    local = make_installed("llama3.1:8b-instruct-q4_K_M")
    match = find(make_engine(installed=[cloud, local]), HF)
    assert match is not None
    assert match.installed is local
    match = find(make_engine(installed=[cloud]), HF)
    assert match is not None
    assert match.installed is cloud


def test_thousands_of_names_are_looked_at_once() -> None:
    names = [f"family{number}:8b" for number in range(500)]
    engines = [make_engine(installed=[make_installed(name) for name in names]) for _ in range(3)]
    engines.append(make_engine(installed=[make_installed(name) for name in [*names, "LLAMA3.1:8b"]]))
    asked = Asked(HF, CATALOG)
    found = [find_on_engine(engine, asked) for engine in engines]
    assert found[:3] == [None, None, None]
    assert found[3] is not None
    assert found[3].name == "LLAMA3.1:8b"


@pytest.mark.parametrize(
    ("asked", "kind", "name"),
    [
        ("llama-8b", "ollama", "llama3.1:8b"), (HF, "ollama", "llama3.1:8b"), (HF, "vllm", HF),
        ("llama3.1:8b-instruct-q4_K_M", "ollama", "llama3.1:8b-instruct-q4_K_M"),
        ("llama-8b", "sglang", None), ("nameless", "ollama", "nameless"), ("unknown", "ollama", "unknown"),
    ],
)  # fmt: skip
def test_what_an_engine_that_lacks_it_would_be_asked_for(asked: str, kind: str, name: str | None) -> None:
    assert Asked(asked, CATALOG).name_on(kind) == name


def test_the_catalog_finds_ids_and_names() -> None:
    def id_of(name: str) -> str | None:
        model = find_in_catalog(CATALOG, name)
        return None if model is None else model.id

    assert [id_of(name) for name in ("llama-8b", HF, "LLAMA3.1:8B", HF.lower(), "llama")] == [
        "llama-8b", "llama-8b", "llama-8b", None, None,
    ]  # fmt: skip
    assert catalog_names(CATALOG)[:3] == ["llama-8b", "llama3.1:8b", "llama3.1:8b-instruct-q4_K_M"]


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("llama-8b", "llama-8b"), (HF, HF), ("LLAMA3.1:8B", "llama3.1:8b"), ("qwen3:8b", "qwen3:8b"),
        ("unknown", "unknown:latest"), ("nameless", "nameless"),
    ],
)  # fmt: skip
def test_how_it_is_spoken_of(asked: str, shown: str) -> None:
    assert Asked(asked, CATALOG).shown == shown


# -- and so in routing ----------------------------------------------------------------------------------


def route(asked: str, *machines: MachineSnapshot, **wishes: Any) -> RouteDecision:
    return decide_route(
        make_fleet(*machines), RouteQuery(asked, **wishes), NOW, RouteKnowledge(catalog=CATALOG)
    )


def on_vllm(name: str) -> MachineSnapshot:
    copy = make_copy(HF, gib=16.0, engine="vllm")
    return make_snapshot(name, engines=(make_engine(kind="vllm", port=8000, loaded=[copy]),))


def test_a_resident_copy_on_another_engine_beats_a_cold_file() -> None:
    cold = make_snapshot("ada", installed=[make_installed("llama3.1:8b", gib=4.6)])
    decision = route("llama3.1:8b", cold, on_vllm("bora"))
    assert [(item.machine, item.model, item.engine) for item in decision.candidates] == [
        ("bora", HF, "vllm"), ("ada", "llama3.1:8b", "ollama"),
    ]  # fmt: skip
    assert decision.candidates[0].reason.endswith(f", as {HF}")
    assert "llama3.1:8b" not in decision.candidates[1].reason


def test_a_name_of_the_catalog_is_known_though_nobody_has_it() -> None:
    decision = route("llama-8b", make_snapshot("ada", installed=[make_installed("qwen3:8b")]))
    assert (decision.exit_code, decision.nearest) == (1, ())


def test_the_nearest_names_are_looked_for_everywhere() -> None:
    snapshot = make_snapshot("ada", installed=[make_installed("llama3.1:70b")])
    decision = route("lama-8b", snapshot, on_vllm("bora"))
    assert decision.exit_code == 3
    assert decision.nearest[0] == "llama-8b"


def test_drift_is_told_of_each_tag_that_was_meant() -> None:
    one = make_snapshot("ada", installed=[make_installed("llama3.1:8b", digest="a" * 64)])
    two = make_snapshot("bora", installed=[make_installed("llama3.1:8b", digest="b" * 64)])
    other = make_snapshot("cleo", installed=[make_installed("llama3.1:8b-instruct-q4_K_M", digest="c" * 64)])
    warnings = [
        item.text for item in route("llama-8b", one, two, other).warnings if item.code == "digest_drift"
    ]
    assert warnings == ["llama3.1:8b differs between machines: aaaaaaaaaaaa on ada, bbbbbbbbbbbb on bora"]


@pytest.mark.parametrize("asked", ["llama-8b", "llama3.1:8b", HF, "sql-lora"])
def test_a_lease_ends_when_the_model_takes_a_request_by_whatever_name_it_was_asked(asked: str) -> None:
    copy = make_copy(HF, engine="vllm", digest=Unknown("not given"), traits=ModelTraits((), ("sql-lora",)))
    idle = make_engine(kind="vllm", port=8000, loaded=[copy], running=0, waiting=0)
    before = make_snapshot("bora", engines=(idle,))
    decision = route(asked, before)
    assert decision.chosen is not None
    lease = lease_on(decision.chosen, decision.canonical, lease_id="x", now=NOW - 5)
    after = make_snapshot("bora", engines=(replace(idle, running=1),))
    assert shown_leases([lease], make_fleet(before), make_fleet(before)) == ()
    assert shown_leases([lease], make_fleet(before), make_fleet(after)) == ("x",)
