"""What a model takes, by the best basis known, and what Ollama predicts instead."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleettui.decide.kv_cache import CacheTypes
from fleettui.decide.model_need import (
    CUDA_CONTEXT_BYTES,
    ContextUse,
    ModelFacts,
    ModelNeed,
    SeenCopy,
    adjust_use,
    find_need,
    per_gpu_bytes,
)
from fleettui.decide.ollama_forecast import (
    choose_batch,
    default_context,
    forecast,
    predict_kv_bytes,
)
from fleettui.model.model_shape import NULL_LIST, AttentionShape, ModelShape, TensorSums
from fleettui.model.unknown import Unknown

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
Q8 = CacheTypes("q8_0", "q8_0")


def make_shape(**changes: Any) -> ModelShape:
    """qwen3-coder:30b: 96 KiB of cache for each token."""
    shape = ModelShape(
        architecture="qwen3moe",
        layers=48,
        embedding_length=2048,
        max_context=262144,
        vocabulary=151936,
        attention=AttentionShape(heads=(32,), kv_heads=(4,), key_length=128, value_length=128),
        tensors=TensorSums(18 * GIB, GIB // 4, has_output=True, count=579),
        capabilities=("completion", "tools"),
    )
    return dataclasses.replace(shape, **changes)


CODER = ModelFacts(make_shape(), 18 * GIB)
USE = ContextUse(32768)
CACHE = 3 * GIB
"""Of 32768 tokens."""


def need_of(facts: ModelFacts, use: ContextUse = USE) -> ModelNeed:
    need = find_need(facts, use)
    assert isinstance(need, ModelNeed), need
    return need


def test_tensors_and_cache() -> None:
    need = need_of(CODER)
    assert (need.basis, need.kv_bytes) == ("tensors", CACHE)
    assert need.shared_bytes == 18 * GIB - GIB // 4 + CACHE, "the embedding stays in main memory"
    buffer = 4 * 151936 * 512 + 2 * 32768 * 512
    assert need.per_gpu_bytes == buffer + 512 * MIB
    assert need.total_bytes(3) == need.shared_bytes + 3 * need.per_gpu_bytes
    assert need.text == ("weights 17.8 + cache 3.0 GiB (ctx 32768, f16) + buffer 0.3 + CUDA 0.5 per GPU, ±")
    assert not need.is_upper_bound


def test_without_tensors_the_file_stands_for_them() -> None:
    need = need_of(ModelFacts(make_shape(tensors=Unknown()), 18 * GIB))
    assert need.basis == "tensors"
    assert need.shared_bytes == 18 * GIB + CACHE
    assert need.text.startswith("file 18.0 + cache 3.0 GiB")
    assert need.is_upper_bound


MEASURED = SeenCopy(22 * GIB, 32768, 1)
SHORTER = SeenCopy(20 * GIB, 8192, 1, where="bora")


@pytest.mark.parametrize(
    ("facts", "basis"),
    [
        (
            dataclasses.replace(CODER, measured=(MEASURED,), elsewhere=(SHORTER,), catalog_bytes=30 * GIB),
            "measured",
        ),
        (dataclasses.replace(CODER, elsewhere=(SHORTER,), catalog_bytes=30 * GIB), "other machine"),
        (dataclasses.replace(CODER, catalog_bytes=30 * GIB), "tensors"),
        (ModelFacts(Unknown(), 18 * GIB, catalog_bytes=30 * GIB), "catalog"),
        (ModelFacts(make_shape(layers=Unknown()), 18 * GIB), "file size"),
        (ModelFacts(Unknown(), 18 * GIB), "file size"),
        (ModelFacts(Unknown(), 18 * GIB, measured=(SHORTER,)), "file size"),
        (ModelFacts(Unknown(), 18 * GIB, (SHORTER,), (MEASURED,)), "other machine"),
        (ModelFacts(Unknown(), 18 * GIB, (MEASURED,)), "measured"),
    ],
)
def test_order_of_trust(facts: ModelFacts, basis: str) -> None:
    assert need_of(facts).basis == basis


@pytest.mark.parametrize(
    "facts", [ModelFacts(), ModelFacts(make_shape(tensors=Unknown())), ModelFacts(Unknown(), 0)]
)
def test_nothing_known_is_unknown(facts: ModelFacts) -> None:
    assert isinstance(find_need(facts, USE), Unknown)


def test_what_was_measured_comes_back_and_scales_with_the_cache() -> None:
    facts = dataclasses.replace(CODER, measured=(MEASURED,))
    assert need_of(facts).total_bytes() == 22 * GIB
    assert "22.0 GiB measured at ctx 32768, f16" in need_of(facts).text
    longer = need_of(facts, ContextUse(65536))
    assert longer.shared_bytes - need_of(facts).shared_bytes == 3 * GIB
    assert "cache 3.0 -> 6.0 GiB for ctx 65536, f16" in longer.text
    halved = need_of(facts, ContextUse(32768, types=Q8))
    assert need_of(facts).shared_bytes - halved.shared_bytes == 3 * GIB * 30 // 64


def test_two_cards_carry_two_buffers() -> None:
    facts = dataclasses.replace(CODER, measured=(dataclasses.replace(MEASURED, gpus=2),))
    assert need_of(facts).total_bytes(2) == 22 * GIB
    assert need_of(facts).total_bytes(1) < 22 * GIB


def test_another_machine_whose_parallel_is_not_known() -> None:
    facts = dataclasses.replace(CODER, elsewhere=(SeenCopy(34 * GIB, 32768, None, where="bora"),))
    need = need_of(facts, ContextUse(32768, 4))
    assert need.total_bytes() == 34 * GIB + 512 * MIB, "the engine does not count the CUDA context"
    assert need.text == ("34.0 GiB seen on bora at ctx 32768 x 4, f16 + CUDA 0.5 per GPU, parallel assumed")


def test_without_a_formula_a_longer_context_counts_for_a_shorter_one_only() -> None:
    facts = ModelFacts(Unknown(), GIB, (SeenCopy(5 * GIB, 8192, 1), SeenCopy(9 * GIB, 32768, 1)))
    assert [need_of(facts, ContextUse(c)).total_bytes() for c in (4096, 8192, 16384, 32768)] == [
        5 * GIB, 5 * GIB, 9 * GIB, 9 * GIB,
    ]  # fmt: skip
    assert need_of(facts, ContextUse(4096)).is_upper_bound
    assert not need_of(facts, ContextUse(8192)).is_upper_bound
    beyond = need_of(facts, ContextUse(65536))
    assert (beyond.basis, beyond.total_bytes()) == ("file size", 9 * GIB)
    assert "no less than was seen" in beyond.text


def test_the_catalog_and_the_file_say_one_figure() -> None:
    assert need_of(ModelFacts(catalog_bytes=30 * GIB)).total_bytes() == 30 * GIB
    need = need_of(ModelFacts(file_bytes=10 * GIB))
    assert need.shared_bytes == 12 * GIB
    assert need.text == "file 10.0 GiB x 1.2 (assumed)"


def test_a_projector_of_its_own_adds_its_tensors() -> None:
    with_it = ModelFacts(make_shape(has_projector=True, projector_parameters=400_000_000), 18 * GIB)
    assert need_of(with_it).shared_bytes - need_of(CODER).shared_bytes == 800_000_000 + 256 * MIB
    not_told = ModelFacts(make_shape(has_projector=True), 18 * GIB)
    assert need_of(not_told).shared_bytes - need_of(CODER).shared_bytes == GIB + 256 * MIB


def test_an_encoder_keeps_its_embedding_in_main_memory() -> None:
    tied = TensorSums(2 * GIB, GIB, has_output=False, count=200)
    encoder = make_shape(architecture="bert", attention=AttentionShape(), tensors=tied)
    assert need_of(ModelFacts(encoder)).shared_bytes == GIB
    assert need_of(ModelFacts(make_shape(tensors=tied))).shared_bytes == 2 * GIB + CACHE, "tied to the output"


@pytest.mark.parametrize(
    ("changes", "use", "context", "parallel"),
    [
        ({}, ContextUse(32768, 4), 32768, 4),
        ({"max_context": 8192}, ContextUse(32768, 4), 8192, 4),
        ({"architecture": "qwen35"}, ContextUse(4096, 4), 4096, 1),
        ({"architecture": "bert", "capabilities": ("embedding",)}, ContextUse(512, 4), 512, 1),
        ({"capabilities": ("embedding",)}, ContextUse(4096, 4), 4096, 1),
        ({"capabilities": ("embedding", "completion")}, ContextUse(4096, 4), 4096, 4),
        ({}, ContextUse(0, 0), 1, 1),
    ],
)
def test_the_use_as_ollama_carries_it_out(
    changes: dict[str, Any], use: ContextUse, context: int, parallel: int
) -> None:
    adjusted = adjust_use(ModelFacts(make_shape(**changes)), use)
    assert (adjusted.context, adjusted.parallel) == (context, parallel)


def test_buffers() -> None:
    plain = per_gpu_bytes(make_shape(), USE) - CUDA_CONTEXT_BYTES
    assert 0.2 * GIB < plain < 0.6 * GIB
    encoder = make_shape(architecture="bert", attention=AttentionShape())
    assert per_gpu_bytes(encoder, USE) - CUDA_CONTEXT_BYTES == 128 * MIB
    quantised = per_gpu_bytes(make_shape(), dataclasses.replace(USE, types=Q8)) - CUDA_CONTEXT_BYTES
    assert quantised - plain == 32768 * 4 * 256 * 2, "one layer is unpacked to f16"
    assert per_gpu_bytes(Unknown(), USE) == CUDA_CONTEXT_BYTES


def test_a_buffer_without_flash_attention_as_it_was_reported() -> None:
    """A 70B model at 16384 on four cards: 2.4 GiB each."""
    llama70b = make_shape(vocabulary=128256, layers=80, attention=AttentionShape(heads=(64,), kv_heads=(8,)))
    use = ContextUse(16384, has_flash_attention=False)
    assert (per_gpu_bytes(llama70b, use) - CUDA_CONTEXT_BYTES) / GIB == pytest.approx(2.4, rel=0.06)


# -- what Ollama predicts -----------------------------------------------------------------------------


def test_its_cache_is_half_of_the_real_one_for_qwen3_coder() -> None:
    assert predict_kv_bytes(CODER, USE) == 32768 * 48 * KIB == CACHE // 2
    assert predict_kv_bytes(CODER, ContextUse(32768, 4, Q8)) == 4 * 32768 * 48 * KIB, "always f16"


@pytest.mark.parametrize(
    ("attention", "layer_bytes"),
    [
        (AttentionShape(heads=(32,), kv_heads=(4, 8, 2)), 2 * 64),
        (AttentionShape(heads=(16, 32), kv_heads=(0, 8)), 1 * 64),
        (AttentionShape(heads=(32,)), 1 * 64),
    ],
)
def test_it_takes_the_fewest_kv_heads_and_the_most_heads(attention: AttentionShape, layer_bytes: int) -> None:
    facts = ModelFacts(make_shape(attention=attention))
    assert predict_kv_bytes(facts, ContextUse(1000)) == 4 * 48 * layer_bytes * 1000


@pytest.mark.parametrize(
    "shape",
    [
        Unknown(),
        make_shape(layers=Unknown()),
        make_shape(attention=AttentionShape()),
        make_shape(attention=AttentionShape(heads=(0,))),
        make_shape(attention=AttentionShape(heads=(32,), kv_heads=NULL_LIST)),
    ],
)
def test_no_prediction_without_its_figures(shape: Any) -> None:
    assert isinstance(predict_kv_bytes(ModelFacts(shape, GIB), USE), Unknown)
    told = forecast(ModelFacts(shape, GIB), USE, {0: GIB}, has_other_models=True)
    assert isinstance(told, Unknown)


@pytest.mark.parametrize(
    ("tokens", "predicted", "free", "batch"),
    [
        (4096, 1, 100, 512), (4097, 75, 100, 1024), (4097, 76, 100, 512), (32768, 10, 100, 1024),
        (32769, 60, 100, 2048), (32769, 61, 100, 1024), (32769, 76, 100, 512), (32769, 1, 0, 512),
    ],
)  # fmt: skip
def test_large_batches_only_with_room_to_spare(tokens: int, predicted: int, free: int, batch: int) -> None:
    assert choose_batch(tokens, predicted, free) == batch


@pytest.mark.parametrize(
    ("free_gib", "others", "spreads", "gpus", "evicts", "surcharge_mib"),
    [
        ({0: 24.4}, True, False, (0,), False, 0),  # 19.5 of 24.4: 79.9 %
        ({0: 24.3}, True, False, (0,), True, 0),  # 80.2 %
        ({0: 24.3}, False, False, (0,), False, 0),  # the first model is never refused
        ({0: 26.1}, True, False, (0,), False, 768),  # 74.7 %; 20.25 is 77.6 %
        ({0: 20.0, 1: 30.0}, True, False, (1,), False, 768),
        ({0: 20.0, 1: 20.0}, True, False, (0, 1), False, 768),
        ({0: 20.0, 1: 30.0}, True, True, (0, 1), False, 768),
        ({0: 4.0, 1: 4.0}, True, False, (0, 1), True, 0),
    ],
)
def test_what_ollama_does(
    free_gib: dict[int, float],
    others: bool,
    spreads: bool,
    gpus: tuple[int, ...],
    evicts: bool,
    surcharge_mib: int,
) -> None:
    free = {index: int(gib * GIB) for index, gib in free_gib.items()}
    told = forecast(CODER, USE, free, has_other_models=others, spreads=spreads)
    assert not isinstance(told, Unknown)
    assert told.predicted_bytes == 18 * GIB + CACHE // 2
    assert (told.gpus, told.evicts, told.surcharge_bytes) == (gpus, evicts, surcharge_mib * MIB)


def test_the_surcharge_alone_may_evict() -> None:
    """A small card: 3 of 4.05 GiB leave room for batches of 1024, and with them 80 % are passed."""
    facts = ModelFacts(make_shape(), 3 * GIB - 4100 * 48 * KIB)
    told = forecast(facts, ContextUse(4100), {0: int(4.05 * GIB)}, has_other_models=True)
    assert not isinstance(told, Unknown)
    assert (told.batch, told.evicts) == (1024, True)


def test_embeddings_keep_the_small_batch() -> None:
    facts = ModelFacts(make_shape(capabilities=("embedding",)), GIB)
    told = forecast(facts, USE, {0: 80 * GIB}, has_other_models=True)
    assert not isinstance(told, Unknown)
    assert told.batch == 512


@pytest.mark.parametrize(
    ("gib", "context"),
    [(0, 4096), (22.99, 4096), (23, 32768), (46.99, 32768), (47, 262144), (640, 262144)],
)
def test_the_default_context_follows_the_vram_of_all_cards(gib: float, context: int) -> None:
    assert default_context(int(gib * 1024)) == context
    assert isinstance(default_context(Unknown("[N/A]")), Unknown)


# -- whatever is known --------------------------------------------------------------------------------

COPIES = st.lists(
    st.builds(
        SeenCopy, st.integers(0, 60 * GIB), st.sampled_from([2048, 8192, 32768, 131072]),
        st.none() | st.integers(1, 4), st.sampled_from([CacheTypes(), Q8]), st.integers(1, 3),
    ),
    max_size=3,
).map(tuple)  # fmt: skip
SHAPES = st.sampled_from([
    make_shape(),
    make_shape(architecture="gemma3", attention=dataclasses.replace(make_shape().attention, window=1024)),
    make_shape(tensors=Unknown()), make_shape(attention=AttentionShape(kv_heads=NULL_LIST)),
    make_shape(architecture="bert", capabilities=("embedding",)), make_shape(vocabulary=Unknown()), Unknown(),
])  # fmt: skip
FACTS = st.builds(
    ModelFacts, SHAPES, st.sampled_from([Unknown(), 18 * GIB, 0]), COPIES, COPIES,
    st.sampled_from([Unknown(), 25 * GIB, 0]),
)  # fmt: skip


@given(
    FACTS,
    st.integers(0, 300_000),
    st.integers(0, 300_000),
    st.integers(1, 4),
    st.sampled_from([CacheTypes(), Q8]),
)
def test_a_longer_context_never_needs_less(
    facts: ModelFacts, context: int, more: int, parallel: int, types: CacheTypes
) -> None:
    small = find_need(facts, ContextUse(context, parallel, types))
    large = find_need(facts, ContextUse(context + more, parallel, types))
    if isinstance(small, Unknown) or isinstance(large, Unknown):
        assert isinstance(large, Unknown), "what was seen at a longer context says something of a shorter one"
        return
    assert small.shared_bytes >= 0
    assert small.per_gpu_bytes > 0
    for gpus in (1, 2, 4):
        assert small.total_bytes(gpus) <= large.total_bytes(gpus)
    assert small.text.isprintable()


@given(FACTS, st.integers(1, 300_000))
def test_several_sequences_never_need_less(facts: ModelFacts, context: int) -> None:
    facts = dataclasses.replace(facts, measured=(), elsewhere=())
    one, four = find_need(facts, ContextUse(context)), find_need(facts, ContextUse(context, 4))
    if isinstance(one, ModelNeed) and isinstance(four, ModelNeed):
        assert one.total_bytes() <= four.total_bytes()
