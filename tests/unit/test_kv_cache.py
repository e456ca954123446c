"""KV cache and recurrent state, byte for byte as llama.cpp's allocator logs them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleettui.decide.kv_cache import BYTES_OF_32, F16, CacheTypes, KvCache, kv_cache, pad_cells
from fleettui.decide.layers import find_layers
from fleettui.model.model_shape import NULL_LIST, AttentionShape, ModelShape, StateShape
from fleettui.model.unknown import Unknown

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
Q8, Q4 = CacheTypes("q8_0", "q8_0"), CacheTypes("q4_0", "q4_0")
MIXED = CacheTypes("q8_0", "q4_0")


def make_shape(
    architecture: str = "llama", layers: int = 32, kv: Any = 8, length: Any = 128, /, **more: Any
) -> ModelShape:
    """`kv` heads of `length` in each layer; what names a field of attention or state goes there."""
    names = {f.name for f in dataclasses.fields(AttentionShape)}
    state_names = {f.name for f in dataclasses.fields(StateShape)}
    attention: dict[str, Any] = {"heads": (32,), "kv_heads": (kv,) if isinstance(kv, int) else kv}
    if length is not None:
        attention |= {"key_length": length, "value_length": length}
    state = {key: more.pop(key) for key in list(more) if key in state_names}
    attention |= {key: more.pop(key) for key in list(more) if key in names}
    return ModelShape(
        architecture=architecture,
        layers=layers,
        attention=AttentionShape(**attention),
        state=StateShape(**state),
        **{"embedding_length": 4096, **more},
    )


def cache_of(shape: ModelShape, context: int, parallel: int = 1, types: CacheTypes = F16) -> KvCache:
    found = kv_cache(shape, context, parallel, types)
    assert isinstance(found, KvCache), found
    return found


QWEN3_CODER_30B = make_shape("qwen3moe", 48, 4, 128, embedding_length=2048)
QWEN25_32B = make_shape("qwen2", 64, 8, None, heads=(40,), embedding_length=5120)
GEMMA3 = make_shape("gemma3", 48, 8, 256, window=1024)
GEMMA4 = make_shape(
    "gemma4", 42, 2, 512, key_length_swa=256, value_length_swa=256, window=512, shared_kv_layers=18,
    window_pattern=tuple(int(at % 6 < 5) for at in range(42)),
)  # fmt: skip
QWEN35 = make_shape(
    "qwen35", 65, 4, 256, full_attention_interval=4, nextn_layers=1,
    conv_kernel=4, inner_size=6144, state_size=128, group_count=16,
)  # fmt: skip


@pytest.mark.parametrize(
    ("tokens", "cells"), [(1, 256), (256, 256), (257, 512), (4096, 4096), (5000, 5120), (32768, 32768)]
)
def test_cells_come_in_blocks_of_256(tokens: int, cells: int) -> None:
    assert pad_cells(tokens) == cells
    assert cache_of(make_shape(), tokens).cells == cells
    assert cache_of(make_shape(), tokens, 4).cells == 4 * cells, "each sequence has its own"


def test_one_token_of_qwen3_coder_takes_96_kib() -> None:
    assert cache_of(QWEN3_CODER_30B, 1024).cache_bytes == 1024 * 96 * KIB
    assert cache_of(QWEN3_CODER_30B, 1024, 4).cache_bytes == 1024 * 384 * KIB, "0.39 MB with parallel 4"


def test_a_published_32b_at_16384_has_4_gib_for_each_sequence() -> None:
    assert cache_of(QWEN25_32B, 16384).cache_bytes == 4 * GIB
    two = cache_of(QWEN25_32B, 16384, 2).cache_bytes
    assert (18.5 * GIB + two) / GIB == pytest.approx(26.48, abs=0.03)


@pytest.mark.parametrize(
    ("types", "of_f16"),
    [
        (F16, 64),
        (Q8, 34),
        (Q4, 18),
        (MIXED, 26),
        (CacheTypes("f16", "q8_0"), 49),
        (CacheTypes("f32", "f32"), 128),
    ],
)
@pytest.mark.parametrize("parallel", [1, 4])
@pytest.mark.parametrize("context", [4096, 5000])
def test_types_of_the_cache(types: CacheTypes, of_f16: int, parallel: int, context: int) -> None:
    cells = parallel * pad_cells(context)
    assert cache_of(make_shape(), context, parallel, types).cache_bytes == 32 * cells * 8 * 256 * of_f16 // 32


def test_quantised_is_less_than_f16() -> None:
    assert [name for name in BYTES_OF_32 if CacheTypes(name).is_quantised] == [
        "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl",
    ]  # fmt: skip
    assert CacheTypes("f16", "q8_0").is_quantised


@pytest.mark.parametrize(
    ("shape", "context", "types", "mib"),
    [
        (QWEN35, 131072, Q8, 4352),
        (QWEN35, 8192, Q8, 272),
        (GEMMA3, 4096, Q8, 391),
    ],
)
def test_figures_that_the_allocator_logged(
    shape: ModelShape, context: int, types: CacheTypes, mib: int
) -> None:
    assert cache_of(shape, context, 1, types).cache_bytes == mib * MIB


@pytest.mark.parametrize(
    ("context", "parallel", "window", "cells"),
    [(4096, 1, 512, 1024), (4096, 4, 512, 4096), (300, 1, 512, 512), (8192, 1, 1024, 1536),
     (8192, 1, 1000, 1536), (8192, 1, 128, 768), (600, 2, 512, 1536)],
)  # fmt: skip
def test_a_window_takes_its_tokens_and_a_batch(context: int, parallel: int, window: int, cells: int) -> None:
    cache = cache_of(make_shape("gemma3", 6, 1, 64, window=window), context, parallel)
    assert cache.window_cells == cells
    assert cache.cache_bytes == (5 * cells + cache.cells) * 256


def kinds_of(shape: ModelShape) -> str:
    """`w` for a layer with a window, `F` for a full one, `-` for one without cache."""
    layers = find_layers(shape)
    assert not isinstance(layers, Unknown), layers
    return "".join({"window": "w", "full": "F", "none": "-"}[kind] for kind in layers.kinds)


@pytest.mark.parametrize(
    ("shape", "kinds"),
    [
        (make_shape("llama", 4), "FFFF"),
        (make_shape("gemma3", 8, window=512), "wwwwwFww"),
        (make_shape("gpt-oss", 4, window=128), "wFwF"),
        (make_shape("gptoss", 4, window=128), "wFwF"),
        (make_shape("gemma2", 4), "wFwF"),
        (make_shape("gemma3n", 6, window=512), "wwwwFw"),
        (make_shape("cohere2", 5, window=4096), "wwwFw"),
        (make_shape("smallthinker", 5, window=1), "FwwwF"),
        (make_shape("smallthinker", 5), "FFFFF"),
        (make_shape("llama4", 4, window=0), "FFFF"),
        (make_shape("llama4", 4), "wwwF"),
        (make_shape("phi3", 4, window=2047), "FFFF"),
        (make_shape("exaone4", 4, window=4096), "FFFF"),
        (make_shape("x", 4, window=512, window_pattern=(3,)), "wwFw"),
        (make_shape("x", 4, window=512, window_pattern=(0,)), "wwww"),
        (make_shape("x", 4, window=512, window_pattern=(1,)), "FFFF"),
        (make_shape("gemma3", 4, window=512, window_pattern=(1, 0, 0, 1)), "wFFw"),
        (make_shape("gemma3", 8, window=512, shared_kv_layers=2), "wwwwwF--"),
        (make_shape("llama", 4, shared_kv_layers=9), "----"),
        (make_shape("qwen35", 9, full_attention_interval=4, nextn_layers=1), "---F---F"),
        (make_shape("jamba", 4, (0, 8, 0, 0)), "-F--"),
        (make_shape("x", 4, recurrent_layers=(1, 0, 1, 1)), "-F--"),
        (make_shape("bert", 3), "---"),
        (make_shape("nomic-bert-moe", 3), "---"),
        (make_shape("x", 3, is_causal=False), "---"),
        (make_shape("qwen3", 3, is_causal=True), "FFF"),
    ],
)  # fmt: skip
def test_what_each_layer_keeps(shape: ModelShape, kinds: str) -> None:
    assert kinds_of(shape) == kinds


def test_gemma4_e4b() -> None:
    """24 of 42 layers own a cache, 4 of them all of the context; heads differ in size."""
    assert kinds_of(GEMMA4) == "wwwwwF" * 4 + "-" * 18
    cache = cache_of(GEMMA4, 8192)
    assert cache.cache_bytes == (4 * 8192 * 2 * 1024 + 20 * 1024 * 2 * 512) * 2


def test_a_window_in_layers_that_are_not_told_counts_in_full() -> None:
    for pattern in ({}, {"window_pattern": NULL_LIST}):
        cache = cache_of(make_shape("gemma4", 42, 2, 512, window=512, shared_kv_layers=18, **pattern), 8192)
        assert cache.is_upper_bound
        assert cache.cache_bytes == 24 * 8192 * 2 * 1024 * 2
    assert not cache_of(GEMMA4, 8192).is_upper_bound


def test_the_state_of_recurrent_layers_does_not_grow() -> None:
    one = (3 * (6144 + 2 * 16 * 128) + 128 * 6144) * 4
    for context in (1, 4096, 262144):
        assert cache_of(QWEN35, context).state_bytes == 48 * one
        assert cache_of(QWEN35, context, 4).state_bytes == 4 * 48 * one


@pytest.mark.parametrize(
    ("shape", "state"),
    [
        (make_shape("mamba2", 2, 0, None, conv_kernel=4, inner_size=100, state_size=16, group_count=1),
         2 * (3 * 132 + 1600) * 4),
        (make_shape("falcon-h1", 2, 2, 64, conv_kernel=4, inner_size=100, state_size=16, group_count=1),
         2 * (3 * 132 + 1600) * 4),
        (make_shape("nemotron_h", 4, (0, 0, 8, 0), 64, conv_kernel=4, inner_size=100, state_size=16,
                    group_count=1, feed_forward=(0, 512, 0, 0)), 2 * (3 * 132 + 1600) * 4),
        (make_shape("lfm2", 4, (0, 8, 0, 0), 64, short_conv=3), 3 * 2 * 4096 * 4),
        (make_shape("llama", 4), 0),
    ],
)  # fmt: skip
def test_recurrent_state(shape: ModelShape, state: int) -> None:
    assert cache_of(shape, 1024).state_bytes == state


def test_latent_attention_keeps_one_vector() -> None:
    shape = make_shape(
        "deepseek2", 61, 1, None, key_length=576, value_length=512, key_length_mla=192, kv_lora_rank=512,
        rope_dimensions=64,
    )  # fmt: skip
    assert cache_of(shape, 1024).cache_bytes == 61 * 1024 * 576 * 2
    old = make_shape(
        "deepseek2", 27, 16, None, key_length=192, value_length=128, kv_lora_rank=512, rope_dimensions=64
    )
    assert cache_of(old, 1024).cache_bytes == 27 * 1024 * 16 * 320 * 2, "files from before keep all heads"


def test_encoders_have_no_cache() -> None:
    assert cache_of(make_shape("bert", 12), 8192, 4) == KvCache(0)


def test_heads_differ_by_layer() -> None:
    assert (
        cache_of(make_shape("openelm", 4, (2, 4, 4), 64), 256).cache_bytes == 256 * (2 + 4 + 4 + 4) * 128 * 2
    )


@pytest.mark.parametrize(
    "shape",
    [
        ModelShape(),
        make_shape("llama", 0),
        make_shape("nemotron_h", 4, NULL_LIST),
        make_shape("x", 4, recurrent_layers=NULL_LIST),
        make_shape("rwkv7", 4),
        make_shape("llama", 4, 8, None, heads=NULL_LIST),
        make_shape("x", 4, (0, 8), inner_size=100),
        dataclasses.replace(make_shape(), attention=AttentionShape()),
    ],
)
def test_what_is_missing_makes_it_unknown(shape: ModelShape) -> None:
    assert isinstance(kv_cache(shape, 4096), Unknown)


SHAPES = st.builds(
    make_shape,
    st.sampled_from(
        ["llama", "gemma3", "gpt-oss", "gemma4", "qwen35", "bert", "llama4", "smallthinker", "exaone4"]
    ),
    st.integers(0, 90),
    st.integers(0, 16) | st.lists(st.integers(0, 16), min_size=1, max_size=100).map(tuple),
    st.none() | st.integers(0, 600),
    window=st.integers(0, 5000),
    shared_kv_layers=st.integers(0, 100),
    nextn_layers=st.integers(0, 100),
    full_attention_interval=st.integers(0, 9),
    inner_size=st.integers(0, 9000),
    state_size=st.integers(0, 256),
    conv_kernel=st.integers(0, 9),
    heads=st.lists(st.integers(0, 64), min_size=1, max_size=9).map(tuple),
    key_length_swa=st.integers(0, 600),
)
TYPES = st.builds(CacheTypes, st.sampled_from(list(BYTES_OF_32)), st.sampled_from(list(BYTES_OF_32)))


@given(SHAPES, st.integers(-5, 1 << 20), st.integers(0, 1 << 20), st.integers(-1, 8), TYPES)
def test_never_negative_never_less_for_more(
    shape: ModelShape, context: int, more: int, parallel: int, types: CacheTypes
) -> None:
    small, large = (
        kv_cache(shape, context, parallel, types),
        kv_cache(shape, context + more, parallel + 1, types),
    )
    assert isinstance(small, Unknown) == isinstance(large, Unknown)
    if isinstance(small, Unknown) or isinstance(large, Unknown):
        return
    assert 0 <= small.cache_bytes <= large.cache_bytes
    assert 0 <= small.state_bytes <= large.state_bytes
    wide = kv_cache(shape, context, parallel, CacheTypes("f32", "f32"))
    assert isinstance(wide, KvCache)
    assert small.cache_bytes <= wide.cache_bytes
