"""What `/api/show` says of a model: kept, left unknown, or refused; never invented, never raised."""

from __future__ import annotations

import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleettui.model.model_shape import NOT_TOLD, NULL_LIST, ModelShape, TensorSums
from fleettui.model.unknown import Unknown
from fleettui.probes.engines import ollama_show
from fleettui.probes.engines.ollama_show import parse_shape

FIXTURES = Path(__file__).parents[1] / "fixtures"


def shape_of(body: bytes | dict[str, Any]) -> ModelShape:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    shape = parse_shape(200, (), raw)
    assert isinstance(shape, ModelShape), shape
    return shape


def facts(**keys: Any) -> dict[str, Any]:
    """model_info of architecture `x`; `_` stands for a dot where there are two."""
    return {"general.architecture": "x"} | {
        f"x.{key.replace('__', '.')}": value for key, value in keys.items()
    }


def test_gemma4_as_documented() -> None:
    shape = shape_of((FIXTURES / "engines" / "ollama_show_gemma4_docs.json").read_bytes())
    attention = shape.attention
    assert (shape.architecture, shape.layers, shape.max_context) == ("gemma4", 42, 131072)
    assert shape.own_context == 2048
    assert (attention.heads, attention.kv_heads) == ((8,), (2,))
    assert (attention.key_length, attention.value_length) == (512, 512)
    assert (attention.key_length_swa, attention.value_length_swa) == (256, 256)
    assert (attention.window, attention.shared_kv_layers) == (512, 18)
    assert attention.window_pattern == NOT_TOLD, "the file has one, the answer does not say"
    assert (shape.vocabulary, shape.tensors) == (NOT_TOLD, NOT_TOLD)
    assert (shape.file_type, shape.capabilities) == (15, ("completion", "vision"))


def test_llama_as_documented() -> None:
    shape = shape_of((FIXTURES / "engines" / "ollama_show_llama8b_model_info_docs.json").read_bytes())
    assert (shape.layers, shape.embedding_length, shape.vocabulary) == (32, 4096, 128256)
    assert (shape.attention.heads, shape.attention.kv_heads, shape.attention.key_length) == (
        (32,),
        (8,),
        NOT_TOLD,
    )
    assert shape.parameters == 8030261248


def test_a_list_is_kept_and_a_null_list_is_told_from_no_list() -> None:
    known = shape_of(
        {"model_info": facts(attention__head_count_kv=[0, 8, 0], attention__recurrent_layers=[True, False])}
    )
    assert known.attention.kv_heads == (0, 8, 0)
    assert known.attention.recurrent_layers == (1, 0)
    null = shape_of({"model_info": facts(attention__head_count_kv=None)})
    assert null.attention.kv_heads == NULL_LIST
    assert null.attention.heads == NOT_TOLD


@pytest.mark.parametrize("value", [[], [1, "2"], [1, -1], [1, None], [1.5], "8", -8, {}, [1] * 2000, [[1]]])
def test_what_is_no_list_of_counts_is_unknown(value: object) -> None:
    assert shape_of({"model_info": facts(attention__head_count_kv=value)}).attention.kv_heads == NOT_TOLD


def tensor(name: str, kind: str, *shape: int) -> dict[str, Any]:
    return {"name": name, "type": kind, "shape": list(shape)}


def test_tensors_are_summed_by_kind() -> None:
    embedding, output = 4096 * 128256 // 256 * 144, 4096 * 128256 // 256 * 210
    tensors = [
        tensor("token_embd.weight", "Q4_K", 4096, 128256),
        tensor("blk.0.attn_norm.weight", "F32", 4096),
        tensor("v.patch_embd.weight", "F16", 14, 14, 3, 1152),
        tensor("output.weight", "Q6_K", 4096, 128256),
    ]
    shape = shape_of({"model_info": facts(), "tensors": tensors})
    vision = 14 * 14 * 3 * 1152 * 2
    assert shape.tensors == TensorSums(embedding + 4096 * 4 + vision + output, embedding, 0, vision, True, 4)
    assert shape.tensors.gpu_bytes == 4096 * 4 + vision + output, "the embedding stays in main memory"
    assert shape.vocabulary == 128256
    tied = shape_of({"model_info": facts(), "tensors": tensors[:2]}).tensors
    assert tied == TensorSums(embedding + 4096 * 4, embedding, 0, 0, False, 2)
    assert tied.gpu_bytes == embedding + 4096 * 4, "tied to the output it lies on the GPU"


def test_embeddings_of_each_layer_are_looked_up_in_main_memory() -> None:
    tensors = [tensor("per_layer_token_embd.weight", "Q8_0", 64, 10), tensor("blk.0.x", "F32", 256)]
    found = shape_of({"model_info": facts(), "tensors": tensors}).tensors
    assert found == TensorSums(680 + 1024, 0, 680, 0, False, 2)
    assert found.gpu_bytes == 1024


@pytest.mark.parametrize(
    ("kind", "size"),
    [("F32", 1024), ("F16", 512), ("BF16", 512), ("Q4_0", 144), ("Q8_0", 272), ("Q4_K", 144), ("Q6_K", 210),
     ("Q5_K", 176), ("IQ4_XS", 136), ("MXFP4", 136), ("q4_k", 144)],
)  # fmt: skip
def test_bytes_of_256_elements(kind: str, size: int) -> None:
    shape = shape_of({"model_info": facts(), "tensors": [tensor("blk.0.x", kind, 256)]})
    assert shape.tensors == TensorSums(size, 0, 0, 0, False, 1)


@pytest.mark.parametrize(
    "odd",
    [tensor("a", "Q9_X", 256), tensor("a", "F32"), tensor("a", "F32", 0), tensor("a", "F32", -4),
     {"name": "a"}, 5, tensor("a", "F32", 1 << 40, 1 << 40), {"name": 5, "type": "F32", "shape": [1]}, None],
)  # fmt: skip
def test_one_odd_tensor_and_there_is_no_sum(odd: object) -> None:
    shape = shape_of({"model_info": facts(), "tensors": [tensor("blk.0.x", "F32", 256), odd]})
    assert isinstance(shape.tensors, Unknown)


def test_a_projector_of_its_own_file() -> None:
    shape = shape_of({"model_info": facts(), "projector_info": {"general.parameter_count": 428_000_000}})
    assert (shape.has_projector, shape.projector_parameters) == (True, 428_000_000)
    assert not shape_of({"model_info": facts()}).has_projector


def test_megabytes_of_tokens_are_left_out() -> None:
    tokens = [f'tok]"\\{number}' for number in range(60_000)]
    plain = {"model_info": facts(block_count=7), "capabilities": ["completion"]}
    verbose = {"model_info": facts(block_count=7) | {
        "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": tokens * 12,
        "tokenizer.ggml.scores": [0.5] * 9000,
        "x.attention.head_count_kv": [1, 2],
    }, "capabilities": ["completion"]}  # fmt: skip
    body = json.dumps(verbose).encode()
    assert len(body) > 8 << 20
    tracemalloc.start()
    shape = shape_of(body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < len(body), "tokens are never made objects"
    assert shape.attention.kv_heads == (1, 2)
    assert shape.layers == shape_of(plain).layers == 7


def test_a_text_that_speaks_of_tokens_is_left_as_it_is() -> None:
    text = '{"tokenizer.ggml.tokens":["a"]}'
    assert shape_of({"license": text, "model_info": facts(block_count=3)}).layers == 3


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (404, b'{"error":"model \'x\' not found"}', "not found"),
        (401, b"", "login needed"),
        (503, b'{"error":"server busy, please try again.  maximum pending requests exceeded"}', "queue full"),
        (200, b"<html><title>Router</title>", "web page"),
        (200, b"{", "no JSON"),
        (200, b"[]", "names no architecture"),
        (200, b'{"model_info":null}', "names no architecture"),
        (200, b'{"model_info":{"general.architecture":7}}', "names no architecture"),
        (200, b'{"model_info":{"general.architecture":"x"},"remote_host":"https://a"}', "cloud model"),
    ],
)
def test_what_is_no_shape_says_why(status: int, body: bytes, words: str) -> None:
    found = parse_shape(status, (), body)
    assert isinstance(found, Unknown)
    assert words in found.reason


def test_an_endless_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ollama_show, "MAX_SHOW_BYTES", 1000)
    found = parse_shape(200, (), b'{"model_info":{"general.architecture":"x"},"a":"' + b"y" * 1000 + b'"}')
    assert isinstance(found, Unknown)
    assert "larger than" in found.reason


KEYS = st.sampled_from([
    "block_count", "attention.head_count", "attention.head_count_kv", "attention.key_length",
    "context_length", "attention.sliding_window_pattern", "attention.causal", "ssm.state_size",
    "full_attention_interval",
])  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5),
    max_leaves=8,
)
TENSORS = st.lists(
    st.fixed_dictionaries({
        "name": st.sampled_from(["token_embd.weight", "output.weight", "blk.1.x", "v.x"]) | VALUES,
        "type": st.sampled_from(["F32", "Q4_K", "?"]) | VALUES,
        "shape": st.lists(st.integers(-1, 1 << 70) | st.none(), max_size=9) | VALUES,
    }),
    max_size=4,
)  # fmt: skip


@given(st.dictionaries(KEYS, VALUES, max_size=9), TENSORS)
def test_any_values(values: dict[str, Any], tensors: list[Any]) -> None:
    body = json.dumps({"model_info": facts() | {f"x.{k}": v for k, v in values.items()}, "tensors": tensors})
    shape = parse_shape(200, (), body.encode())
    if isinstance(shape, Unknown):
        return  # NaN is no JSON
    for key, found in (("block_count", shape.layers), ("context_length", shape.max_context)):
        assert isinstance(found, Unknown) or found == values[key]
    heads = shape.attention.kv_heads
    if not isinstance(heads, Unknown):
        told = values["attention.head_count_kv"]
        assert list(heads) == (told if isinstance(told, list) else [told])
    if not isinstance(shape.tensors, Unknown):
        assert 0 <= shape.tensors.embedding_bytes <= shape.tensors.total_bytes
        assert shape.tensors.count == len(tensors)


@given(st.binary(max_size=300), st.sampled_from([200, 404, 500]))
def test_any_bytes(body: bytes, status: int) -> None:
    found = parse_shape(status, (), body)
    assert isinstance(found, Unknown), re.escape(repr(found))


@pytest.mark.parametrize(
    ("parameters", "context"),
    [
        ("num_ctx                        8192", 8192),
        ('stop "<eos>"\nnum_ctx 4096\nnum_ctx 16384\ntop_k 20', 16384),
        ("num_ctx 0", NOT_TOLD),
        ("num_ctx -1\nnum_ctx many\nxnum_ctx 4096\nnum_ctx 99999999999", NOT_TOLD),
        ('stop "num_ctx 4096"', NOT_TOLD),
        ("", NOT_TOLD),
        (None, NOT_TOLD),
        (["num_ctx 4096"], NOT_TOLD),
    ],
)
def test_the_context_of_the_modelfile(parameters: object, context: object) -> None:
    assert shape_of({"model_info": facts(), "parameters": parameters}).own_context == context
