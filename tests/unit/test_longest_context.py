"""The longest context of resident copies: by the installed list, else by what is known of the weights."""

from __future__ import annotations

from dataclasses import replace

from builders import digest_of, make_copy, make_engine, make_installed
from fleettui.decide.longest_context import fill_longest_contexts
from fleettui.model.readings import ModelTraits
from fleettui.model.unknown import Unknown

MODEL = "llama3.1:70b"
KNOWN = {digest_of(MODEL): 131072}


def test_by_what_is_known_of_the_weights() -> None:
    reading = make_engine(loaded=(make_copy(MODEL), make_copy("other:7b", digest="ff")))
    filled = fill_longest_contexts(reading, KNOWN)
    assert not isinstance(filled.loaded, Unknown)
    assert [copy.traits for copy in filled.loaded] == [ModelTraits(max_context=131072), None]
    assert fill_longest_contexts(filled, KNOWN) is filled, "nothing changes on the next poll"


def test_the_engines_own_list_counts_first() -> None:
    listed = make_installed(MODEL, traits=ModelTraits(max_context=65536))
    filled = fill_longest_contexts(make_engine(loaded=(make_copy(MODEL),), installed=(listed,)), KNOWN)
    assert not isinstance(filled.loaded, Unknown)
    assert filled.loaded[0].traits == ModelTraits(max_context=65536)


def test_nothing_is_invented() -> None:
    for reading in (
        make_engine(loaded=(make_copy(MODEL, digest=Unknown("not reported")),)),
        make_engine(loaded=(make_copy("other:7b", digest="ff"),)),
        make_engine(loaded=()),
        replace(make_engine(loaded=(make_copy(MODEL),)), kind="vllm"),
        replace(make_engine(loaded=()), loaded=Unknown("no answer")),
    ):
        assert fill_longest_contexts(reading, KNOWN) is reading
