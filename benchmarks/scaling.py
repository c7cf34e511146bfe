"""Measure how the costs of all commands that read whole corpora grow, beside those of plain tools.

Texts are generated: about 18 words a line of Zipf's distribution over 20,000, heads of both sides
and links. Each command runs on texts of all sizes and, first, of ten lines, which its start costs.
The table has CPU microseconds per line and the peak memory of the largest process, of the command
and of the plain tool, and how many times as long the command takes, per line, as at the size before
(1: linear). A plain tool does less than the command: ``fairseq-preprocess`` has no heads,
``sacrebleu`` no RIBES, and the loops over pairs, sacremoses and sentencepiece check nothing.
Usage: ``python benchmarks/scaling.py --lines 10000 100000 --only preprocess clean``.
"""

import argparse
import json
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.start import ROOT, megabytes, run  # noqa: E402
from syncattn_fairseq.base.text_tables import markdown_table  # noqa: E402

LANGUAGES = ("en", "de")
RESULTS = ROOT / "study" / "results" / "multi30k_tiny_en_de_3625.json"
#: Lines of text that count as one result, for tables of results.
LINES_OF_RESULT = 100

LOOPS = {
    "clean": """
files = [open(p + x, m) for p, m in (("train.", "r"), ("plain.", "w")) for x in ("en", "de")]
for source, target in zip(*files[:2]):
    short, long = sorted((len(source.split()), len(target.split())))
    if 0 < short and long <= 100 and long <= 3 * short:
        files[2].write(source)
        files[3].write(target)
""",
    "tokenise": """
import sacremoses
tokenizer = sacremoses.MosesTokenizer("en")
with open("train.en") as text, open("plain.words", "w") as words:
    for line in text:
        print(tokenizer.tokenize(line, escape=False, return_str=True), file=words)
""",
    "bpe": """
import sentencepiece
model = sentencepiece.SentencePieceProcessor(model_file="bpe.model")
with open("train.en") as text, open("plain.pieces", "w") as pieces:
    for line in text:
        print(*model.encode(line, out_type=str), file=pieces)
""",
    "shortlist": """
from fairseq.data.indexed_dataset import MMapIndexedDataset
from syncattn_fairseq.export.shortlist import make_shortlists
sides = [MMapIndexedDataset(f"heads/train.en-de.{x}") for x in ("en", "de")]
pairs = ([side[i].numpy() for side in sides] for i in range(len(sides[0])))
make_shortlists(pairs, (30000, 30000), 30)
""",
}


def write_corpus(folder: Path, lines: int) -> None:
    """Write a random corpus: texts, heads, links, translations of two systems, and results."""
    rng = np.random.default_rng(1)
    names = ("en", "de", "heads.en", "heads.de", "gold", "forward", "backward", "hyp", "other")
    with ExitStack() as stack:
        files = {
            name: stack.enter_context((folder / f"train.{name}").open("w"))
            for name in (*names, "forced")
        }
        for _ in range(lines):
            size = int(rng.integers(6, 31))
            words = [f"{word:x}" for word in (20_000 ** rng.random(size)).astype(int)]
            target = [f"d{word}" for word in words]
            wrong = rng.random((4, size)) < 0.2
            rows = {"en": words, "de": target, "gold": [f"{i}-{i}" for i in range(size)]}
            rows["heads.en"] = rows["heads.de"] = [*map(str, range(size))]
            for name, some in zip(("hyp", "other"), wrong[:2], strict=True):
                rows[name] = ["x" if bad else word for word, bad in zip(target, some, strict=True)]
            for name, some in zip(("forward", "backward"), wrong[2:], strict=True):
                rows[name] = [f"{i}-{max(i - bad, 0)}" for i, bad in enumerate(some.astype(int))]
            line = {name: " ".join(row) for name, row in rows.items()}
            analysis = {"lengths": [1] * size, "heads": [*range(size)]}
            sides = [
                {"text": line[language], "words": row, "subwords": row, **analysis}
                for language, row in (("en", words), ("de", target))
            ]
            links = [[*map(int, link.split("-"))] for link in rows["forward"]]
            record = {"score": -1.0, "forced": True, "fault": "", "links": links}
            record |= {"source": sides[0], "target": sides[1], "layer_links": {}}
            line["forced"] = json.dumps(record)
            for name, text in line.items():
                files[name].write(f"{text}\n")
    results = json.loads(RESULTS.read_text("utf-8"))
    cells = [cell for cell in results["cells"] if cell["seed"] == 1]
    seeds = max(lines // LINES_OF_RESULT // len(cells), 2)
    results["cells"] = [{**cell, "seed": seed} for cell in cells for seed in range(1, seeds + 1)]
    (folder / "results.json").write_text(json.dumps({**results, "comparisons": []}))


def list_commands() -> dict[str, tuple[list[str], list[str]]]:
    """Return each command to measure, with the plain tool to compare it to, if there is one."""
    scored = "--references train.de --tokenize none --system ours train.hyp"
    parsed = f"{scored} train.forced --source-heads train.heads.en --target-heads train.heads.de"
    parsed += " --alignments train.gold --system other train.other --baseline other"
    ours = {
        "clean": "clean --languages en de --input train --output clean --max-words 100 --ratio 3",
        "tokenise": "tokenise --lang en --input train.en --output words.en",
        "bpe": "bpe apply --model bpe.model --input train.en --output pieces.en",
        # Nobody is told the time of the processes that parse several shards.
        "parse": "parse --parser random:1 --shards 1 --input train.en --output parsed.en",
        "preprocess": "preprocess -s en -t de --destdir heads --trainpref train",
        "score": f"score {scored}",
        "score, parses and alignments": f"score {parsed}",
        "show --html": f"show {parsed} --html report.html",
        "score links": "score links --gold train.gold --forward a train.forward "
        "--backward a train.backward",
        "shortlist": "",
        "recipe --table": "recipe multi30k_tiny_en_de_3625 --table --results results.json",
    }
    plain = {
        "preprocess": find_command(
            "fairseq-preprocess -s en -t de --destdir plain --trainpref train"
        ),
        "score": find_command("sacrebleu train.de -i train.hyp -m bleu chrf -tok none --force"),
        **{name: [sys.executable, "-c", LOOPS[name]] for name in ("clean", "tokenise", "bpe")},
    }
    commands = {}
    for name, line in ours.items():
        loop = [sys.executable, "-c", LOOPS[name]] if not line else []
        commands[name] = loop or find_command(f"syncattn-{line}"), plain.get(name, [])
    return commands


def find_command(line: str) -> list[str]:
    """Split a command line into words; the program is the one beside this Python."""
    name, *rest = line.split()
    return [str(Path(sys.executable).with_name(name)), *rest]


def measure(words: list[str], folder: Path) -> tuple[float, float]:
    """Run a command; return its CPU seconds and its peak memory in MB."""
    used = run(words, folder)
    return used.ru_utime + used.ru_stime, megabytes(used)


def main() -> None:
    """Measure all commands at several sizes of the corpus, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--only", nargs="+", help="commands to measure; shortlist needs preprocess")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    rows = [["command", "lines", "µs a line", "plain", "times", "MB", "plain MB", "growth"]]
    starts: dict[str, list[float]] = {}
    before: dict[str, float] = {}
    for lines in (10, *args.lines):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_corpus(folder, lines)
            size = 40 if lines < 1000 else 1000
            learn = f"syncattn-bpe learn --input train.en --model bpe --vocab-size {size}"
            run(find_command(learn), folder)
            for command, both in list_commands().items():
                if args.only and command not in args.only:
                    continue
                seconds, sizes = zip(*(measure(w, folder) for w in both if w), strict=True)
                if lines == 10:
                    starts[command] = [*seconds]
                    continue
                each = [
                    1e6 * (s - at) / lines for s, at in zip(seconds, starts[command], strict=True)
                ]
                row = [command, f"{lines:,}", f"{each[0]:,.0f}", "", "", f"{sizes[0]:,.0f}", "", ""]
                if len(each) == 2:
                    row[3:5] = f"{each[1]:,.0f}", f"{each[0] / each[1]:.2f}"
                    row[6] = f"{sizes[1]:,.0f}"
                if command in before:
                    row[7] = f"{each[0] / before[command]:.2f}"
                before[command] = each[0]
                rows.append(row)
                print(*row, sep="  ", flush=True)
    print(f"\n{markdown_table(rows)}")


if __name__ == "__main__":
    main()
