"""A training starts from weights that mean the same in its model."""

import logging
from argparse import Namespace

import pytest
from omegaconf import OmegaConf

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.patches.started_options import MEANING
from tests.resuming import Trainer, resume, save

OPTIONS = {
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "activation_fn": "relu",
    "no_scale_embedding": False,
    "encoder_normalize_before": False,
    "decoder_normalize_before": False,
    "zero_start": False,
    "no_token_positional_embeddings": False,
}
OTHERS = [2, 8, "gelu", True, True, True, True]


def give_options(**options):
    """A trainer with the options of the checkpoint, but for these."""
    trainer = Trainer()
    model = Namespace(**{"positions": "absolute", **OPTIONS, **options})
    trainer.cfg = Namespace(optimization=Trainer.cfg.optimization, model=model)
    return trainer


def save_options(path, options):
    return save(path, 1, cfg=OmegaConf.create({"model": options}))


def list_starts(folder, path):
    """The three ways to begin with the weights of a checkpoint: folder to save in, options."""
    resumed = folder / "resumed"
    resumed.mkdir()
    last = resumed / "checkpoint_last.pt"
    last.write_bytes(path.read_bytes())
    new = folder / "new"
    return [
        (new, {"finetune_from_model": str(path)}, path),
        (new, {"restore_file": str(path)}, path),
        (resumed, {"finetune_from_model": str(folder / "not read")}, last),
    ]


@pytest.mark.parametrize(("name", "value"), list(zip(MEANING, OTHERS, strict=True)))
def test_options_that_change_what_weights_compute_are_refused(tmp_path, name, value):
    path = save_options(tmp_path / "baseline.pt", OPTIONS)
    option = name.replace("_", "-")
    said = rf"the model was trained with --{option} {OPTIONS[name]} \(now {value}\); with"
    for folder, options, read in list_starts(tmp_path, path):
        trainer = give_options(**{name: value})
        with pytest.raises(DataError, match=f"^{read}: {said}"):
            resume(folder, trainer, **options)
        assert not hasattr(trainer, "state")


def test_all_differing_options_are_named(tmp_path):
    path = save_options(tmp_path / "baseline.pt", OPTIONS)
    trainer = give_options(decoder_attention_heads=2, activation_fn="gelu")
    with pytest.raises(DataError, match=r"heads 4 \(now 2\), --activation-fn relu \(now gelu\); "):
        resume(tmp_path, trainer, finetune_from_model=str(path))


def test_the_same_options_start(tmp_path, caplog):
    path = save_options(tmp_path / "baseline.pt", OPTIONS)
    for folder, options, _ in list_starts(tmp_path, path):
        trainer = give_options()
        resume(folder, trainer, **options)
        assert trainer.state["cfg"]["model"] == OPTIONS
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_another_order_of_words_is_named(tmp_path, caplog):
    path = save_options(
        tmp_path / "baseline.pt", OPTIONS
    )  # of a plain Transformer: without --positions
    with caplog.at_level(logging.WARNING):
        resume(tmp_path, give_options(positions="rotary"), finetune_from_model=str(path))
    said = f"{path}: the model was trained with --positions absolute (now rotary); "
    assert said in caplog.text


def test_a_plain_transformer_takes_no_model_that_starts_from_zeros(tmp_path, caplog):
    """fairseq's own has neither option: it would read the real start, at other positions."""
    path = save_options(tmp_path / "a.pt", {**OPTIONS, "zero_start": True, "positions": "marian"})
    trainer = give_options()
    del trainer.cfg.model.zero_start, trainer.cfg.model.positions
    with pytest.raises(DataError, match="--zero-start True .now False."):
        resume(tmp_path, trainer, finetune_from_model=str(path))
    path = save_options(tmp_path / "b.pt", {**OPTIONS, "positions": "marian"})
    with caplog.at_level(logging.WARNING):
        resume(tmp_path, trainer, finetune_from_model=str(path))
    assert "--positions marian (now absolute)" in caplog.text


def test_options_that_a_checkpoint_lacks_are_not_compared(tmp_path, caplog):
    path = save_options(tmp_path / "old.pt", {"encoder_attention_heads": 4})
    resume(tmp_path, give_options(activation_fn="gelu"), finetune_from_model=str(path))
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
