"""A real Stanza tagger and parser, small enough to be trained in seconds."""

from pathlib import Path

from stanza.models import parser, tagger

from syncattn_fairseq.base.loggers import hushed
from syncattn_lab.synthetic.generated_corpus import write_corpus

BOTH = (
    "--cpu --no_pretrain --no_char --word_emb_dim=32 --hidden_dim=48"
    " --num_layers=1 --deep_biaff_hidden_dim=48 --dropout=0.1 --word_dropout=0.1"
)
TAGGER = "--max_steps=20 --eval_interval=20 --batch_size=50 --lr=0.04"  # in sentences
PARSER = (
    "--max_steps=20 --eval_interval=20 --batch_size=400 --lr=0.01 --optim=adam --beta2=0.95"
    " --no_xpos --no_ufeats"
)


@hushed("stanza")
def train_stanza_models(folder: Path, language: str) -> None:
    """Draw a corpus into a folder and train on it, beside it: ``stanza:LANG:FOLDER``."""
    write_corpus(folder, {"test": 100, "valid": 10, "train": 100}, seed=1)
    for name, train, options in (("tagger", tagger.main, TAGGER), ("parser", parser.main, PARSER)):
        train(
            [
                f"--lang={language}",
                f"--shorthand={language}",
                f"--train_file={folder}/train.{language}.conllu",
                f"--eval_file={folder}/valid.{language}.conllu",
                f"--output_file={folder}/predicted.conllu",
                f"--save_dir={folder}",
                f"--save_name={language}_{name}.pt",
                *BOTH.split(),
                *options.split(),
            ]
        )
