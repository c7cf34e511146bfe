from argparse import Namespace
from types import SimpleNamespace
from typing import Any

import pytest
from fairseq import options
from fairseq.models import ARCH_MODEL_REGISTRY

from lab.tests.configs import CORPORA, PAIRS, SYSTEMS
from syncattn_fairseq.data.fields import SourceFields
from syncattn_lab.recipes.config_file import read_config
from syncattn_lab.recipes.row_settings import MULTI_TASK, describe_model, list_needs
from syncattn_lab.recipes.systems import (
    FAMILIES,
    NAMED,
    SHARED,
    read_overrides,
    training_options,
)
from tests.cli.errors import read_error
from tests.importing import ROOT, import_file
from tests.models import build

CONFIG_OPTIONS = ROOT / "scripts" / "config_options.py"

#: Layers of corpora, and of those like them; others have 6.
LAYERS = {"enja": 3, "enja_10000": 3, "multi30k_en_de": 3, "multi30k_tiny_en_de_7250": 3}
LAYERS |= {"atis_en_tr": 2, "builtin_en_de": 2, "multi30k_tiny_en_de": 4}
SIZES = ("encoder_embed_dim", "decoder_embed_dim", "encoder_ffn_embed_dim")
SIZES_RNN = (*SIZES[:2], "encoder_hidden_size", "decoder_hidden_size")


@pytest.mark.parametrize(("corpus", "name"), PAIRS, ids=lambda of: getattr(of, "name", of))
def test_fairseq_reads_what_the_config_says_and_builds_the_model(corpus, name):
    rnn = name.startswith("rnn")
    system = corpus.system(name)
    assert system.files[-1].parent.name == FAMILIES[rnn]
    changes = [f"common.user_dir={ROOT / 'syncattn_fairseq'}"]
    changes += [f"model.{size}=16" for size in (SIZES_RNN if rnn else SIZES)]
    config = system.load(read_overrides(changes))
    parser = options.get_training_parser("translation")  # parsing adds to it
    args = options.parse_args_and_arch(parser, list(training_options(config)))
    for section in config.keys() - {"generation", "hydra"}:
        for key, value in config[section].items():
            option = NAMED.get(section, section) if key == "_name" else key
            assert getattr(args, option) == value, f"{section}.{key}"
    assert config["checkpoint"]["save_dir"] == f"checkpoints/{corpus.name}/{name}"
    mixed = "-multitask" if name == "multi_task" else ""
    assert config["task"]["data"] == f"data-bin/{corpus.name}{mixed}"

    words = build.dictionary()
    task = SimpleNamespace(
        source_dictionary=words, target_dictionary=words, source_label_dictionary=words
    )
    built = Namespace(**vars(args))
    model = ARCH_MODEL_REGISTRY[args.arch].build_model(built, task)
    needs = needs_of_model(name, model.source_fields, built)
    assert list_needs(config, describe_model(config)) == needs
    layers = [LAYERS[name] for name in (*corpus.like, corpus.name) if name in LAYERS]
    assert rnn or len(model.decoder.layers) == [6, *layers][-1]


def needs_of_model(name: str, fields: SourceFields, args: Namespace) -> set[str]:
    """Return what a model and its losses read."""
    planted = args.src_planted_weight > 0 and args.planted_distance != "linear"
    supervised = fields.rules and args.src_dep_weight > 0
    decoder = getattr(args, "decoder_dependency_layer", 0) and args.tgt_dep_weight > 0
    needs = {
        MULTI_TASK: name == "multi_task",
        "align": bool(args.load_alignments),
        f"heads.{args.source_lang}": fields.reads("heads") or supervised or planted,
        f"labels.{args.source_lang}": fields.reads("labels"),
        f"heads.{args.target_lang}": decoder,
    }
    return {need for need, needed in needs.items() if needed}


def test_nothing_is_written_twice():
    """A file has no value that those before it have already; each is used."""
    used = set()
    for corpus, name in SYSTEMS:
        before: dict[tuple[str, str], Any] = {}
        system = corpus.system(name)
        for file in system.files:
            config = read_config(SHARED / f"{file}.yaml")
            used.add(file)
            own = {(part, key): v for part, values in config.items() for key, v in values.items()}
            assert not {k for k, v in own.items() if k in before and repr(before[k]) == repr(v)}, (
                file
            )
            before |= own
    files = {path.relative_to(SHARED).with_suffix("") for path in SHARED.rglob("*.yaml")}
    assert files - used == {path for path in files if path.name in ("_data", "_plan", "_words")}


def test_every_corpus_has_a_baseline():
    for corpus in CORPORA:
        # Without its own trees, it is compared with the corpus that has them.
        assert {"transformer", "rnn_global"} & {*corpus.systems} or corpus.treebank is not None
        assert len({*corpus.systems}) == len(corpus.systems)


def test_options_and_overrides(capsys):
    config_options = import_file(CONFIG_OPTIONS)
    system = ["wmt18_en_tr", "pascal"]
    changes = ["common.fp16=false", "task.data=elsewhere", "optimization.lr=[0.1]"]
    config_options.main([*system, *changes])
    words = capsys.readouterr().out.splitlines()
    assert words[0] == "elsewhere" and "--fp16" not in words
    assert words[words.index("--lr") + 1] == "0.1"
    assert words[words.index("--adam-betas") + 1] == "(0.9,0.98)"
    assert words[words.index("--arch") + 1] == "transformer_pascal"
    assert "--beam" not in words
    config_options.main([*system, "--generate"])
    assert capsys.readouterr().out.split() == ["--beam", "4", "--lenpen", "0.6"]


def test_options_of_a_config_that_is_missing(capsys):
    for words, fault in (
        (["nothing", "pascal"], "nothing/_data.yaml: no such corpus; or name the folder of y"),
        (["wmt18_en_tr", "pascl"], "wmt18_en_tr: no system 'pascl'; did you mean pascal?"),
    ):
        assert fault in read_error(capsys, import_file(CONFIG_OPTIONS).main(words))
