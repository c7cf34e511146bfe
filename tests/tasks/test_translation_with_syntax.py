import shutil
from argparse import Namespace
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.modules.fairseq_dropout import FairseqDropout
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks.translation import TranslationTask
from omegaconf import OmegaConf

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.criterions.label_smoothed_cross_entropy_with_syntax import (
    LabelSmoothedCrossEntropyWithSyntax,
    make_config,
)
from syncattn_fairseq.data.dataset import Unparsed
from syncattn_fairseq.registered_names import CRITERION
from syncattn_fairseq.tasks.fast import FastDropout, SameDropout
from syncattn_fairseq.tasks.translating import sharing_sources
from syncattn_fairseq.tasks.translation_with_syntax import (
    TranslationWithSyntaxTask,
    may_read_parses,
)
from tests.checkpoints import make_task, model_options


def test_a_test_set_may_lack_the_target(small_corpus, own_data):
    for path in [*own_data.glob("test.en-de.de.*"), *own_data.glob("test.heads.en-de.de.*")]:
        path.unlink()
    task = make_task(own_data)
    task.load_dataset("test")
    whole = make_task(small_corpus.data)
    whole.load_dataset("test")
    batch, expected = (t.datasets["test"].collater([t.datasets["test"][0]]) for t in (task, whole))
    assert batch["src_parents"].equal(expected["src_parents"])
    assert "tgt_parents" in expected
    assert "tgt_parents" not in batch


def test_gold_heads_need_dependency_heads(small_corpus):
    for arch, refused in (("syntax_transformer_tiny", True), ("transformer_dbsa_tiny", False)):
        task = make_task(small_corpus.data, gold_source_heads=True)
        model = task.build_model(model_options(arch))
        lack = pytest.raises(DataError, match="^--gold-source-heads: the model's encoder has no")
        with lack if refused else nullcontext():
            task.build_generator([model], Namespace())


def test_gold_heads_of_input_have_to_be_given(small_corpus):
    task = make_task(small_corpus.data, gold_source_heads=True)
    tokens, lengths = task.get_interactive_tokens_and_lengths(["a b ."], lambda text: text)
    with pytest.raises(
        DataError, match="^--gold-source-heads needs the parses of the input; add --input"
    ):
        task.build_dataset_for_inference(tokens, lengths)


def test_fairseqs_own_models_decode_with_no_model_that_reads_parses(small_corpus):
    task = make_task(small_corpus.data)
    models = [task.build_model(model_options(arch)) for arch in ("transformer", "rnn_global")]
    task.build_generator(models, Namespace())
    models.append(task.build_model(model_options("transformer_pascal")))
    with pytest.raises(DataError, match="^the ensemble has models that read parses, and a model"):
        task.build_generator(models, Namespace())


@pytest.mark.parametrize("gen_subset", ["train", "test"])
def test_the_training_text_needs_parses_if_it_is_translated(small_corpus, gen_subset):
    task = make_task(small_corpus.data, gen_subset=gen_subset, missing_parses="stop")
    model = task.build_model(model_options("transformer_pascal"))
    task.load_dataset("train")
    task.datasets["train"].list_unparsed = lambda: [4]
    lack = pytest.raises(DataError, match=r"^train: 1 of \d+ sentences have no parse")
    with lack if gen_subset == "train" else nullcontext():
        task.build_generator([model], Namespace())


ROOM = "syncattn_fairseq.tasks.translation_with_syntax."


@pytest.mark.parametrize("fast", [False, True])
def test_fast_reaches_model_losses_and_updates(small_corpus, monkeypatch, fast):
    task = make_task(small_corpus.data, fast=fast)
    model = task.build_model(model_options("syntax_transformer_tiny"))
    kinds = {type(module) for module in model.modules() if isinstance(module, FairseqDropout)}
    assert kinds == {FastDropout if fast else SameDropout}
    losses: Any = make_config()()
    losses.sentence_avg = False
    assert LabelSmoothedCrossEntropyWithSyntax.build_criterion(losses, task).fast == fast
    asked: list[Any] = []
    monkeypatch.setattr(ROOM + "multiplies_bf16", lambda: True)
    monkeypatch.setattr(ROOM + "bf16_products", lambda rows: nullcontext(asked.append(rows(7))))
    monkeypatch.setattr(ROOM + "fuse_optimizer", lambda optimizer, on_cpu: asked.append(on_cpu))
    monkeypatch.setattr(TranslationTask, "train_step", lambda *args, **kwargs: "trained")
    assert task.train_step({}, model, None, None, update_num=1) == "trained"
    assert asked == ([True, 7] if fast else [False])
    task.load_dataset("train")
    task.get_batch_iterator(task.datasets["train"], max_tokens=200)
    if fast:
        assert task.train_step({}, model, None, None, update_num=1) == "trained"
        assert asked[-1] > 7, "rows are rounded up"
    assert task.datasets["train"].plan is None, "on a CPU, batches are not padded"


class Recording:
    """What stands for graphs: it only notes what it is asked for."""

    def __init__(self, *given: Any) -> None:
        self.given = given
        self.forgotten = self.reports = 0
        self.trained: Any = "replayed"

    def belongs_to(self, *given: Any) -> bool:
        return given == self.given[:3]

    def step(self, sample: Any, update: int) -> Any:
        return self.trained

    def forget(self) -> None:
        self.forgotten += 1

    def report(self) -> None:
        self.reports += 1


def test_on_a_gpu_batches_are_padded_and_passes_are_replayed(small_corpus, monkeypatch):
    task = make_task(small_corpus.data, fast=True)
    devices: list[Any] = []
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr(ROOM + "find_recorder", lambda d: devices.append(d.type) or "recorder")
    monkeypatch.setattr(ROOM + "GraphedTraining", Recording)
    monkeypatch.setattr(TranslationTask, "train_step", lambda *args, **kwargs: "trained")
    task.cfg.cpu = False
    model = task.build_model(model_options("syntax_transformer_tiny"))
    for split in ("train", "valid"):
        task.load_dataset(split)
        iterator = task.get_batch_iterator(task.datasets[split], max_tokens=200)
        assert task.get_batch_iterator(task.datasets[split], max_tokens=200) is iterator
    train, valid = (task.datasets[split] for split in ("train", "valid"))
    assert valid.plan is None and train.plan is task.plan and task.plan.added <= 0.1
    batch = train.collater([train[index] for index in range(3)])
    assert (*batch["net_input"]["src_tokens"].shape, batch["target"].size(1)) in {
        tuple(shape) for shape in task.plan.shapes.tolist()
    }

    given = model, "losses", "optimizer"
    assert task.train_step({}, *given, update_num=1) == "replayed" and devices == ["cuda"]
    graphs: Any = task.graphs
    assert graphs.given == (*given, "recorder")
    assert task.train_step({}, *given, update_num=2, ignore_grad=True) == "trained"
    graphs.trained = None
    assert task.train_step({}, *given, 3) == "trained" and task.graphs is graphs
    assert task.train_step({}, model, "losses", "another", 4) == "replayed"
    assert task.graphs is not graphs, "fairseq has made another optimizer"
    graphs = task.graphs
    task.begin_epoch(2, model)
    task.begin_valid_epoch(2, model)
    assert graphs.reports == 2

    task.load_dataset("train", epoch=2)  # the same text again, and then another part
    task.get_batch_iterator(task.datasets["train"], max_tokens=200, epoch=2)
    assert graphs.forgotten == 0 and task.datasets["train"].plan is task.plan
    task.get_batch_iterator(
        task.datasets["train"], max_tokens=90, epoch=3, disable_iterator_cache=True
    )
    assert graphs.forgotten == 1


@pytest.mark.parametrize(
    ("arch", "options"), [("rnn_global", {}), ("transformer_dbsa_tiny", {"encoder_layerdrop": 0.5})]
)
def test_batches_of_models_that_cannot_be_recorded_are_not_padded(
    small_corpus, monkeypatch, arch, options
):
    task = make_task(small_corpus.data, fast=True)
    monkeypatch.setattr(ROOM + "find_recorder", lambda device: "recorder")
    task.build_model(model_options(arch, **options))
    task.load_dataset("train")
    task.get_batch_iterator(task.datasets["train"], max_tokens=200)
    assert task.plan is not None and task.datasets["train"].plan is None


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        (["rnn_global"], True),
        (["rnn_global", "rnn_local"], True),
        (["rnn_global", "syntax_transformer_tiny"], False),
    ],
)
def test_lengths_are_for_encoders_that_take_them(small_corpus, models, expected):
    task = make_task(small_corpus.data)
    for arch in models:
        task.build_model(model_options(arch))
    task.load_dataset("valid")
    batch = task.datasets["valid"].collater([task.datasets["valid"][0]])
    assert ("lengths_on_cpu" in batch["net_input"]) == expected


def test_each_epoch_has_the_parses_of_its_own_folder(small_corpus, tmp_path):
    other = tmp_path / "bin"
    other.mkdir()
    for path in small_corpus.data.iterdir():
        for split in ("train", "valid") if path.name.startswith("test.") else ():
            shutil.copyfile(path, other / path.name.replace("test", split, 1))
        if not path.name.startswith(("train.", "valid.", "test.")):
            shutil.copy(path, other)
    first, second = make_task(small_corpus.data), make_task(other)
    both = make_task(f"{small_corpus.data}:{other}")
    for epoch, task in ((1, first), (2, second), (3, first)):
        for split, expected in (("train", task), ("valid", first)):
            both.load_dataset(split, epoch=epoch)
            expected.load_dataset(split)
            pairs, alone = both.datasets[split], expected.datasets[split]
            for result, item in zip(pairs, alone, strict=True):
                for field in ("source", "target", "source_marks", "target_marks"):
                    assert result[field].equal(item[field])
    assert len(first.datasets["train"]) != len(second.datasets["train"])


@pytest.mark.parametrize(
    ("arch", "copies"),
    [("transformer", 1), ("transformer_dbsa", 1), ("rnn_syntax_directed", 3)],
)
def test_a_source_is_stored_once_for_its_beam(small_corpus, monkeypatch, arch, copies):
    task = make_task(small_corpus.data)
    model = task.build_model(model_options(arch)).eval()
    task.load_dataset("test")
    batch = task.datasets["test"].collater([task.datasets["test"][i] for i in range(6)])
    generator = SequenceGenerator([model], task.target_dictionary, beam_size=3, max_len_b=9)
    reorder = model.decoder.reorder_incremental_state_scripting
    copied: list[bool] = []

    def keys_of(state: Any) -> Any:
        if arch.startswith("rnn"):
            return model.decoder.get_incremental_state(state, "memory").keys
        return model.decoder.layers[0].encoder_attn._get_input_buffer(state)["prev_key"]

    def note(state: Any, order: Any) -> None:
        before = keys_of(state)
        reorder(state, order)
        assert keys_of(state).size(0) * 3 == order.size(0) * copies
        copied.append(keys_of(state) is not before)

    monkeypatch.setattr(model.decoder, "reorder_incremental_state_scripting", note)
    shared = task.inference_step(generator, [model], batch)
    assert not copied[0] and len(copied) > 3
    monkeypatch.undo()
    for ours, theirs in zip(shared, generator.generate([model], batch), strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert one["tokens"].equal(other["tokens"])
            torch.testing.assert_close(one["positional_scores"], other["positional_scores"])


@pytest.mark.parametrize(("arch", "on_gpu"), [("transformer_dbsa", 1), ("rnn_local", 5)])
def test_a_transformers_source_is_not_shared_on_a_gpu(small_corpus, arch, on_gpu):
    model = make_task(small_corpus.data).build_model(model_options(arch))
    parts = [part for part in model.modules() if hasattr(part, "beam_size")]
    for device, beam_size in (("cpu", 5), ("meta", on_gpu)):
        with sharing_sources([model.to(device)], 5):
            assert {part.beam_size for part in parts} == {beam_size}
        assert {part.beam_size for part in parts} == {1}


def test_all_epochs_have_the_batches_of_the_first_one(small_corpus):
    def iterate(task: TranslationWithSyntaxTask, epoch: int, **options: bool) -> Any:
        return task.get_batch_iterator(
            task.dataset("train"), max_sentences=2, seed=1, epoch=epoch, **options
        )

    def load() -> TranslationWithSyntaxTask:
        task = make_task(small_corpus.data)
        task.load_dataset("train")
        dataset = task.dataset("train")
        # As if all sentences had the same length: otherwise the lengths decide the order.
        dataset.ordered_indices = lambda: np.random.permutation(len(dataset))
        return task

    def batches(iterator: Any) -> list[list[int]]:
        return [list(batch) for batch in iterator.frozen_batches]

    task = load()
    straight, resumed = iterate(task, 1), iterate(load(), 3)
    assert len(straight) > 2
    assert batches(straight) == batches(resumed)
    assert (straight.epoch, resumed.epoch) == (1, 3)
    list(straight.next_epoch_itr())
    assert iterate(task, 2) is straight
    list(straight.next_epoch_itr())
    assert straight.epoch == 2, "asking for an epoch does not skip it"
    for option in ("disable_iterator_cache", "update_epoch_batch_itr"):
        anew = iterate(load(), 3, **{option: True})
        assert anew.epoch == 3
        assert batches(anew) != batches(straight)


def test_a_byte_order_mark_is_no_part_of_the_input(small_corpus):
    task = make_task(small_corpus.data)
    word = task.source_dictionary[10]

    def encode(*lines: str) -> list[list[int]]:
        tokens, lengths = task.get_interactive_tokens_and_lengths(list(lines), lambda text: text)
        task.build_dataset_for_inference(tokens, lengths)
        return [row.tolist() for row in tokens]

    end, unknown = task.source_dictionary.eos(), task.source_dictionary.unk()
    assert encode(f"\ufeff{word} {word}", word) == [[10, 10, end], [10, end]]
    assert encode(f"\ufeff{word}") == [[unknown, end]], "not at the beginning"


@pytest.mark.parametrize("name", ["dict.en.txt", "dict.de.txt", "dict.labels.en.txt"])
def test_folders_of_other_dictionaries_are_refused(small_corpus, own_data, name):
    both, path = f"{small_corpus.data}:{own_data}", own_data / name
    make_task(both)
    *first, last = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join([last, *first]), "utf-8")
    with pytest.raises(
        DataError, match=f"^{path}: differs from the dictionary {small_corpus.data}"
    ):
        make_task(both)


def test_a_damaged_dictionary_is_named(small_corpus, tmp_path):
    path = tmp_path / "dict.en.txt"
    content = (small_corpus.data / "dict.en.txt").read_bytes()
    path.write_bytes(content)
    result = TranslationWithSyntaxTask.load_dictionary(str(path))
    assert result.symbols == make_task(small_corpus.data).source_dictionary.symbols
    for damaged in (content[:-3].rstrip(b" 0123456789"), content + b"\xff 1\n"):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=f"^{path}:"):
            TranslationWithSyntaxTask.load_dictionary(str(path))


@pytest.mark.parametrize("language", ["en", "de"])
def test_words_beyond_a_dictionary_are_refused(own_data, language):
    path = own_data / f"dict.{language}.txt"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:20]), encoding="utf-8")
    (own_data / "fingerprint.json").unlink()  # data of an earlier version
    told = rf"train\.en-de\.{language}\.bin: has words beyond the 24 "
    with pytest.raises(DataError, match=told):
        make_task(own_data).load_dataset("train")


def test_unparsed_text_needs_no_dictionary_of_labels(small_corpus, tmp_path):
    path = small_corpus.checkpoint("transformer_sh")
    unlabelled = tmp_path / "bin"
    unlabelled.mkdir()
    for file in small_corpus.data.iterdir():
        if "labels" not in file.name and "heads" not in file.name:
            (unlabelled / file.name).symlink_to(file)
    scores = []
    for data in (small_corpus.data, unlabelled):
        task = make_task(data, missing_parses="ignore")
        [model], _ = checkpoint_utils.load_model_ensemble([str(path)], task=task)
        task.load_dataset("test")
        text = task.datasets["test"]
        if text.src_labels is not None:
            text.src_labels = Unparsed(text.dataset.src_sizes - 1)
        scores.append(model.eval()(**text.collater([text[0], text[5]])["net_input"])[0])
    assert scores[0].equal(scores[1])

    with pytest.raises(
        DataError, match=f"^{unlabelled}: has no dictionary of the source's dependency"
    ):
        task.build_criterion(OmegaConf.create({"_name": "cross_entropy"}))
    task.cfg.input_labels = "labels"
    with pytest.raises(
        DataError, match=f"^{unlabelled}: has no dictionary of the source's dependency"
    ):
        task.input_parses  # noqa: B018
    with pytest.raises(DataError, match="the data has no dictionary of the source's dependency"):
        checkpoint_utils.load_model_ensemble([str(path)], task=make_task(unlabelled))


@pytest.mark.parametrize(
    ("arch", "reads"),
    [
        ("transformer", False),
        ("syntax_transformer_tiny", False),
        ("transformer_lpsi_tiny", False),
        ("transformer_dbsa_tiny", True),
        ("transformer_pascal_tiny", True),
    ],
)
def test_heads_are_read_for_models_that_want_them(small_corpus, arch, reads):
    task = make_task(small_corpus.data)
    task.build_model(model_options(arch))
    task.load_dataset("valid")
    assert task.datasets["valid"].heads["target"] is not None, "nobody said what losses want"
    task.build_criterion(losses())
    task.load_dataset("valid")
    dataset = task.datasets["valid"]
    assert {side: heads is not None for side, heads in dataset.heads.items()} == {
        "source": reads,
        "target": reads,
    }
    assert ("tgt_parents" in dataset.collater([dataset[0]])) == reads


def losses(**weights: Any) -> Any:
    options: Any = make_config()()
    options.criterion, options.sentence_avg = CRITERION, False
    vars(options).update(weights)
    return options


class Strange:
    """A loss or a model from outside."""

    def __init__(self, *args: Any) -> None:
        pass

    def list_fields(self) -> frozenset[Any]:
        return frozenset()


def test_heads_are_read_for_losses_that_may_want_them(small_corpus, monkeypatch):
    task = make_task(small_corpus.data)
    task.build_model(model_options("transformer"))
    criterion = task.build_criterion(losses())
    assert not criterion.reads_parses() and not task._reads_heads()
    criterion.terms.append(Strange())
    assert criterion.reads_parses(), "nobody knows what it reads"
    planted = task.build_criterion(losses(src_planted_weight=1.0, planted_distance="linear"))
    assert not planted.reads_parses()
    planted = task.build_criterion(losses(src_planted_weight=1.0, planted_distance="random"))
    assert planted.reads_parses() and task._reads_heads()
    assert may_read_parses(Strange(), None), "a model that does not describe itself"
    task.criteria_read = [False]
    task.cfg.gold_source_heads = True
    assert task._reads_heads()
