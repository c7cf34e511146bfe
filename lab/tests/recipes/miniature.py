"""The corpora's archives in miniature: real layouts, formats and quirks, invented text.

Names are those of ``_data.yaml``; test_miniature.py compares them with the published ones. ``make``
writes the archives as ``wget -x`` would, and says what their texts are.
"""

import gzip
import hashlib
import tarfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from lab.tests.recipes.packing import special, tar, zipped
from syncattn_lab.recipes.corpus_facts import read_facts
from syncattn_lab.recipes.systems import SHARED
from syncattn_lab.recipes.text_formats import name_sides
from syncattn_lab.synthetic.generated_corpus import generate

TRAIN, HELD_OUT = 60, 8

Pair = tuple[str, str]
Pairs = list[Pair]
Files = dict[str, bytes]
Texts = dict[str, Pairs]

CORPORA = (
    *("wmt14_en_de", "wmt14_en_de_words", "wmt16_en_ro", "wmt16_en_de", "wmt17_en_de"),
    *("wmt18_en_tr", "nc11_en_de", "nc11_de_en", "iwslt14_de_en", "iwslt14_de_en_words"),
    *("aspec_ja_en", "aspec_ja_en_lpsi", "aspec_en_ja", "kftt_ja_en", "enja"),
    *("europarl_de_en_align", "multi30k_en_de"),
)


class Miniature(NamedTuple):
    """The checksums of what was made, by ``HOST/PATH`` or name, and the pairs of each split.

    They are in order, as they should be collected; ``train`` has `DIRTY` ones.
    """

    sha256: dict[str, str]
    texts: Texts


def make(corpus: str, published: Path, licensed: Path) -> Miniature:
    """Write a corpus's archives: published ones as ``HOST/PATH``, and those a user has to get."""
    _, facts = read_facts((SHARED,), corpus)
    files, texts = _write_texts(facts, languages_of(corpus))
    sums = {}
    for archive in facts["archives"]:
        url = archive.get("url", "").removeprefix("https://")
        name = archive.get("file") or Path(url).name
        content = _pack(name, files)
        target = published / url if url else licensed / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        sums[url or name] = hashlib.sha256(content).hexdigest()
    return Miniature(sums, texts)


def languages_of(corpus: str) -> Pair:
    source, target = ["en", "ja"] if corpus == "enja" else corpus.split("_")[1:3]
    return source, target


def _write_texts(facts: Mapping[str, list[dict[str, str]]], languages: Pair) -> tuple[Files, Texts]:
    """Return all files, by address, and the pairs of each split."""
    files: Files = {}
    texts: Texts = {}
    for split in ("train", "valid", "test"):
        entries = facts[split] if isinstance(facts.get(split), list) else []
        for format_name, address in (item for entry in entries for item in entry.items()):
            count = TRAIN // len(entries) if split == "train" else HELD_OUT
            if len(entries) > 3 and split == "test":
                count = HELD_OUT // 2
            if split == "test" and "gold_alignments" in facts:
                found, links = aligned(languages)
                files[str(facts["gold_alignments"])] = links
            else:
                found = sentences(address, languages, count)
            read = found
            if split == "train":
                found, read = training(found)
            written, read = WRITERS[format_name](found, read, languages, address)
            files |= written
            texts.setdefault(split, []).extend(read)
    return files, texts


def _pack(name: str, files: Files) -> bytes:
    """Return an archive with its members, each also with another content in another folder."""
    members = {m: c for a, c in files.items() for n, _, m in [a.partition("!")] if n == name}
    decoys = {f"other/{member}": b"a decoy\n" for member in members}
    if name.endswith((".tgz", ".tar.gz")):
        folders = dict.fromkeys(str(parent) for m in members for parent in Path(m).parents)
        infos = (special(folder, tarfile.DIRTYPE) for folder in folders if folder != ".")
        return tar(decoys | members, "w:gz", *infos)
    if name.endswith(".zip"):
        return zipped(decoys | members)
    [content] = members.values()
    return gzip.compress(content) if name.endswith(".gz") else content


# Sentences.

#: Lines of training text as they are found, and as they should be collected. A pair is left out
#: later if it says so: an empty side, too long, too uneven.
DIRTY: list[tuple[Pair, Pair]] = [
    (("", "left out ."), ("", "left out .")),
    (("left out .", " \t "), ("left out .", "")),
    (("many " * 300 + ".", "words " * 300 + "."),) * 2,
    (("uneven .", "one two three four five six seven eight nine ten " * 3 + "."),) * 2,
    (("\x01in\x02\x7f valid\x1b", "con\x0btrol\x0c"), ("in valid", "con trol")),
    (("line\u2028separator .", "next\x85line ."), ("line separator .", "next line .")),
    (("carriage\rreturn .", "tab\tand\u00a0space .  "), ("carriage return .", "tab and space .")),
    (("R&D < 5 &amp; <b> {x} ||", "[A] \u201eB\u201c \u2019s"),) * 2,
]

SYLLABLES = {
    "ja": "京都 寺 川 美しい 見る 町 古い 人 静かな 花 読む 本 大きな 山 歩く 橋",
    "ro": "ță și mân râu lui vă pâ ști ea cu bra țe oră dul nă că",
    "tr": "ğı şe ıl ünü çok de iz öm ba kar lı dır gö sü ya in",
}


def invented(language: str, sentence: str) -> str:
    """Return a sentence of invented words with a language's real characters, one for each word."""
    syllables = SYLLABLES[language].split()

    def word(original: str) -> str:
        number = zlib.crc32(original.encode())
        return syllables[number % 16] + syllables[number // 16 % 16]

    words = [word(w) for w in sentence.split() if w.isalpha()]
    if language == "ja":
        return "".join(words) + "。"
    return " ".join(words).capitalize() + "."


def written(words: Sequence[str]) -> str:
    """Return a sentence as people write it, of its words."""
    text = " ".join(words).replace(" ,", ",").replace(" .", ".")
    return text[0].upper() + text[1:]


@cache
def sentences(name: str, languages: Pair, count: int) -> Pairs:
    """Return pairs that depend on the text's name; the same English for any two languages."""
    pairs = []
    for pair in generate(count, seed=zlib.crc32(name.encode())):
        by_language = {"en": written(pair.source.words), "de": written(pair.target.words)}
        source, target = (
            by_language.get(language) or invented(language, by_language["en"])
            for language in languages
        )
        pairs.append((source, target))
    return pairs


def training(clean: Pairs) -> tuple[Pairs, Pairs]:
    """Return pairs, some of them dirty, as they are found and as they should be collected."""
    half = len(clean) // 2
    return (
        clean[:half] + [found for found, _ in DIRTY] + clean[half:],
        clean[:half] + [wanted for _, wanted in DIRTY] + clean[half:],
    )


def aligned(languages: Pair) -> tuple[Pairs, bytes]:
    """Return pairs of words, and the links between them, with a blank line at the end."""
    pairs, links = [], []
    for pair in generate(HELD_OUT, seed=508):
        words = {"en": " ".join(pair.source.words), "de": " ".join(pair.target.words)}
        pairs.append((words[languages[0]], words[languages[1]]))
        ordered = [((i, j) if languages[0] == "en" else (j, i), (i, j)) for i, j in pair.possible]
        marks = (f"{i + 1}{'-' if link in pair.sure else 'p'}{j + 1}" for (i, j), link in ordered)
        links.append(" ".join(sorted(marks)))
    return pairs, lines([*links, ""])


# Formats: each writes pairs as they are found, and returns the files, by address, and the pairs as
# they should be collected.


def lines(texts: Iterable[str]) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


def sgm(texts: Sequence[str], name: str, source: str, target: str | None) -> bytes:
    """Return WMT's SGML: documents of paragraphs, the first one a heading; ``&amp;`` and bare &."""
    kind = f'refset setid="{name}" srclang="any" trglang="{target}"'
    system = 'sysid="ref" ' if target else ""
    rows = [f"<{kind}>" if target else f'<srcset setid="{name}" srclang="any">']
    for begin in range(0, len(texts), 3):
        document = f'docid="news.{begin}" genre="news" origlang="{source}"'
        rows += [f"<doc {system}{document}>"]
        for number, text in enumerate(texts[begin : begin + 3], 1):
            tag = "hl" if number == 1 else "p"
            rows += [f"<{tag}>", f'<seg id="{number}">{text}</seg>', f"</{tag}>"]
        rows += ["</doc>"]
    return lines([*rows, "</refset>" if target else "</srcset>"])


def iwslt_xml(texts: Sequence[str], name: str, reference: bool) -> bytes:
    """Return IWSLT's development and test sets: a talk's facts, then its segments."""
    languages = 'srclang="german"' + (' trglang="english"' if reference else "")
    rows = ['<?xml version="1.0" encoding="UTF-8"?>', "<mteval>"]
    rows += [f'<{"refset" if reference else "srcset"} setid="{name}" {languages}>']
    for talk in range(2):
        rows += [f'<doc docid="{535 + talk}" genre="lectures">', *facts(talk)]
        for number, text in enumerate(texts[talk::2], 1):
            rows += [f'<seg id="{number}"> {text} </seg>']
        rows += ["</doc>"]
    return lines([*rows, "</refset>" if reference else "</srcset>", "</mteval>"])


def facts(talk: int) -> list[str]:
    return [
        f"<url>http://www.ted.com/talks/talk_{talk}.html</url>",
        "<keywords>talks, art, science</keywords>",
        f"<talkid>{talk}</talkid>",
        f"<title>Title {talk}</title>",
        f"<description>TED Talk Subtitles and Transcript: Title {talk}.</description>",
    ]


def iwslt_tags(texts: Sequence[str]) -> bytes:
    rows = []
    for talk, begin in enumerate(range(0, len(texts), 20)):
        rows += facts(talk) + [f" {text}" for text in texts[begin : begin + 20]]
    return lines(rows)


def write_plain(found: Pairs, read: Pairs, languages: Pair, address: str) -> tuple[Files, Pairs]:
    sides = zip(name_sides(address, languages), zip(*found, strict=True), strict=True)
    return {name: lines(side) for name, side in sides}, read


def write_latin1(found: Pairs, read: Pairs, languages: Pair, address: str) -> tuple[Files, Pairs]:
    """Write the same in Latin-1, with a blank line at the end."""
    files, _ = write_plain([*found, ("", "")], read, languages, address)
    return {name: text.decode().encode("latin-1") for name, text in files.items()}, read


def write_sgm(found: Pairs, read: Pairs, languages: Pair, address: str) -> tuple[Files, Pairs]:
    pairs = [(f"{a} R&D, \u201cQ&A\u201d", f"{b} F&E, \u201eF&A\u201c") for a, b in found]
    names = name_sides(address, languages)
    sides = zip(names, zip(*pairs, strict=True), (None, languages[1]), strict=True)
    return {  # the first ampersand is an entity; the makers forgot the others
        name: sgm([text.replace("&", "&amp;", 1) for text in side], "news", languages[0], target)
        for name, side, target in sides
    }, pairs


def write_talks(found: Pairs, read: Pairs, languages: Pair, address: str) -> tuple[Files, Pairs]:
    """Write TED talks, of which the training text says more than their sentences."""
    sides = zip(name_sides(address, languages), zip(*found, strict=True), strict=True)
    pairs = []
    for talk, begin in enumerate(range(0, len(read), 20)):
        title = f"Title {talk}"
        words = f"TED Talk Subtitles and Transcript: {title}."
        pairs += [(title, title), (words, words), *read[begin : begin + 20]]
    return {name: iwslt_tags(side) for name, side in sides}, pairs


def write_xml(found: Pairs, read: Pairs, languages: Pair, address: str) -> tuple[Files, Pairs]:
    sides = zip(name_sides(address, languages), zip(*found, strict=True), (0, 1), strict=True)
    files = {name: iwslt_xml(side, "dev", bool(n)) for name, side, n in sides}
    return files, read[0::2] + read[1::2]


def write_aspec(
    found: Pairs, read: Pairs, languages: Pair, address: str, undated: bool = False
) -> tuple[Files, Pairs]:
    """Write columns, one more in training text; undated: dates at the end of Japanese are none."""
    # A column that is empty is still there; the dirt has bars of its own.
    ours, theirs = (
        [pair for pair in pairs if "||" not in "".join(pair)] for pairs in (found, read)
    )
    rows, pairs = [], []
    for n, (pair, wanted) in enumerate(zip(ours, theirs, strict=True)):
        ja = languages.index("ja")
        noted = (
            "" if "train" in address else ("", "［１．２］", "［注］", "［２０１８］［３］")[n % 4]
        )
        score = f"0.{99 - n:02} ||| " if "train" in address else ""
        rows.append(f"{score}A-01A{n:07} ||| {n % 5} ||| {pair[ja]}{noted} ||| {pair[1 - ja]}")
        left = (
            {"［１．２］": "", "［２０１８］［３］": "［２０１８］"}.get(noted, noted)
            if undated
            else noted
        )
        japanese = wanted[ja] + left
        pairs.append((japanese, wanted[1]) if ja == 0 else (wanted[0], japanese))
    return {address: lines(rows)}, pairs


WRITERS: dict[str, Callable[[Pairs, Pairs, Pair, str], tuple[Files, Pairs]]] = {
    "plain": write_plain,
    "latin1": write_latin1,
    "sgm": write_sgm,
    "iwslt_tags": write_talks,
    "iwslt_xml": write_xml,
    "aspec": write_aspec,
    "aspec_undated": partial(write_aspec, undated=True),
}
