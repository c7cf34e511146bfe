"""Every command of README, docs/ and study/, run as it is printed, at tiny sizes."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from lab.tests.commands.parsing import refusal
from syncattn_fairseq.data.spans import format_spans
from syncattn_lab.synthetic.generated_corpus import write_corpus
from tests.end_to_end.commands import BIN, FORKED

ROOT = Path(__file__).parents[3]
#: In the order in which they are read: later ones go on with what earlier ones have made.
PAGES = (
    *(f"docs/{page}.md" for page in ("own_data", "guide", "data", "export", "serving")),
    "README.md",
    *(f"docs/{page}.md" for page in ("python", "pictures", "extending")),
    *(f"docs/{page}.md" for page in ("install", "recipes", "settings")),
    *(f"study/{page}.md" for page in ("plan", "findings", "details", "results_multi30k")),
    "study/released.md",
)

#: What a page, or a block with some words, needs that is an extra.
EXTRAS = {"docs/export.md": "ctranslate2", "--format ctranslate2": "ctranslate2"}
EXTRAS |= {"docs/pictures.md": "altair", "--report ": "altair", "MarianMTModel": "transformers"}

_WIDTHS = (f"model.{side}_embed_dim=32" for side in ("encoder", "decoder", "encoder_ffn"))
_SMALL = " ".join(("model.encoder_layers=2", "model.decoder_layers=2", *_WIDTHS))
#: What is smaller here; nothing else of a block is changed.
SMALLER = {
    "--vocab-size 2000": "--vocab-size 400",
    "mine syncattn --report": f"mine syncattn {_SMALL} optimization.max_update=2 "
    "generation.max_len_b=9 --report",
    "mine syncattn --check": f"mine syncattn {_SMALL} --check",
    "--arch transformer_dbsa ": "--arch transformer_dbsa_tiny ",
    "--max-update 850": "--max-update 2 --batch-size 8",
    "--max-update 10\n": "--max-update 2\n",
    "--idea examples/": "--dry-run --idea examples/",
    "--number 80 ": "--number 3 ",
    "MarianConfig(": "MarianConfig(vocab_size=9, pad_token_id=0, encoder_layers=1, "
    "decoder_layers=1, encoder_ffn_dim=8, decoder_ffn_dim=8, ",
    "fairseq-generate data-bin ": "fairseq-generate data-bin --max-len-b 9 ",
}
#: Recipes would download corpora and train for days: they say what they would run.
RECIPE = re.compile(r"^bash scripts/recipe.sh( [^#\n]*)", re.MULTILINE)

#: How commands begin that are not run, and why.
NOT_RUN = {
    "bash scripts/recipe.sh wmt14_en_de syncattn --check": "test_missing.py does",
    "sbatch": "needs Slurm",
    "git clone": "downloads",
    "cd syncattn-fairseq": "the same",
    "source .venv/bin/activate": "the environment of the tests is active",
    "source venv/bin/activate": "the same",
    "python -m venv": "installs",
    "pip install": "installs",
    "syncattn-serve --path online": "serves until it is ended; tests/serving asks it",
    "curl -d": "asks that service",
    "bash scripts/build.sh": "the same; tests/test_packaging.py makes the wheel",
    "bash scripts/quickstart.sh": "takes minutes",
    "bash scripts/install.sh": "installs",
    "python -m syncattn_fairseq --completion": "writes into the home folder",
    "python -c 'import stanza; stanza.download": "downloads",
    "for split in train valid test; do for side": "parses by Stanza; the corpus has its own",
    "syncattn-parse --lang de": "needs a model of Stanza; tests/parsing runs it with small ones",
    "bash scripts/recipe.sh builtin_en_de @lpsi --seeds 1 2 3 --table": "there are no results",
    "bash scripts/recipe.sh mine --plan": "lab/tests/recipes/test_plan.py does",
    "syncattn-recipe --init treebanks": "lab/tests/recipes/test_own_parses.py does",
    "syncattn-recipe --init en_de": "docs/own_data.md does the same",
    "syncattn-recipe en_de syncattn": "the same",
    "syncattn-export --path checkpoints/en_de": "the same",
    "for corpus in multi30k_tiny_en_de_3625": "the same",
    "for system in transformer rotary lpsi": "the same",
    "for seed in 11 14": "the same",
    "syncattn-recipe iwslt14_de_en_words": "downloads",
    "fairseq-hydra-train": "needs WMT14; tests/test_configs.py makes every config's model",
    "fairseq-train $(python": "the same",
    "fairseq-generate data-bin/wmt14_en_de ": "the same",
    "syncattn-translate --path checkpoints/iwslt14_de_en_words/": "needs IWSLT14",
    "syncattn-score trees --gold gold.en": "the same",
    "for system in transformer lpsi syncattn pascal": "needs trainings on Multi30k",
    "syncattn-recipe multi30k_tiny_en_de_3625 syncattn": "needs Multi30k",
    "syncattn-recipe multi30k_tiny_en_de_3625 @nearby": "test_forest.py draws these",
    "python -m study.counted_parents": "lab/tests/study/test_analyses.py does",
    "python -m study.ordinary_heads": "the same",
    "syncattn-import opus-mt": "needs a published model; test_start.py runs these with a small one",
    'echo "The old man sees the dogs." | syncattn-translate --path imported': "the same",
    "syncattn-recipe --init tuned": "the same",
    "syncattn-recipe tuned": "the same",
    "syncattn-export --path checkpoints/tuned": "the same",
    "for side in en de; do for split in train valid test": "the same",
    "syncattn-preprocess -s en -t de --start": "the same",
    "fairseq-train data-bin/by_hand": "the same",
    "syncattn-recipe --init mine raw/train.en raw/train.de --start": "the same",
    "syncattn-recipe mine @all --seeds 1 2 3": "the same",
    "python examples/fine_tune_marian.py": "downloads; tests/test_examples.py does",
    "bash study/start.sh": "takes an hour; lab/tests/study/test_start.py does",
    "syncattn-score heads": "lab/tests/evaluation/test_head_probe.py does",
    "bash study/exchange.sh": "needs a GPU; lab/tests/study/test_exchange.py does",
    "python -m study.exchange": "trains for hours; lab/tests/study/test_exchange.py does",
    "python -m study.pascal_released": "downloads; lab/tests/study/test_pascal_released.py does",
    "python -m study.gradients": "needs trainings on Multi30k",
    "python -m study.loops": "the same",
    "python -m study.parser_noise": "takes minutes",
}
#: The first lines of blocks of Python that are parts of a file that is run.
PARTS = {"@dataclass": [f"examples/{name}/__init__.py" for name in ("user_dir", "length_aware")]}

#: What a page takes for granted before the command that begins so.
BEFORE = {
    "syncattn-translate --path checkpoints/lpsi/": """
fairseq-train data-bin --user-dir syncattn_fairseq --task translation_with_syntax \
    --arch transformer_lpsi_tiny --share-all-embeddings --save-dir checkpoints/lpsi \
    --criterion label_smoothed_cross_entropy_with_syntax --optimizer adam --max-tokens 4096 \
    --max-update 1""",
    # Of the same sentences, read backwards.
    "syncattn-score links": """
python -c '
import json
for line in open("lpsi.jsonl"):
    record = json.loads(line)
    record["source"], record["target"] = record["target"], record["source"]
    for links in (record["links"], *record["layer_links"].values()):
        links[:] = [link[::-1] for link in links]
    print(json.dumps(record))' > lpsi.de-en.jsonl""",
    'model = syncattn_fairseq.load("quickstart/plain")': """
mkdir quickstart
syncattn-export --path checkpoints/checkpoint_best.pt --data-bin data-bin --subwords bpe.model \
    --format fairseq --output quickstart/plain""",
    "syncattn-show --html": """
for system in baseline syncattn; do
    mkdir $system
    cp translations.txt forced.jsonl $system
    cp printed/own_data.md $system/train.log
done""",
}


@dataclass(frozen=True)
class Block:
    """A block of code of a page."""

    page: str
    line: int
    language: str
    code: str

    @property
    def commands(self) -> list[str]:
        """Its commands, each on one line, without comments."""
        lines = re.sub(r"\\\n\s*", "", self.code).splitlines()
        return [re.sub(r"(^|\s+)# .*", "", line) for line in lines if line.strip()]


def blocks(page: str) -> Iterator[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield Block(page, text.count("\n", 0, found.start()) + 1, found[1], found[2])


#: Languages of blocks that show files; lab/tests/recipes/test_corpus_facts.py reads those in YAML.
SHOWN = ("", "json", "yaml")
BLOCKS = [block for page in PAGES for block in blocks(page) if block.language not in SHOWN]
COMMANDS = [line for block in BLOCKS if block.language == "bash" for line in block.commands]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout, as far as the pages speak of it, with a corpus in ``words/``."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("syncattn_fairseq", "scripts", "configs", "examples"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "study" / "results", folder / "study" / "results")
    write_corpus(folder / "words", {"test": 6, "valid": 7, "train": 400}, seed=3)
    (folder / "raw").mkdir()
    for split, language in product(("train", "valid", "test"), ("en", "de")):
        text = folder / "words" / f"{split}.{language}"
        shutil.copy(text, folder / "raw")
        # Its heads are those of what is between spaces.
        words = (re.finditer(r"\S+", line) for line in text.read_text().splitlines())
        spans = (format_spans([word.span() for word in found]) for found in words)
        text.with_name(f"{split}.spans.{language}").write_text("".join(f"{s}\n" for s in spans))
    (folder / "printed").mkdir()
    return folder


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.page}:{block.line}")
def test_block(block, folder, monkeypatch):
    for words, extra in EXTRAS.items():
        if words == block.page or words in block.code:
            pytest.importorskip(extra)
    if block.language == "python":
        monkeypatch.chdir(folder)
        if files := PARTS.get(block.code.splitlines()[0]):
            assert any(block.code in Path(file).read_text() for file in files)
        else:
            run([made for start, made in BEFORE.items() if start in block.code], folder)
            exec(compile(shorten(block.code), f"{block.page}:{block.line}", "exec"), {})
        return
    assert block.language == "bash", f"say how to run a block of {block.language}"
    script = []
    for command in re.sub(r"\\\n\s*", "", block.code).splitlines(keepends=True):
        if not command.startswith(tuple(NOT_RUN)):
            script += [made for start, made in BEFORE.items() if command.startswith(start)]
            script.append(RECIPE.sub(r"syncattn-recipe\1 --dry-run ", shorten(command)))
    with (folder / "printed" / Path(block.page).name).open("a") as file:
        file.write(run(script, folder))


def shorten(code: str) -> str:
    """Return what takes less time."""
    for size, smaller in SMALLER.items():
        code = code.replace(size, smaller)
    return code


def run(script: list[str], folder: Path) -> str:
    """Run commands, and return what they print."""
    path = os.pathsep.join(map(str, (FORKED, BIN, os.environ["PATH"])))
    done = subprocess.run(
        ["bash", "-c", "\n".join(["set -euo pipefail", *script])],
        cwd=folder,
        env={
            **{**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
            **dict.fromkeys(("PARSER_EN", "PARSER_DE"), "random"),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def test_no_page_is_forgotten():
    paths = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("study/*.md"), *ROOT.glob("benchmarks/*.md")]
    pages = [str(path.relative_to(ROOT)) for path in paths]
    for page in {"README.md", "CONTRIBUTING.md", *pages} - set(PAGES):
        for block in blocks(page):
            assert block.language not in ("bash", "python"), f"{page}:{block.line} is not in PAGES"


def test_what_is_declared_is_there():
    python = [line for b in BLOCKS if b.language == "python" for line in b.code.splitlines()]
    for start in (*NOT_RUN, *BEFORE):
        assert any(line.startswith(start) for line in [*COMMANDS, *python]), start
    for size in SMALLER:
        assert any(size in block.code for block in BLOCKS), size
    for start in PARTS:
        assert any(block.code.startswith(start) for block in BLOCKS), start


@pytest.mark.parametrize(
    "command",
    [line for line in COMMANDS if line.startswith("syncattn-") and line.startswith(tuple(NOT_RUN))],
)
def test_what_is_not_run_is_understood(command):
    assert not refusal(command)
