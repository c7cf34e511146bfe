"""Export to a checkpoint of fairseq's own Transformer, decoded without this package."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils, tasks
from fairseq.dataclass.configs import FairseqConfig
from fairseq.models.transformer import TransformerModel
from fairseq.tasks.translation import TranslationConfig
from omegaconf import OmegaConf

from ..base.errors import DataError
from ..data.fingerprint import IN_CHECKPOINTS
from ..data.segmenters import Pieces
from ..patches.swish import SWISH
from .check import Sample, scores
from .ctranslate2_format import refuse_ends, refuse_positions
from .fold import FoldedModel
from .format import Format

#: The history of a model that fairseq has not trained; it reads these entries.
_UNTRAINED = (
    {
        "optimizer_name": "adam",
        "lr_scheduler_state": {"best": None},
        "num_updates": 0,
        "criterion_name": "CrossEntropyCriterion",
    },
)


class FairseqFormat(Format):
    """The export format for fairseq alone: ``model.pt`` and its dictionaries."""

    def refuse(self, folded: FoldedModel) -> None:
        """Raise `DataError` if the model has a feature missing from fairseq's own Transformer."""
        if folded.labels is not None:
            folded.reject(
                "the model reads dependency labels (S&H), and fairseq's Transformer does not; "
                "use --format ctranslate2"
            )
        refuse_positions(folded, "fairseq's Transformer")
        refuse_ends(folded, "fairseq's Transformer")
        if folded.model.cfg.activation_fn == SWISH:
            folded.reject(
                "fairseq without this package has no --activation-fn swish; use --format "
                "ctranslate2"
            )

    def write(self, folded: FoldedModel, folder: Path, quantization: str | None) -> None:
        """Write the checkpoint, its dictionaries and the source's subword model."""
        task = {"source_lang": folded.source, "target_lang": folded.target}
        task |= {side: folded.task.cfg[side] for side in ("left_pad_source", "left_pad_target")}
        write_checkpoint(
            folder / "model.pt",
            task,
            vars(folded.options),
            folded.model.state_dict(),
            folded.history,
            {IN_CHECKPOINTS: folded.fingerprint.as_plain()},
        )
        folded.task.source_dictionary.save(str(folder / f"dict.{folded.source}.txt"))
        folded.task.target_dictionary.save(str(folder / f"dict.{folded.target}.txt"))
        if found := _find_splitter(folded):
            model, _, name = found
            shutil.copyfile(model, folder / name)

    def scores(self, folder: Path, folded: FoldedModel, sample: Sample) -> list[float]:
        """Return the log-probability of each target under the checkpoint, loaded by fairseq."""
        state = checkpoint_utils.load_checkpoint_to_cpu(str(folder / "model.pt"))
        state["cfg"]["task"]["data"] = str(folder)
        task = tasks.setup_task(state["cfg"]["task"])
        model = task.build_model(state["cfg"]["model"])
        if type(model) is not TransformerModel:
            raise DataError(
                f"{folded.name}: fairseq reads the exported checkpoint as a "
                f"{type(model).__name__}, not as a TransformerModel"
            )
        model.load_state_dict(state["model"])
        inputs = ("src_tokens", "src_lengths", "prev_output_tokens")
        net_input = {name: sample.net_input[name] for name in inputs}
        return scores(model.eval(), net_input, sample.target)

    def usage(self, folded: FoldedModel, folder: Path) -> list[str]:
        """Return Python code to translate with fairseq's ``from_pretrained``."""
        found = _find_splitter(folded)
        options, sentence = f', bpe="{found[1]}"' if found else "", "A sentence ."
        source = folded.sides[0]
        if all(folded.sides) and source and source.tokenizer == "moses" and source.case == "kept":
            dashes = not source.aggressive
            options += f', tokenizer="moses", moses_no_escape=True, moses_no_dash_splits={dashes}'
            sentence = "A sentence."
        if source and source.tokenizer == "raw":
            sentence = "A sentence."
        return [
            "from fairseq.models.transformer import TransformerModel\n"
            f'model = TransformerModel.from_pretrained("{folder}", "model.pt", "."{options})\n'
            f'print(model.translate("{sentence}"))'
        ]


def write_checkpoint(
    path: Path,
    task: Mapping[str, Any],
    options: Mapping[str, Any],
    state: Mapping[str, Any],
    history: Sequence[Any] = _UNTRAINED,
    task_state: Mapping[str, Any] | None = None,
) -> None:
    """Write a checkpoint with plain values only, for fairseq's task ``translation``.

    The task reads the dictionaries beside the checkpoint. Since PyTorch 2.6 fairseq can load other
    values only if their classes are registered in advance, as this package does.

    Args:
        path: the file.
        task: options of the task, by name: the languages, and the sides of padding.
        options: the options of the model, by name.
        state: the model's weights.
        history: the training history, as fairseq keeps it.
        task_state: the state of the task; None: empty.
    """
    cfg = OmegaConf.to_container(OmegaConf.structured(FairseqConfig), enum_to_str=True)
    defaults = OmegaConf.to_container(OmegaConf.structured(TranslationConfig), enum_to_str=True)
    assert isinstance(cfg, dict) and isinstance(defaults, dict)
    defaults |= {"_name": "translation", "data": ".", "train_subset": "train"}
    defaults |= {"dataset_impl": None, "required_seq_len_multiple": 1}
    checkpoint = {
        "args": None,
        "cfg": _values(
            {
                **cfg,
                "task": {**defaults, **task},
                "model": options,
                "criterion": {"_name": "cross_entropy", "sentence_avg": False},
            }
        ),
        "model": dict(state),
        "optimizer_history": _values([*history]),
        "task_state": dict(task_state or {}),
        "extra_state": {},
        "last_optimizer_state": None,
    }
    torch.save(checkpoint, path)


def _find_splitter(folded: FoldedModel) -> tuple[str | Path, str, str] | None:
    """Return the path of the source's subword model, with fairseq's names for kind and file.

    None: there is none, or fairseq cannot split text with it, as it has no vocabulary for codes.
    """
    if folded.subwords is None or folded.subwords[0].vocabulary is not None:
        return None
    model = folded.subwords[0]
    if isinstance(model.open(), Pieces):
        return model.path, "sentencepiece", "sentencepiece.bpe.model"
    return model.path, "subword_nmt", "bpecodes"


def _values(value: Any) -> Any:
    """Reduce a checkpoint's metadata to numbers, strings, lists and dictionaries."""
    if OmegaConf.is_config(value):
        value = OmegaConf.to_container(value, enum_to_str=True)
    if isinstance(value, Mapping):
        return {str(key): _values(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_values(entry) for entry in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
