"""The catalog: what models.yaml declares, every error with line, key and what to do, and following it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleettui.config.catalog_file import read_catalog_file
from fleettui.config.catalog_folder import CatalogFolder, load_catalog_files
from fleettui.config.paths import default_catalog_dir
from fleettui.demo.models import CATALOG as DEMO_MODELS
from fleettui.model.catalog import EMPTY_CATALOG, Catalog, CatalogEngine, CatalogModel, find_in_catalog
from fleettui.model.machine import NOT_DECLARED
from fleettui.view.problems import problem_line

SHIPPED = Path(__file__).resolve().parents[2] / "catalog"


def read_good(text: str) -> Catalog:
    catalog, problems = read_catalog_file(text.encode(), "models.yaml")
    assert problems == ()
    assert catalog is not None
    return catalog


def faults(text: str) -> list[str]:
    catalog, problems = read_catalog_file(text.encode(), "c/models.yaml")
    assert catalog is None
    return [problem_line(problem) for problem in problems]


def test_everything_a_model_may_say() -> None:
    catalog = read_good(
        """
engines:
  pytorch: {min_cc: 7.5, cpu: true}
  vllm:
models:
  llama:
    kind: llm
    vram_gb: 6.5
    min_cc: 8.10
    engines: [vllm, pytorch]
    context: 131072
    lora: true
    names: {ollama: "llama3.1:8b", vllm: [meta/llama, meta/llama, other/llama]}
    licence: of Meta
    keep: 2
    num_ctx: 32768
  xtts: {kind: tts, engines: pytorch, min_cc: "12"}
  bare:
roles: {}
"""
    )
    assert catalog.engines == (CatalogEngine("pytorch", (7, 5), True), CatalogEngine("vllm"))
    assert catalog.models == (
        CatalogModel(
            "llama", "llm", 6.5, (8, 10), ("vllm", "pytorch"), 131072, True,
            (("ollama", ("llama3.1:8b",)), ("vllm", ("meta/llama", "other/llama"))), 2, 32768,
        ),
        CatalogModel("xtts", "tts", NOT_DECLARED, (12, 0), ("pytorch",), NOT_DECLARED),
        CatalogModel("bare", "llm", NOT_DECLARED, context=NOT_DECLARED),
    )  # fmt: skip
    assert catalog.file == "models.yaml"


def test_capabilities_compare_as_pairs() -> None:
    text = (
        "models: {a: {min_cc: 8.9}, b: {min_cc: 8.10}, c: {min_cc: '8.9'}, d: {min_cc: 12.0}, e: {min_cc: 9}}"
    )
    ccs = [model.min_cc for model in read_good(text).models]
    assert ccs == [(8, 9), (8, 10), (8, 9), (12, 0), (9, 0)]
    assert ccs[0] is not None
    assert ccs[1] is not None
    assert ccs[0] < ccs[1]


@pytest.mark.parametrize("text", ["{}", "models:", "engines: {}\nmodels: {}\n", "note: nothing yet"])
def test_an_empty_catalog_is_one(text: str) -> None:
    assert (read_good(text).models, read_good(text).engines) == ((), ())


def test_the_shipped_catalog_is_sound_and_knows_the_demo_s_models() -> None:
    told = load_catalog_files(str(SHIPPED))
    assert told.problems == ()
    missing = [
        model.name for model in DEMO_MODELS.values()
        if not model.remote_host and find_in_catalog(told.catalog, model.name) is None
    ]  # fmt: skip
    assert missing == []
    assert {model.kind for model in told.catalog.models} == {"llm", "embedding", "reranker", "tts"}
    assert {engine.name for engine in told.catalog.engines} == {"vllm", "ollama", "llamacpp", "pytorch"}


WRONG = """\
engines:
  pytorch: {min_cc: seven, cpu: yes}
models:
  llama:
    kind: LLM
    vram: 6.5
    min_cc: [8, 9]
    engines: [ollama, vlm, 3]
    context: 128k
    names: {ollama: "llama3.1:8b", vllm: meta/x, tgi: x}
  other:
    vram_gb: 6 GB
    lora: on
    names:
      ollama: library/Llama3.1:8B
      llamacpp: [llama, fine]
      sglang: meta/x
  third: 5
  llama: {}
model_s: 1
"""


def test_every_error_at_once_with_line_and_what_to_do() -> None:
    here = "c/models.yaml"
    taken = "a name means one model, so remove one of the two."
    known = "pytorch, ollama, vllm, llamacpp, llamaswap, lmstudio, sglang"
    assert faults(WRONG) == [
        f"{here}:2: engines.pytorch.min_cc: engines.pytorch.min_cc must be a compute capability; "
        "write for example 8.9.",
        f"{here}:2: engines.pytorch.cpu: engines.pytorch.cpu must be true or false, not text; "
        "write `cpu: true`.",
        f"{here}:5: models.llama.kind: models.llama.kind must be one word in lower case; "
        "write llm, embedding, reranker, tts or one of your own.",
        f"{here}:6: models.llama.vram: models.llama.vram is no key that is read; "
        "write vram_gb if that is meant, else another word.",
        f"{here}:7: models.llama.min_cc: models.llama.min_cc must be a compute capability; "
        "write for example 8.9.",
        f'{here}:8: models.llama.engines[2]: models.llama.engines[2] must be text; put it in quotes: "3".',
        f"{here}:8: models.llama.engines[1]: models.llama.engines[1] names the engine 'vlm', "
        "which is not known; write vllm, or add it under engines.",
        f"{here}:9: models.llama.context: models.llama.context must be a whole number without quotes or "
        "unit; write `context: 131072`.",
        f"{here}:10: models.llama.names.tgi: models.llama.names.tgi names the engine 'tgi', "
        f"which is not known; write one of {known}, or add it under engines.",
        f"{here}:12: models.other.vram_gb: models.other.vram_gb must be a number without quotes or unit; "
        "write `vram_gb: 6.5`.",
        f"{here}:13: models.other.lora: models.other.lora must be true or false, not text; "
        "write `lora: true`.",
        f"{here}:15: models.other.names.ollama: models.other.names.ollama gives the name "
        f"library/Llama3.1:8B, which the model llama has already (line 10); {taken}",
        f"{here}:16: models.other.names.llamacpp[0]: models.other.names.llamacpp[0] gives the name llama, "
        f"which the model llama has already (line 4); {taken}",
        f"{here}:17: models.other.names.sglang: models.other.names.sglang gives the name meta/x, "
        f"which the model llama has already (line 10); {taken}",
        f"{here}:18: models.third: models.third must be a map of keys, not a number; "
        "write `llama3.1-8b: {vram_gb: 6.5}`.",
        f"{here}:19: models.llama: This key stands in line 4 already; remove one of the two.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("- a\n", ":1: The catalog is a map of keys; begin with the line `models:`."),
        ("", ": The file is empty; write its keys or delete it."),
        ("models: [a]\n", ":1: models: models must be a map of keys, not a list; write "
         "`models: {llama3.1-8b: {vram_gb: 6.5, names: {ollama: llama3.1:8b}}}`."),
        ("modles: {}\n", ":1: modles: modles is no key that is read; write models if that is meant, "
         "else another word."),
        ("models: {a: {vram_gb: 0}}\n", ":1: models.a.vram_gb: models.a.vram_gb must be a number above 0; "
         "write `vram_gb: 6.5`."),
        ("models: {a: {min_cc: -1}}\n", ":1: models.a.min_cc: models.a.min_cc must be a compute capability; "
         "write for example 8.9."),
        ("models: {a: {keep: -1}}\n", ":1: models.a.keep: models.a.keep must not be negative; "
         "write `keep: 2`."),
        ("models: {a: {num_ctx: 0}}\n", ":1: models.a.num_ctx: models.a.num_ctx must be a number above 0; "
         "write `num_ctx: 32768`."),
        ("models: {a: {name: x}}\n", ":1: models.a.name: models.a.name is no key that is read; "
         "write names if that is meant, else another word."),
        ("models: {a: {}, b: {names: {vllm: a}}}\n", ":1: models.b.names.vllm: models.b.names.vllm gives the "
         "name a, which the model a has already (line 1); a name means one model, so remove one of the two."),
        ("models: {llama3.1: {}, b: {names: {ollama: 'llama3.1:latest'}}}\n", ":1: models.b.names.ollama: "
         "models.b.names.ollama gives the name llama3.1:latest, which the model llama3.1 has already "
         "(line 1); a name means one model, so remove one of the two."),
    ],
)  # fmt: skip
def test_one_error(text: str, line: str) -> None:
    assert faults(text) == [f"c/models.yaml{line}"]


def test_one_model_may_have_one_name_on_several_engines() -> None:
    read_good("models: {a: {names: {vllm: org/a, sglang: org/a, ollama: [a, 'a:latest']}}}")


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_give_a_catalog_or_a_reason(data: bytes) -> None:
    catalog, problems = read_catalog_file(data, "x")
    assert (catalog is None) == bool(problems)


# -- the folder ---------------------------------------------------------------------------------------


def write(folder: Path, text: str) -> None:
    """As an editor does it: a new file in place of the old one, so that its stamp differs."""
    new = folder / "new"
    new.write_text(text)
    new.replace(folder / "models.yaml")


def test_it_is_followed_and_a_broken_one_keeps_the_last_good_version(tmp_path: Path) -> None:
    folder = CatalogFolder(str(tmp_path))
    assert folder.refresh().catalog is EMPTY_CATALOG
    (tmp_path / "roles.yaml").write_text("roles: {}\n")
    assert folder.refresh().problems == ()
    write(tmp_path, "models: {a: {}}\n")
    first = folder.refresh()
    assert [model.id for model in first.catalog.models] == ["a"]
    assert folder.refresh() is first
    write(tmp_path, "models: {a: {vram_gb: big}}\n")
    broken = folder.refresh()
    assert broken.catalog is first.catalog
    (problem,) = broken.problems
    assert problem.is_of_catalog
    assert problem.message == (
        "models.a.vram_gb must be a number without quotes or unit; write `vram_gb: 6.5`. "
        "The last good version of the catalog stays in use until then."
    )
    write(tmp_path, "models: {b: {}}\n")
    assert [model.id for model in folder.refresh().catalog.models] == ["b"]
    (tmp_path / "models.yaml").unlink()
    (tmp_path / "roles.yaml").unlink()
    assert (folder.refresh().catalog, folder.refresh().problems) == (EMPTY_CATALOG, ())


def test_only_a_folder_that_somebody_named_has_to_exist(tmp_path: Path, home: Path) -> None:
    assert load_catalog_files(default_catalog_dir()).problems == ()
    (problem,) = load_catalog_files(str(tmp_path / "none")).problems
    assert problem_line(problem) == (
        f"{tmp_path}/none: The catalog's folder does not exist; create it, or name another with --catalog "
        "or $FLEETTUI_CATALOG."
    )


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "models.yaml").mkdir()
    (problem,) = load_catalog_files(str(tmp_path)).problems
    assert problem.message == "This is no ordinary file; replace it by one."
    assert problem.file == os.path.join(tmp_path, "models.yaml")  # noqa: PTH118
