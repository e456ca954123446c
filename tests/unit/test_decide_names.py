"""Model names: one form to compare, nearest known names, sizes as typed, natural order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleettui.decide.names import canonical_name, is_same_model, is_served_as, nearest_names
from fleettui.decide.natural import natural_key
from fleettui.model.sizes import parse_vram_mib


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("llama3.2", "llama3.2:latest"),
        ("llama3.2:latest", "llama3.2:latest"),
        ("LLaMA3.2:1B", "llama3.2:1b"),
        ("library/llama3.2", "llama3.2:latest"),
        ("registry.ollama.ai/library/llama3.2:1b", "llama3.2:1b"),
        ("Registry.Ollama.AI/library/llama3.2", "llama3.2:latest"),
        ("https://registry.ollama.ai/library/llama3.2", "llama3.2:latest"),
        ("registry.ollama.ai/mia/coder:7b", "mia/coder:7b"),
        ("mia/coder", "mia/coder:latest"),
        ("localhost:5000/team/m", "localhost:5000/team/m:latest"),
        ("localhost:5000/team/m:v2", "localhost:5000/team/m:v2"),
        ("hf.co/bartowski/Llama-3.2-1B-GGUF:Q4_K_M", "hf.co/bartowski/llama-3.2-1b-gguf:q4_k_m"),
        ("  llama3.2 ", "llama3.2:latest"),
        ("llama3.2@sha256:0123", "llama3.2:latest"),
    ],
)
def test_canonical_name(name: str, canonical: str) -> None:
    assert canonical_name(name) == canonical
    assert canonical_name(canonical) == canonical


def test_a_tag_left_out_is_latest_and_no_other() -> None:
    assert is_same_model("llama3.2", "llama3.2:latest")
    assert not is_same_model("llama3.2", "llama3.2:1b")


def test_engines_other_than_ollama_compare_the_whole_id() -> None:
    assert is_served_as("ollama", "Qwen3:8B", "qwen3:8b")
    assert is_served_as("vllm", "Qwen/Qwen3-8B", "Qwen/Qwen3-8B")
    assert not is_served_as("vllm", "Qwen/Qwen3-8B", "qwen/qwen3-8b")


def test_nearest_names_prefer_the_same_family() -> None:
    known = ["qwen3:8b", "llama3.1:8b", "llama3.1:70b-instruct", "mistral:7b", "LLAMA3.1:8b"]
    assert nearest_names("llama3.1:70b", known, 2) == ["llama3.1:70b-instruct", "llama3.1:8b"]
    assert nearest_names("lama3.1:8b", known, 1) == ["llama3.1:8b"]
    assert nearest_names("lama3.1:8b", known)[0] == "llama3.1:8b"


def test_three_names_are_near_however_little_they_are_like_it() -> None:
    known = ["phi4:14b", "qwen3:8b", "nomic-embed-text", "gpt-oss:20b"]
    assert len(nearest_names("nothing:1b", known)) == 3
    assert nearest_names("nothing:1b", known)[0] == "phi4:14b"
    assert nearest_names("nothing:1b", known[:2]) == ["phi4:14b", "qwen3:8b"]
    assert nearest_names("nothing:1b", []) == []


SIZES = {
    "4": 4096,
    "4GiB": 4096,
    "4 gb": 4096,
    "4000MiB": 4000,
    "0.5": 512,
    "1.0001": 1025,
    "1T": 1048576,
    "0": 0,
}


@pytest.mark.parametrize(("text", "mib"), SIZES.items())
def test_parse_vram_mib(text: str, mib: int) -> None:
    assert parse_vram_mib(text) == mib


@pytest.mark.parametrize(
    "text", ["", "-4", "four", "4 KiB", "nan", "inf", "1e3", "4,5", "٤", "4GiBs", "9" * 40]
)
def test_parse_vram_mib_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="is no memory size"):
        parse_vram_mib(text)


def test_natural_order() -> None:
    names = ["node10", "Node2", "node2", "node1", "alpha", "node", "node02"]
    assert sorted(names, key=natural_key) == ["alpha", "node", "node1", "Node2", "node02", "node2", "node10"]


@given(st.text(max_size=60))
def test_any_text_has_a_stable_canonical_form(text: str) -> None:
    once = canonical_name(text)
    assert canonical_name(once) == canonical_name(canonical_name(once))
    assert ":" in once
