"""Prepare a corpus of WMT14's size, and measure what each stage of the recipe costs.

The real archives cannot be part of a benchmark, so this writes others of the same shape: the names,
folders and formats of the real ones, 4.5 million pairs with 26 words a side, a Zipfian vocabulary
of a million types in each language, and a few thousand lines that cleaning has to remove. Then the
recipe ``wmt14_en_de`` runs, stage by stage, from the download to the binarised heads; only sizes
and checksums of the archives are changed in its ``_data.yaml``. ``SYNCATTN_MIRROR`` serves the
archives, and ``--parser random`` stands in for a parser that is as fast as reading.

Each stage prints wall and CPU seconds (without those of ``syncattn-parse``'s workers), the peak
memory of all its processes together and of the largest one, and the bytes that it wrote. A second
run continues where the first one stopped.
Usage: ``nice -n 19 python benchmarks/full_size.py FOLDER --pairs 4520620``; it needs 12 GB of disk.
"""

import argparse
import io
import json
import os
import resource
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from syncattn_fairseq.base.files import hash_file  # noqa: E402
from syncattn_fairseq.base.text_tables import markdown_table  # noqa: E402

CORPUS = "wmt14_en_de"
CONFIGS = Path(__file__).resolve().parents[1] / "configs"
TYPES = 1_000_000
MEAN_WORDS = 26
CHUNK = 20_000
#: Training archives, the member for a language, and the share of the pairs.
PARTS = {
    "www.statmt.org/wmt13/training-parallel-europarl-v7.tgz": ("training/europarl-v7.de-en", 0.42),
    "www.statmt.org/wmt13/training-parallel-commoncrawl.tgz": ("commoncrawl.de-en", 0.53),
    "www.statmt.org/wmt14/training-parallel-nc-v9.tgz": ("training/news-commentary-v9.de-en", 0.05),
}
TESTS = {
    "statmt.org/wmt13/test.tgz": ("test/newstest2013-{role}.{language}.sgm", 3_000),
    "statmt.org/wmt14/test-full.tgz": ("test-full/newstest2014-deen-{role}.{language}.sgm", 3_003),
}
#: One line of training text in so many is one of these.
DIRTY_EVERY = 1_500
DIRTY = [
    ("", "only one side."),
    ("word " * 300 + ".", "Wort " * 300 + "."),
    ("uneven.", "eins zwei drei vier fünf sechs sieben acht " * 4 + "."),
    ("\x01con\x02trol\x7f", "line\u2028separator."),
    ("R&D &amp; <b> {x} ||", "[A] „B“ ’s"),
    ("  \t ", "blank."),
]
STAGES = ("download", "collect", "tokenise", "clean", "examine", "subwords", "parse", "binarise")


def make_words(language: str) -> np.ndarray:
    """Return the invented words of a language, the most frequent first; those are the shortest."""
    consonants = "bdfghklmnprstvwz" if language == "en" else "bdfgjklmnprstzcw"
    vowels = "aeiouy" if language == "en" else "aeiouü"
    syllables = np.array([c + v for v in vowels for c in consonants], dtype=object)
    base = len(syllables)
    ranks = np.arange(TYPES)
    words = syllables[ranks % base]
    rest = ranks // base
    while (more := rest > 0).any():
        words[more] += syllables[(rest[more] - 1) % base]
        rest = np.where(more, (rest - 1) // base, 0)
    words[5::40] += "s-" + syllables[ranks[5::40] % base]  # compounds, for the tokeniser
    words[7::50] = [word.capitalize() for word in words[7::50]]
    return words


def write_lines(language: str, pairs: int, seed: int) -> Iterator[bytes]:
    """Yield random training text of one language, as chunks of bytes.

    The text of the other language has sentences of similar lengths.
    """
    words = make_words(language)
    cumulative = np.cumsum(1 / np.arange(1, TYPES + 1))
    cumulative /= cumulative[-1]
    side = int(language == "de")
    for first in range(0, pairs, CHUNK):
        count = min(CHUNK, pairs - first)
        shared = np.random.default_rng([seed, first])
        lengths = np.clip(shared.gamma(3.0, MEAN_WORDS / 3, count), 2, 95).astype(int)
        rng = np.random.default_rng([seed, first, side + 1])
        lengths = np.maximum(lengths + rng.integers(-1, 2, count), 2)
        tokens = words[np.searchsorted(cumulative, rng.random(int(lengths.sum())))]
        ends = np.cumsum(lengths)
        lines = []
        for n, (begin, end) in enumerate(zip(ends - lengths, ends, strict=True), first):
            if n % DIRTY_EVERY == DIRTY_EVERY - 1:
                lines.append(DIRTY[n // DIRTY_EVERY % len(DIRTY)][side])
                continue
            line = list(tokens[begin:end])
            if len(line) > 12:
                line[8] += ","
            text = " ".join(line)
            lines.append(f"{text[0].upper()}{text[1:]}.")
        yield "".join(f"{line}\n" for line in lines).encode()


def add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add a file with the given content to an archive."""
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def make_sgm(texts: list[str], name: str, role: str) -> bytes:
    """Return a test set in the SGML format of WMT, as bytes."""
    kind = "srcset" if role == "src" else "refset"
    rows = [f'<{kind} setid="{name}" srclang="any" trglang="any">']
    for begin in range(0, len(texts), 20):
        rows.append(f'<doc sysid="ref" docid="{name}.{begin}" genre="news" origlang="en">')
        block = texts[begin : begin + 20]
        rows += [f'<p>\n<seg id="{n}">{text}</seg>\n</p>' for n, text in enumerate(block, 1)]
        rows.append("</doc>")
    return "\n".join([*rows, f"</{kind}>", ""]).encode()


def make_archives(published: Path, pairs: int) -> None:
    """Write archives of random text in place of the published ones, unless they exist already.

    Their paths are those of the published addresses, ``HOST/PATH``.
    """
    for number, (place, (prefix, share)) in enumerate(PARTS.items()):
        path = published / place
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        with tarfile.open(unfinished, "w:gz", compresslevel=1) as archive:
            add(archive, f"{prefix.replace('de-en', 'fr-en')}.fr", b"un leurre\n")
            add(archive, f"{prefix.replace('de-en', 'fr-en')}.en", b"a decoy\n")
            for language in ("de", "en"):
                text = published / "member"
                with text.open("wb") as file:
                    file.writelines(write_lines(language, round(pairs * share), number))
                archive.add(text, f"{prefix}.{language}")
                text.unlink()
        unfinished.rename(path)
        print(f"{path}: {path.stat().st_size / 1e6:,.0f} MB", flush=True)
    for number, (place, (member, count)) in enumerate(TESTS.items(), len(PARTS)):
        path = published / place
        path.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(path, "w:gz") as archive:
            for language in ("en", "de"):
                text = b"".join(write_lines(language, count, number)).decode()
                texts = [line.replace("&", "&amp;") for line in text.split("\n")[:-1]]
                for role in ("src", "ref"):
                    name = member.format(role=role, language=language)
                    add(archive, name, make_sgm(texts, Path(member).name.split("-")[0], role))


def make_config(configs: Path, published: Path) -> None:
    """Copy the corpus's configs, and write the checksums of the random archives into the copy."""
    shutil.copytree(CONFIGS / CORPUS, configs / CORPUS, dirs_exist_ok=True)
    path = configs / CORPUS / "_data.yaml"
    facts = yaml.safe_load(path.read_text(encoding="utf-8"))
    for archive in facts["archives"]:
        archive.pop("size", None)
        archive.pop("md5", None)
        archive["sha256"] = hash_file(published / archive["url"].removeprefix("https://"))
    path.write_text(yaml.safe_dump(facts, sort_keys=False), encoding="utf-8")


class Memory(threading.Thread):
    """A thread that records the peak memory of a process and its descendants, in MB."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.root = root
        self.together = self.largest = 0.0
        self.over = threading.Event()

    def run(self) -> None:
        """Measure the memory twice a second until the event ``over`` is set."""
        while not self.over.wait(0.5):
            sizes = [self._measure(number) for number in self._list_processes()]
            self.together = max(self.together, sum(sizes))
            self.largest = max(self.largest, *sizes, 0.0)

    def _list_processes(self) -> list[int]:
        found = [self.root]
        for number in found:
            try:
                text = Path(f"/proc/{number}/task/{number}/children").read_text()
            except OSError:
                continue
            found += [int(child) for child in text.split()]
        return found

    @staticmethod
    def _measure(number: int) -> float:
        """Return the proportional memory share: pages in several processes count once in all."""
        try:
            text = Path(f"/proc/{number}/smaps_rollup").read_text()
        except OSError:
            return 0.0
        sizes = [line.split()[1] for line in text.splitlines() if line.startswith("Pss:")]
        return sum(map(int, sizes)) / 1024


def count_bytes(folder: Path) -> int:
    """Return the size in bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def run_stage(stage: str, folder: Path) -> dict[str, float]:
    """Run the recipe's next stage, after all earlier ones; return its time, memory and disk."""
    work = folder / "work"
    before, used = count_bytes(work), resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ["syncattn-recipe", CORPUS, "transformer", "syncattn", "--to", stage, "--cpu"]
    words += ["--configs", str(folder / "configs"), "--work", str(work)]
    mirror = {"SYNCATTN_MIRROR": (folder / "published").as_uri()}
    parsers = {"PARSER_EN": "random", "PARSER_DE": "random"}
    start = time.monotonic()
    process = subprocess.Popen(words, env={**os.environ, **mirror, **parsers})
    memory = Memory(process.pid)
    memory.start()
    status = process.wait()
    seconds = time.monotonic() - start
    memory.over.set()
    memory.join()
    if status:
        sys.exit(f"{stage}: the recipe failed")
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "wall seconds": seconds,
        "CPU seconds": now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime,
        "MB, all processes": memory.together,
        "MB, the largest": memory.largest,
        "GB written": (count_bytes(work) - before) / 1e9,
    }


def main() -> None:
    """Run the recipe's stages one by one, and print their costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pairs", type=int, default=4_520_620)
    parser.add_argument("--cores", type=int, default=1)
    args = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.cores])
    os.environ["OMP_NUM_THREADS"] = "1"
    folder = args.folder.resolve()
    published, measured = folder / "published", folder / "measured.json"
    (folder / "work").mkdir(parents=True, exist_ok=True)
    make_archives(published, args.pairs)
    make_config(folder / "configs", published)
    found = json.loads(measured.read_text()) if measured.exists() else {}
    for stage in STAGES:
        if stage not in found:
            found[stage] = run_stage(stage, folder)
            measured.write_text(json.dumps(found, indent=1))
            print(stage, found[stage], flush=True)
    columns = list(found[STAGES[0]])
    rows = [["stage", *columns]]
    for stage in STAGES:
        cells = [found[stage][name] for name in columns]
        rows.append([stage, *(f"{x:,.0f}" for x in cells[:-1]), f"{cells[-1]:.2f}"])
    print(f"{args.pairs:,} pairs, {args.cores} core\n\n{markdown_table(rows)}")


if __name__ == "__main__":
    main()
