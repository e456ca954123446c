"""Ollama: the answer to `POST /api/show`, read for what decides how much memory a model takes.

Shape: ollama/ollama docs/api.md, keys: the GGUF specification. Lists come as null unless asked with
`"verbose": true`; then megabytes of tokens come with them, which are cut out before anything is read.
"""

from __future__ import annotations

import re
from typing import Any, Final

from fleettui.model.model_shape import (
    NOT_TOLD,
    NULL_LIST,
    AttentionShape,
    Counts,
    ModelShape,
    StateShape,
    TensorSums,
)
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.engines.answers import Headers, as_dict, judge_answer, read_count, read_name, read_names

SHOW: Final = "/api/show"
MAX_SHOW_BYTES = 64 << 20
"""A vocabulary of 262,144 tokens with its merges takes 17 MB."""
MAX_LAYERS = 1024
"""Of a list with one number per layer; the largest models have some 130."""
MAX_TENSORS = 65_536
_BIGGEST = 1 << 50
"""Bytes or elements; more is no tensor."""

_VOCABULARY = re.compile(rb'"tokenizer\.[a-z_.]{1,60}"\s{0,8}:\s{0,8}(?=\[)')
# Possessive groups: one pass over any text, no way back.
_ITEMS = re.compile(rb'[^\[\]"]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^\[\]"]*+)*+', re.S)
_NUM_CTX = re.compile(r"^num_ctx[ \t]+([0-9]{1,9})[ \t]*$", re.MULTILINE)
_PARAMETER_CHARACTERS = 65_536
_PIECE_BYTES = 128 << 10
"""Looked through at once, 1 to 2 ms: a thread that does it gives way to the event loop in between."""

# Type -> (elements of a block, bytes of a block). Source: ggml.h and the type traits of ggml.c.
_BLOCKS: Final = {
    "F64": (1, 8), "F32": (1, 4), "F16": (1, 2), "BF16": (1, 2),
    "I8": (1, 1), "I16": (1, 2), "I32": (1, 4), "I64": (1, 8),
    "Q4_0": (32, 18), "Q4_1": (32, 20), "Q5_0": (32, 22), "Q5_1": (32, 24), "Q8_0": (32, 34),
    "Q8_1": (32, 36),
    "Q2_K": (256, 84), "Q3_K": (256, 110), "Q4_K": (256, 144), "Q5_K": (256, 176), "Q6_K": (256, 210),
    "Q8_K": (256, 292),
    "IQ2_XXS": (256, 66), "IQ2_XS": (256, 74), "IQ2_S": (256, 82), "IQ3_XXS": (256, 98), "IQ3_S": (256, 110),
    "IQ1_S": (256, 50), "IQ1_M": (256, 56), "IQ4_NL": (32, 18), "IQ4_XS": (256, 136),
    "TQ1_0": (256, 54), "TQ2_0": (256, 66), "MXFP4": (32, 17),
}  # fmt: skip
_VISION = ("v.", "mm.", "a.", "vision", "audio", "model.vision", "multi_modal_projector")


def parse_shape(status: int, headers: Headers, body: bytes) -> Maybe[ModelShape]:
    """What the model is made of; Unknown with the engine's words where it says nothing of one."""
    if len(body) > MAX_SHOW_BYTES:
        return Unknown(f"answer larger than {MAX_SHOW_BYTES >> 20} MiB, not read")
    verdict = judge_answer(status, headers, cut_vocabulary(body) if status == 200 else body)
    if verdict.state != "ok":
        return Unknown(verdict.error or "no answer")
    document = as_dict(verdict.document)
    if document.get("remote_host") or document.get("remote_model"):
        return Unknown("a cloud model, it runs elsewhere")
    facts = as_dict(document.get("model_info"))
    architecture = read_name(facts.get("general.architecture"), NOT_TOLD)
    if isinstance(architecture, Unknown):
        return Unknown("the engine names no architecture")
    return _read_shape(document, facts, architecture)


def cut_vocabulary(body: bytes) -> bytes:
    """The document with null in place of the lists of a tokenizer, which nobody reads."""
    kept: list[bytes] = []
    start = 0
    while (found := _VOCABULARY.search(body, start)) is not None:
        end = _end_of_list(body, found.end())
        kept += (body[start : found.end()], b"null" if end > found.end() else b"")
        start = end
    return b"".join((*kept, body[start:])) if kept else body


def _end_of_list(body: bytes, start: int) -> int:
    """Behind the list of texts and numbers that begins at `start`; `start` where it is no such list."""
    at, piece = start + 1, _PIECE_BYTES
    while at < len(body):
        end = _ITEMS.match(body, at, at + piece).end()  # type: ignore[union-attr]  # it matches nothing too
        if body[end : end + 1] in (b"[", b"]"):
            return end + 1 if body[end : end + 1] == b"]" else start
        # A text that is longer than a piece is looked at again, with as much again.
        at, piece = end, piece * 2 if end == at else _PIECE_BYTES
        if at + piece > 2 * len(body):
            break
    return start


def _read_shape(document: dict[str, Any], facts: dict[str, Any], architecture: str) -> ModelShape:
    keys = _Keys(facts, architecture)
    projector = as_dict(document.get("projector_info"))
    tensors, rows = _read_tensors(document.get("tensors"))
    vocabulary = keys.count("vocab_size")
    return ModelShape(
        architecture=architecture,
        layers=keys.count("block_count"),
        embedding_length=keys.count("embedding_length"),
        max_context=keys.count("context_length") or NOT_TOLD,
        own_context=_read_own_context(document.get("parameters")),
        vocabulary=rows if isinstance(vocabulary, Unknown) else vocabulary,
        feed_forward=keys.counts("feed_forward_length"),
        experts=keys.count("expert_count"),
        experts_used=keys.count("expert_used_count"),
        nextn_layers=keys.count("nextn_predict_layers"),
        parameters=read_count(facts.get("general.parameter_count"), NOT_TOLD),
        file_type=read_count(facts.get("general.file_type"), NOT_TOLD),
        attention=_read_attention(keys),
        state=StateShape(
            keys.count("ssm.conv_kernel"),
            keys.count("ssm.inner_size"),
            keys.count("ssm.state_size"),
            keys.count("ssm.group_count"),
            keys.count("shortconv.l_cache"),
        ),
        tensors=tensors,
        has_projector=bool(projector),
        projector_parameters=read_count(projector.get("general.parameter_count"), NOT_TOLD),
        capabilities=read_names(document.get("capabilities")),
    )


def _read_own_context(parameters: object) -> Maybe[int]:
    """Of the Modelfile's parameters, a line of text each: `num_ctx    8192`; the last one counts."""
    found = _NUM_CTX.findall(parameters[:_PARAMETER_CHARACTERS]) if isinstance(parameters, str) else []
    return read_count(int(found[-1]), NOT_TOLD) or NOT_TOLD if found else NOT_TOLD


def _read_attention(keys: _Keys) -> AttentionShape:
    return AttentionShape(
        heads=keys.counts("attention.head_count"),
        kv_heads=keys.counts("attention.head_count_kv"),
        key_length=keys.count("attention.key_length"),
        value_length=keys.count("attention.value_length"),
        key_length_swa=keys.count("attention.key_length_swa"),
        value_length_swa=keys.count("attention.value_length_swa"),
        key_length_mla=keys.count("attention.key_length_mla"),
        window=keys.count("attention.sliding_window"),
        window_pattern=keys.counts("attention.sliding_window_pattern"),
        shared_kv_layers=keys.count("attention.shared_kv_layers"),
        full_attention_interval=keys.count("full_attention_interval"),
        recurrent_layers=keys.counts("attention.recurrent_layers"),
        kv_lora_rank=keys.count("attention.kv_lora_rank"),
        rope_dimensions=keys.count("rope.dimension_count"),
        is_causal=keys.truth("attention.causal"),
    )


class _Keys:
    """The keys of one architecture: `<architecture>.<name>` of model_info."""

    __slots__ = ("_facts", "_prefix")

    def __init__(self, facts: dict[str, Any], architecture: str) -> None:
        self._facts, self._prefix = facts, architecture

    def _get(self, name: str) -> tuple[object, Unknown]:
        key = f"{self._prefix}.{name}"
        value = self._facts.get(key)
        return value, NULL_LIST if value is None and key in self._facts else NOT_TOLD

    def count(self, name: str) -> Maybe[int]:
        """A whole number >= 0."""
        return read_count(*self._get(name))

    def truth(self, name: str) -> Maybe[bool]:
        """True or false."""
        value, missing = self._get(name)
        return value if isinstance(value, bool) else missing

    def counts(self, name: str) -> Maybe[Counts]:
        """A number as a list of one; a list of numbers or truths; anything else in it spoils it."""
        value, missing = self._get(name)
        items = value if isinstance(value, list) else [value]
        if not items or len(items) > MAX_LAYERS:
            return missing
        found = [read_count(int(item) if isinstance(item, bool) else item, missing) for item in items]
        known = tuple(number for number in found if not isinstance(number, Unknown))
        return known if len(known) == len(found) else missing


def _read_tensors(value: object) -> tuple[Maybe[TensorSums], Maybe[int]]:
    """Sums by kind, and the rows of `token_embd` (the vocabulary). One odd tensor and there is no sum."""
    if not isinstance(value, list) or not value or len(value) > MAX_TENSORS:
        return NOT_TOLD, NOT_TOLD
    total = embedding = lookup = vision = 0
    has_output = False
    vocabulary: Maybe[int] = NOT_TOLD
    for item in value:
        fields = as_dict(item)
        name, shape = fields.get("name"), fields.get("shape")
        size = _tensor_bytes(fields.get("type"), shape)
        if isinstance(size, Unknown) or not isinstance(name, str):
            return (size if isinstance(size, Unknown) else NOT_TOLD), vocabulary
        total += size
        if name == "token_embd.weight":
            embedding += size
            vocabulary = read_count(shape[-1], NOT_TOLD) if isinstance(shape, list) else NOT_TOLD
        elif name == "per_layer_token_embd.weight":
            lookup += size
        elif name == "output.weight":
            has_output = True
        elif name.startswith(_VISION):
            vision += size
    return TensorSums(total, embedding, lookup, vision, has_output, len(value)), vocabulary


def _tensor_bytes(kind: object, shape: object) -> Maybe[int]:
    """Bytes of one tensor; a block that is not full counts whole."""
    block = _BLOCKS.get(kind.upper()) if isinstance(kind, str) else None
    if block is None:
        return Unknown("a tensor of a type that is not known")
    if not isinstance(shape, list) or not 0 < len(shape) <= 8:
        return Unknown("a tensor without a shape")
    elements = 1
    for length in shape:
        known = read_count(length, NOT_TOLD)
        if isinstance(known, Unknown) or known == 0:
            return Unknown("a tensor without a shape")
        elements *= known
        if elements > _BIGGEST:
            return Unknown("a tensor of impossible size")
    return -(-elements // block[0]) * block[1]
