"""Shapes of weights and measured loads in the state database."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fleettui.decide.kv_cache import CacheTypes
from fleettui.decide.model_need import SeenCopy
from fleettui.model.model_shape import NULL_LIST, AttentionShape, ModelShape, StateShape, TensorSums
from fleettui.model.unknown import Unknown
from fleettui.store.database import Store
from fleettui.store.measured_needs import load_measured, record_measured_need
from fleettui.store.model_shapes import SHAPE_TEXT, load_shapes, save_shape

SHAPE = ModelShape(
    architecture="gemma3",
    layers=62,
    embedding_length=5376,
    max_context=131072,
    vocabulary=262208,
    feed_forward=(1, 2, 3),
    attention=AttentionShape((32,), (16,), 128, 128, window=1024, window_pattern=NULL_LIST, is_causal=False),
    state=StateShape(conv_kernel=4),
    tensors=TensorSums(17_396_936_192, 1_184_374_784, 0, 858_000_000, False, 1247),
    has_projector=True,
    capabilities=("completion", "vision"),
)


def test_a_shape_comes_back_as_it_was() -> None:
    assert SHAPE_TEXT.decode(SHAPE_TEXT.encode(SHAPE), ModelShape) == SHAPE
    assert SHAPE_TEXT.decode(SHAPE_TEXT.encode(ModelShape()), ModelShape) == ModelShape()


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "{}", "[1,2]", "\x00", None, b"[]", 7,
        json.dumps([0, *json.loads(SHAPE_TEXT.encode(SHAPE))[1:]]),
        json.dumps([*json.loads(SHAPE_TEXT.encode(SHAPE))[:-1], {"0": [1]}]),
        json.dumps([*json.loads(SHAPE_TEXT.encode(SHAPE))[:-1], {"9": [1]}]),
        json.dumps([*json.loads(SHAPE_TEXT.encode(SHAPE))[:-1], {"": "a", "0": []}]),
        "[" * 100_000,
    ],
)  # fmt: skip
def test_anything_else_is_no_shape(text: object) -> None:
    assert SHAPE_TEXT.decode(text, ModelShape) is None


def test_shapes_are_found_by_digest(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        save_shape(store, "aa", SHAPE, 1000.0)
        save_shape(store, "bb", ModelShape("llama"), 1000.0)
        assert load_shapes(store, ["aa", "cc", "aa"]) == {"aa": SHAPE}
        assert load_shapes(store, []) == {}
        assert set(load_shapes(store, [*(f"{n}" for n in range(1200)), "bb"])) == {"bb"}
        save_shape(store, "aa", ModelShape("llama"), 2000.0)
        assert load_shapes(store, ["aa"]) == {"aa": ModelShape("llama")}
        store.connection.execute("UPDATE model_shapes SET payload = 'x' WHERE digest = 'aa'")
        assert load_shapes(store, ["aa", "bb"]) == {"bb": ModelShape("llama")}


def test_a_file_of_an_older_version_knows_nothing(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        store.connection.execute("DROP TABLE model_shapes")
        store.connection.execute("DROP TABLE measured_needs")
        store.connection.execute("PRAGMA user_version=5")
    reader = Store.open_readonly(str(tmp_path))
    assert reader is not None
    with reader:
        assert load_shapes(reader, ["aa"]) == {}
        assert load_measured(reader, "/m", ["aa"]) == {}


def test_measured_loads_are_kept_for_each_fleet(tmp_path: Path) -> None:
    first = SeenCopy(20 << 30, 8192, 1, where="ada")
    longer = SeenCopy(24 << 30, 32768, None, CacheTypes("q8_0", "q8_0"), 2, "bora")
    with Store.open(str(tmp_path)) as store:
        record_measured_need(store, "/one", "aa", first, 100.0)
        record_measured_need(store, "/one", "aa", longer, 200.0)
        record_measured_need(store, "/two", "aa", first, 300.0)
        assert load_measured(store, "/one", ["aa", "bb"]) == {"aa": (longer, first)}
        again = SeenCopy(21 << 30, 8192, 4, where="ada")
        record_measured_need(store, "/one", "aa", again, 400.0)
        assert load_measured(store, "/one", ["aa"]) == {"aa": (again, longer)}
        store.connection.execute("UPDATE measured_needs SET cache_types = 'odd' WHERE machine = 'ada'")
        assert load_measured(store, "/one", ["aa"]) == {"aa": (longer,)}


def test_unknown_stays_unknown() -> None:
    shape = SHAPE_TEXT.decode(
        SHAPE_TEXT.encode(ModelShape(tensors=Unknown("a tensor of a type that is not known"))), ModelShape
    )
    assert shape is not None
    assert shape.tensors == Unknown("a tensor of a type that is not known")
