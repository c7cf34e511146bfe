"""Every config of configs/: what fairseq makes of its options, and the model."""

from __future__ import annotations

import importlib.util
import json
import re
from argparse import Namespace
from itertools import combinations
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from fairseq import options
from fairseq.models import ARCH_MODEL_REGISTRY
from omegaconf import OmegaConf

from syncattn_fairseq.data.fields import SourceFields
from syncattn_fairseq.recipes.needs import MULTI_TASK, needs_of
from syncattn_fairseq.recipes.systems import NAMED, load_system, read_overrides, training_options
from tests.models import build

ROOT = Path(__file__).parents[1]
CONFIGS = sorted((ROOT / "configs").glob("*/[!_]*.yaml"))


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SMALL_CORPORA = ("enja", "multi30k_en_de", "multi30k_tiny_en_de_3625", "multi30k_tiny_en_de_7250")
SMALL = [
    "model.encoder_embed_dim=16",
    "model.decoder_embed_dim=16",
    "model.encoder_ffn_embed_dim=16",
]
SMALL_RNN = [
    f"model.{side}_{size}=16"
    for side in ("encoder", "decoder")
    for size in ("embed_dim", "hidden_size")
]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_fairseq_reads_what_the_config_says_and_builds_the_model(path: Path) -> None:
    rnn = path.stem.startswith("rnn")
    changes = [f"common.user_dir={ROOT / 'syncattn_fairseq'}", *(SMALL_RNN if rnn else SMALL)]
    config = load_system(path, read_overrides(changes))
    parser = options.get_training_parser("translation")  # parsing adds to it
    args = options.parse_args_and_arch(parser, list(training_options(config)))
    for section in config.keys() - {"defaults", "generation", "hydra"}:
        for name, value in config[section].items():
            option = NAMED.get(section, section) if name == "_name" else name
            assert getattr(args, option) == value, f"{section}.{name}"
    assert config["checkpoint"]["save_dir"] == f"checkpoints/{path.parent.name}/{path.stem}"

    words = build.dictionary()
    task = SimpleNamespace(
        source_dictionary=words, target_dictionary=words, source_label_dictionary=words
    )
    built = Namespace(**vars(args))
    model = ARCH_MODEL_REGISTRY[args.arch].build_model(built, task)
    assert needs_of(config) == needs_of_model(path.stem, model.source_fields, built)
    layers = {"multi30k_tiny_en_de": 4, "builtin_en_de": 2} | dict.fromkeys(SMALL_CORPORA, 3)
    assert rnn or len(model.decoder.layers) == layers.get(path.parent.name, 6)


def needs_of_model(name: str, fields: SourceFields, args: Namespace) -> set[str]:
    """Return what a model and its losses read."""
    source, target = args.source_lang, args.target_lang
    return {
        *({MULTI_TASK} if name == "multi_task" else ()),
        *({f"heads.{source}"} if fields.reads("heads") else ()),
        *({f"heads.{source}"} if fields.rules and args.src_dep_weight > 0 else ()),
        *({f"labels.{source}"} if fields.reads("labels") else ()),
        *(
            {f"heads.{target}"}
            if getattr(args, "decoder_dependency_layer", 0) and args.tgt_dep_weight > 0
            else ()
        ),
    }


def test_a_system_sets_nothing_that_its_corpus_sets() -> None:
    """For hydra the corpus comes last, since a schema that it finds itself overrides the first."""
    for path in CONFIGS:
        system = OmegaConf.load(path)
        assert system.defaults[:2] == ["_self_", "_corpus"] and len(system.defaults) <= 3
        parts = [
            system,
            *(OmegaConf.load(path.with_name(f"{n}.yaml")) for n in system.defaults[1:]),
        ]
        for one, other in combinations(parts, 2):
            for section in one.keys() & other.keys() - {"defaults"}:
                assert not one[section].keys() & other[section].keys(), f"{path}: {section}"


def test_every_corpus_has_a_baseline() -> None:
    for folder in {path.parent for path in CONFIGS}:
        assert list(folder.glob("transformer.yaml")) or list(folder.glob("rnn_global.yaml")), folder
        assert (folder / "_corpus.yaml").exists()


def test_options_and_overrides(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(ROOT / "configs" / "wmt18_en_tr" / "pascal.yaml")
    config_options = script("config_options")
    config_options.main([path, "common.fp16=false", "task.data=elsewhere", "optimization.lr=[0.1]"])
    words = capsys.readouterr().out.splitlines()
    assert words[0] == "elsewhere" and "--fp16" not in words
    assert words[words.index("--lr") + 1] == "0.1"
    assert words[words.index("--adam-betas") + 1] == "(0.9,0.98)"
    assert words[words.index("--arch") + 1] == "transformer_pascal"
    assert "--beam" not in words
    config_options.main([path, "--generate"])
    assert capsys.readouterr().out.split() == ["--beam", "4", "--lenpen", "0.6"]


def test_options_of_a_config_that_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert script("config_options").main(["nofile.yaml"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: nofile.yaml: ") and error.count("\n") == 1


def test_the_page_of_all_settings_is_up_to_date() -> None:
    page = (ROOT / "docs" / "all_settings.md").read_text(encoding="utf-8")
    assert script("settings_table").make_page() == page


def test_the_page_of_options_is_up_to_date() -> None:
    page = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert script("options_page").make_page() == page
    for option in ("--supervised-gate-layers", "--tree-position", "--sync-mse-weight"):
        assert f"| `{option}` |" in page


@pytest.mark.parametrize("name", ["results.md", "findings.md"])
def test_tables_are_those_of_the_results(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert script("results_page").fill_in(page) == page
    assert page.count("\n<!-- syncattn-recipe ") == page.count("\n<!-- end -->\n")
    shown = re.findall(r"^<!-- syncattn-recipe .* docs/results/(\S+) -->$", page, re.MULTILINE)
    made = {path.name for path in (ROOT / "docs" / "results").glob("*.json")}
    assert {*shown} <= made and (shown or name == "findings.md")


def test_a_page_of_results_gets_all_its_tables_or_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, before = tmp_path / "page.md", tmp_path / "before.md"
    results = ROOT / "docs" / "results" / "builtin_en_de.json"
    parts = [
        f"<!-- syncattn-recipe builtin_en_de --table --results {file} -->\nold\n<!-- end -->\n"
        for file in (results, tmp_path / "none.json")
    ]
    path.write_text("".join(parts), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        script("results_page").update(path)
    assert ended.value.code == 1
    assert capsys.readouterr().err == f"error: {tmp_path}/none.json: no such file\n"
    assert path.read_text(encoding="utf-8") == "".join(parts)
    path.write_text(parts[0], encoding="utf-8")
    before.hardlink_to(path)
    script("results_page").update(path)
    assert "p bootstrap" in path.read_text(encoding="utf-8")
    assert before.read_text(encoding="utf-8") == parts[0]  # another file took its place
    assert {*tmp_path.iterdir()} == {path, before}
    page = path.read_text(encoding="utf-8")
    note = next(line for line in page.splitlines() if line.startswith("BLEU nrefs"))
    page = page.replace("--table", "--table --markdown")
    assert f"\n- {note}\n" in script("results_page").fill_in(page)
    assert script("results_page").fill_in(f"- {note}\n{page}").count(note) == 1


def test_the_table_of_the_readme_is_that_of_the_results() -> None:
    results = json.loads((ROOT / "docs" / "results" / "builtin_en_de.json").read_text("utf-8"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme[readme.index("| system | BLEU |") :].partition("\n\n")[0]
    header, _, *rows = table.splitlines()
    scores = [name.strip() for name in header.split("|")[2:-1]]
    assert scores[0] == "BLEU" and len(rows) > 2
    for row in rows:
        system, *shown = (text.strip() for text in row.split("|")[1:-1])
        cells = [cell for cell in results["cells"] if cell["system"] == system.lower()]
        for score, text in zip(scores, shown, strict=True):
            found = [cell["scores"][score] for cell in cells if score in cell["scores"]]
            if text == "–":
                assert not found
            else:
                spread = f"{min(found):.1f} – {max(found):.1f}"
                assert text == f"{sum(found) / len(found):.1f} ({spread})" and len(found) == 3
