"""Every config of configs/: what fairseq makes of its options, and the model."""

from __future__ import annotations

from argparse import Namespace
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import pytest
from fairseq import options
from fairseq.models import ARCH_MODEL_REGISTRY
from omegaconf import OmegaConf

from syncattn_fairseq.data.fields import SourceFields
from syncattn_fairseq.recipes.needs import MULTI_TASK, needs_of
from syncattn_fairseq.recipes.systems import NAMED, load_system, read_overrides, training_options
from tests.importing import import_file
from tests.models import build

ROOT = Path(__file__).parents[1]
CONFIG_OPTIONS = ROOT / "scripts" / "config_options.py"
CONFIGS = sorted((ROOT / "configs").glob("*/[!_]*.yaml"))

SMALL_CORPORA = (
    *("atis_en_tr", "atis_tr_en", "enja", "enja_10000"),
    *("multi30k_en_de", "multi30k_tiny_en_de_3625", "multi30k_tiny_en_de_7250"),
)
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
    config_options = import_file(CONFIG_OPTIONS)
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
    assert import_file(CONFIG_OPTIONS).main(["nofile.yaml"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: nofile.yaml: ") and error.count("\n") == 1
