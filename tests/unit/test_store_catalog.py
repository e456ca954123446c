"""The stored catalog: what goes in comes out, and anything odd is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fleettui.model.catalog import EMPTY_CATALOG, Catalog, CatalogEngine, CatalogModel
from fleettui.model.snapshot import FleetSnapshot
from fleettui.store.catalog import decode_catalog, encode_catalog, load_catalog
from fleettui.store.database import Store
from fleettui.store.snapshots import load_for_routing, load_snapshot, save_snapshot

CATALOG = Catalog(
    (
        CatalogModel(
            "llama3.1-8b", "llm", 6.5, (7, 0), ("ollama", "vllm"), 131072, True,
            (("ollama", ("llama3.1:8b", "llama3.1:8b-instruct-q4_K_M")), ("vllm", ("meta-llama/Llama-3.1",))),
            2, 8192,
        ),
        CatalogModel("xtts"),
    ),
    (CatalogEngine("pytorch", (7, 5), True), CatalogEngine("ollama")),
    "/srv/catalog/models.yaml",
)  # fmt: skip


def test_a_catalog_comes_back_as_it_was() -> None:
    assert repr(decode_catalog(encode_catalog(CATALOG))) == repr(CATALOG)
    assert decode_catalog(encode_catalog(EMPTY_CATALOG)) == EMPTY_CATALOG


@given(st.text(max_size=60) | st.none() | st.binary(max_size=20))
def test_anything_else_is_none(text: object) -> None:
    assert decode_catalog(text) == EMPTY_CATALOG


def test_another_version_or_half_a_text_is_none() -> None:
    text = encode_catalog(CATALOG)
    assert decode_catalog(text.replace("[", "[1", 1)) == EMPTY_CATALOG
    assert decode_catalog(text[:-1]) == EMPTY_CATALOG
    assert decode_catalog(text.replace(",true,", ",")) == EMPTY_CATALOG


def test_it_is_stored_with_the_fleet_and_only_when_it_changes(tmp_path: Path) -> None:
    fleet = FleetSnapshot(1, 100.0, 2.0, machines_dir=str(tmp_path / "machines"), catalog=CATALOG)
    with Store.open(str(tmp_path)) as store:
        save_snapshot(store, fleet, (), written_at=100.0)
        assert load_catalog(store, fleet.machines_dir) == CATALOG
        assert load_catalog(store, str(tmp_path / "other")) == EMPTY_CATALOG
        save_snapshot(store, replace(fleet, seq=2), (), written_at=102.0)
        rows = store.connection.execute("SELECT written_at FROM catalogs").fetchall()
        assert rows == [(100.0,)]
        for load in (load_snapshot, load_for_routing):
            stored = load(store, fleet.machines_dir)
            assert stored is not None
            assert stored.fleet.catalog == CATALOG
        save_snapshot(store, replace(fleet, catalog=EMPTY_CATALOG), (), written_at=104.0)
        assert load_catalog(store, fleet.machines_dir) == EMPTY_CATALOG


def test_a_state_file_of_an_older_version_has_none(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        store.connection.execute("DROP TABLE catalogs")
        store.connection.execute("PRAGMA user_version = 5")
    store = Store.open_readonly(str(tmp_path))
    assert store is not None
    with store:
        assert load_catalog(store, str(tmp_path)) == EMPTY_CATALOG
