"""Load fairseq checkpoints with the task and the dictionaries of their training."""

from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import checkpoint_utils, utils
from fairseq.data import LanguagePairDataset, data_utils
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models import FairseqEncoderDecoderModel
from omegaconf import OmegaConf

from ..base.errors import DataError
from ..base.loggers import hushed
from ..base.user_dir import import_user_dir
from ..checkpoints.building import build, naming_checkpoint
from ..checkpoints.option_checks import list_options, require_plugin
from ..data.dataset import SyntaxPairDataset, Unparsed
from ..data.fingerprint import check_data, find_fingerprint
from ..data.segmenters import is_file_name
from ..tasks.options import TranslationWithSyntaxConfig
from ..tasks.translation_with_syntax import TranslationWithSyntaxTask


class Ensemble:
    """One or more fairseq checkpoints, loaded with the task and dictionaries of their training.

    Args:
        paths: the checkpoints, separated by ``:`` as in fairseq.
        data: folder with the dictionaries; None: the checkpoint's folder, or the one used in
            training.
        source_parser: the source's parser, see :func:`.parsing.parsers.open_parser`.
        user_dir: folder of the plugin that the models were trained with; nothing else is imported.

    Raises:
        DataError: a file is not a translation model's checkpoint, or the dictionaries are missing,
            or not those of its training.
    """

    @hushed("fairseq.tasks", "fairseq.data")  # they log the size of everything they load
    def __init__(
        self,
        paths: str,
        data: str | Path | None = None,
        source_parser: str | None = None,
        user_dir: str | Path | None = None,
    ) -> None:
        if user_dir is not None:
            import_user_dir(Path(user_dir))
        self.name = paths
        self.paths = [Path(path) for path in utils.split_paths(paths)]
        states = [_load(path) for path in self.paths]
        if user_dir is None:
            for path, state in zip(self.paths, states, strict=True):
                require_plugin(path, _section(path, state, "common").get("user_dir"))
        trained = _task_options(self.paths[0], states[0])
        self.data = self._find_data(data, trained)
        #: The fingerprint of each checkpoint's training data, by its path.
        self.fingerprints = {
            str(path): find_fingerprint(path, state)
            for path, state in zip(self.paths, states, strict=True)
        }
        for name, fingerprint in self.fingerprints.items():
            check_data(name, fingerprint, self.data, self.languages)
        self.task = self._make_task(trained)
        self.models = [
            self._make_model(path, state) for path, state in zip(self.paths, states, strict=True)
        ]
        self.task.cfg.missing_parses = "ignore"  # the parser may fail on some sentences
        fields = self.task.fields
        self.reads_parses = fields.reads("heads") or fields.reads("labels")
        if self.reads_parses and source_parser is not None:
            self.task.cfg.source_parser = source_parser
            self.task.input_parses  # noqa: B018  (opens the parser, or fails at once)
        #: The first model's training options.
        self.options = _model_options(self.paths[0], states[0])
        #: The first model's training history, as fairseq keeps it.
        self.history: list[dict[str, Any]] = states[0].get("optimizer_history") or []

    @property
    def languages(self) -> tuple[str, str]:
        """The source and the target language."""
        return self.source, self.target

    @property
    def vocabularies(self) -> tuple[Sequence[str], Sequence[str]]:
        """The symbols of the source and of the target dictionary."""
        return self.task.source_dictionary.symbols, self.task.target_dictionary.symbols

    def _find_data(self, data: str | Path | None, trained: dict[str, Any]) -> Path:
        """Find the folder of the dictionaries, and infer the languages if necessary."""
        folders = [self.paths[0].parent, *map(Path, utils.split_paths(trained.get("data") or ""))]
        if data is not None:
            folders = [Path(path) for path in utils.split_paths(str(data))]
        for folder in folders:
            pair = trained.get("source_lang"), trained.get("target_lang")
            if None in pair and folder.is_dir():
                pair = data_utils.infer_language_pair(str(folder))
            if all((folder / f"dict.{language}.txt").is_file() for language in pair):
                self.source, self.target = map(str, pair)
                return folder
        if missing := [
            str(folder) for folder in folders if data is not None and not folder.is_dir()
        ]:
            raise DataError(f"{missing[0]}: no such folder")
        if None in pair and any(folder.glob("dict.*.txt") for folder in folders):
            raise DataError(
                f"{self.name}: the checkpoint does not name its languages, and the dictionaries "
                f"in {' or '.join(map(str, folders))} do not say which language is the source; "
                "put the binarised text beside the dictionaries, or train with -s and -t"
            )
        raise DataError(
            f"{self.name}: found no dictionaries (dict.LANGUAGE.txt) in "
            f"{' or '.join(map(str, folders))}; give the folder of the binarised corpus: "
            "data=FOLDER (--data-bin FOLDER)"
        )

    def _make_task(self, trained: dict[str, Any]) -> Any:
        cfg = OmegaConf.structured(TranslationWithSyntaxConfig)
        cfg.data, cfg.source_lang, cfg.target_lang = str(self.data), self.source, self.target
        for option in ("left_pad_source", "left_pad_target"):
            if trained.get(option) is not None:
                cfg[option] = trained[option]
        # fairseq would otherwise take these from the command's other options.
        cfg.train_subset, cfg.gen_subset = "train", "test"
        cfg.dataset_impl, cfg.required_seq_len_multiple = None, 1
        return TranslationWithSyntaxTask.setup_task(cfg)

    def _make_model(self, path: Path, state: dict[str, Any]) -> Any:
        options = _with_parsers(_model_options(path, state))
        for side in ("encoder", "decoder"):  # the checkpoint has the embeddings
            setattr(options, f"{side}_embed_path", None)
        with naming_checkpoint(path):
            model = build(self.task, options, state["model"])
            if not isinstance(model, FairseqEncoderDecoderModel):
                raise DataError(
                    "is not a translation model; give a checkpoint of a translation model"
                )
            _try_model(self.task, model)
        return model


def _load(path: Path) -> dict[str, Any]:
    state: dict[str, Any] = checkpoint_utils.load_checkpoint_to_cpu(str(path))
    if not state.get("cfg"):
        raise DataError(f"{path}: contains no fairseq model")
    return state


def _section(path: Path, state: dict[str, Any], name: str) -> dict[str, Any]:
    """Return one group of a checkpoint's options."""
    with naming_checkpoint(path):
        return list_options(list_options(state["cfg"]).get(name))


def _task_options(path: Path, state: dict[str, Any]) -> dict[str, Any]:
    """Return the checked options of a checkpoint's training data."""
    options = _section(path, state, "task")
    sound: dict[str, Callable[[Any], bool]] = {
        "data": lambda value: isinstance(value, str),
        "source_lang": is_file_name,
        "target_lang": is_file_name,
        "left_pad_source": lambda value: isinstance(value, bool),
        "left_pad_target": lambda value: isinstance(value, bool),
    }
    for option, is_sound in sound.items():
        value = options.get(option)
        if value is not None and not is_sound(value):
            raise DataError(
                f"{path}: the checkpoint's option {option} has the invalid value "
                f"{str(value)[:60]!r}; use another checkpoint"
            )
    return options


def _model_options(path: Path, state: dict[str, Any]) -> Namespace:
    saved = _section(path, state, "model")
    return Namespace(**{"_name": saved.get("arch"), **saved})


def _with_parsers(options: Namespace) -> Namespace:
    """Restore an export's parser options, which fairseq's Transformer ignores."""
    values = dict(vars(options))
    if values.get("arch") == "transformer" and "alignment_layer" in values:
        values |= {"arch": "syntax_transformer", "_name": "syntax_transformer"}
        values |= {"encoder_parser": "dot", "decoder_parser": "dot"}
    return Namespace(**values)


@torch.no_grad()
def _try_model(task: Any, model: Any) -> None:
    """Let a model, on the CPU, translate an unknown word, and score another as its translation."""
    words, target_words = task.source_dictionary, task.target_dictionary
    sentence = torch.tensor([words.unk(), words.eos()])
    pairs = LanguagePairDataset([sentence], [2], words, tgt_dict=target_words)
    parse = Unparsed(np.array([1]))
    dataset = SyntaxPairDataset(pairs, parse, None, parse, task.fields)
    batch = dataset.collater([dataset[0]])
    before = torch.tensor([[target_words.eos(), target_words.unk()]])
    scores, _ = model.eval()(**batch["net_input"], prev_output_tokens=before)
    if not scores.isfinite().all():
        raise DataError("the model's scores are not finite numbers; use another checkpoint")
    generator = task.build_generator([model], GenerationConfig(beam=1, max_len_b=2))
    task.inference_step(generator, [model], batch)
