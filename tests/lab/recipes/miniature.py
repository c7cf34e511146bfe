"""The corpora's archives in miniature: real names, layouts, formats and quirks, invented text.

Written by hand from what is known of the real files, so that a wrong name in a ``_data.yaml`` is
found. ``make`` writes them as ``wget -x`` would, and says what their texts are.
"""

import gzip
import hashlib
import html
import io
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sacrebleu.dataset import DATASETS

from syncattn_fairseq.lab.synthetic.generated_corpus import generate

TRAIN, HELD_OUT = 60, 8

Pair = tuple[str, str]
Pairs = list[Pair]
Files = dict[str, bytes]
Texts = dict[str, Pairs]

STATMT, DATA = "www.statmt.org", "data.statmt.org"
OPUS = "object.pouta.csc.fi/OPUS-SETIMES/v2/moses"
MULTI30K = "raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
#: Where archives are that cannot be downloaded.
LICENSED = "licensed"


@dataclass(frozen=True)
class Miniature:
    """What was made.

    Attributes:
        sha256: of each file, by ``HOST/PATH``.
        texts: what is in it, by split: pairs of source and target, in order, as they should be
            collected. ``train`` has `DIRTY` pairs.
    """

    sha256: dict[str, str]
    texts: Texts


def make(corpus: str, published: Path, licensed: Path) -> Miniature:
    """Write the archives of a corpus.

    Args:
        corpus: its name, one of `CORPORA`.
        published: folder for what can be downloaded, as ``HOST/PATH``.
        licensed: folder for what a user has to put in its place.
    """
    files, texts = CORPORA[corpus]()
    for name, content in files.items():
        host, _, path = name.partition("/")
        target = licensed / path if host == LICENSED else published / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return Miniature({name: hashlib.sha256(c).hexdigest() for name, c in files.items()}, texts)


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
def sentences(name: str, languages: str, count: int) -> Pairs:
    """Return pairs that depend on the name; the same English for any two languages.

    Args:
        name: of the text.
        languages: ``en de``, in this order.
        count: how many.
    """
    found = []
    for pair in generate(count, seed=zlib.crc32(name.encode())):
        by_language = {"en": written(pair.source.words), "de": written(pair.target.words)}
        source, target = (
            by_language.get(language) or invented(language, by_language["en"])
            for language in languages.split()
        )
        found.append((source, target))
    return found


def training(name: str, languages: str, count: int = TRAIN) -> tuple[Pairs, Pairs]:
    """Return pairs, some of them dirty, as they are found and as they should be collected."""
    clean = sentences(name, languages, count)
    half = len(clean) // 2
    return (
        clean[:half] + [found for found, _ in DIRTY] + clean[half:],
        clean[:half] + [wanted for _, wanted in DIRTY] + clean[half:],
    )


# Kinds of files.


def lines(texts: Iterable[str]) -> bytes:
    """Return plain text."""
    return "".join(f"{text}\n" for text in texts).encode()


def sides(prefix: str, languages: str, pairs: Pairs) -> Files:
    """Return two files of plain text."""
    return {
        f"{prefix}.{language}": lines(side)
        for language, side in zip(languages.split(), zip(*pairs, strict=True), strict=True)
    }


def tgz(members: Mapping[str, bytes]) -> bytes:
    """Return a compressed tar file; folders are members of their own."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for folder in dict.fromkeys(str(parent) for n in members for parent in Path(n).parents):
            if folder != ".":
                entry = tarfile.TarInfo(folder)
                entry.type = tarfile.DIRTYPE
                archive.addfile(entry)
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def zipped(members: Mapping[str, bytes]) -> bytes:
    """Return a zip file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


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


def news(name: str, languages: str) -> Pairs:
    """Return the pairs of a test set."""
    pairs = sentences(name, languages, HELD_OUT)
    return [(f"{a} R&D, \u201cQ&A\u201d", f"{b} F&E, \u201eF&A\u201c") for a, b in pairs]


def html_text(text: str) -> str:
    """Return text with the first ampersand as an entity; the makers forgot the others."""
    return text.replace("&", html.escape("&"), 1)


def iwslt_xml(texts: Sequence[str], name: str, reference: bool) -> bytes:
    """Return IWSLT's development and test sets: a talk's facts, then its segments."""
    languages = 'srclang="german"' + (' trglang="english"' if reference else "")
    rows = ['<?xml version="1.0" encoding="UTF-8"?>', "<mteval>"]
    rows += [f'<{"refset" if reference else "srcset"} setid="{name}" {languages}>']
    for talk in range(2):
        rows += [f'<doc docid="{535 + talk}" genre="lectures">', *facts(talk, "Title")]
        for number, text in enumerate(texts[talk::2], 1):
            rows += [f'<seg id="{number}"> {text} </seg>']
        rows += ["</doc>"]
    return lines([*rows, "</refset>" if reference else "</srcset>", "</mteval>"])


def facts(talk: int, title: str) -> list[str]:
    """Return what is said of a talk."""
    return [
        f"<url>http://www.ted.com/talks/talk_{talk}.html</url>",
        "<keywords>talks, art, science</keywords>",
        f"<talkid>{talk}</talkid>",
        f"<title>{title} {talk}</title>",
        f"<description>TED Talk Subtitles and Transcript: {title} {talk}.</description>",
    ]


def iwslt_tags(texts: Sequence[str], title: str) -> bytes:
    """Return IWSLT's training text; sentences begin with a space."""
    rows = []
    for talk, begin in enumerate(range(0, len(texts), 20)):
        rows += facts(talk, title) + [f" {text}" for text in texts[begin : begin + 20]]
    return lines(rows)


# Archives of several corpora.


def europarl_v7(pairs: Pairs) -> bytes:
    """Return all of Europarl v7 as WMT13 packed it."""
    other = sides("training/europarl-v7.fr-en", "fr en", [("un leurre", "a decoy")])
    return tgz(other | sides("training/europarl-v7.de-en", "en de", pairs))


def common_crawl(pairs: Pairs) -> bytes:
    """Return Common Crawl, whose pairs come with annotations."""
    notes = {"commoncrawl.de-en.annotation": b"CC-MAIN-0001\t0.5\n"}
    other = sides("commoncrawl.cs-en", "cs en", [("klam", "a decoy")])
    return tgz(other | notes | sides("commoncrawl.de-en", "en de", pairs))


def sacrebleu_set(name: str, *pairs: str) -> Files:
    """Return a test set of WMT as sacreBLEU downloads it, and the one of another direction.

    Args:
        name: by which sacreBLEU knows it.
        pairs: of languages, such as ``en-de``.
    """
    dataset = DATASETS[name]
    members: Files = {}
    for pair in pairs:
        languages = pair.split("-")
        for way in (languages, languages[::-1]):
            places = dataset.langpairs["-".join(way)]
            title = re.search(r"news[a-z]+\d+", places[0])
            assert title is not None
            order = sorted(way, key=lambda language: language != "en")
            texts = zip(*news(title[0], " ".join(order)), strict=True)
            by_language = dict(zip(order, texts, strict=True))
            for place, language, target in zip(places, way, (None, way[1]), strict=True):
                sentences_ = [html_text(text) for text in by_language[language]]
                members[place] = sgm(sentences_, title[0], way[0], target)
    return {dataset.data[0].removeprefix("https://"): tgz(members)}


def setimes(languages: str, pairs: Pairs) -> bytes:
    """Return SETIMES2 in Moses's format of OPUS."""
    name = f"SETIMES.{languages.replace(' ', '-')}"
    more = {"LICENSE": b"CC-BY-SA\n", "README": b"http://nlp.ffzg.hr/resources/corpora/setimes/\n"}
    ids = {f"{name}.ids": lines(f"en/1.xml.gz\tx/1.xml.gz\t{n}\t{n}" for n in range(len(pairs)))}
    return zipped(more | ids | sides(name, languages, pairs))


# Corpora.


def wmt_en_de(commentary: Callable[[Pairs], Files], *more: str) -> tuple[Files, Pairs]:
    """Return the training archives of WMT English-German, and their pairs."""
    found, wanted = {}, []
    for name in ("europarl", "crawl", "commentary", *more):
        found[name], clean = training(name, "en de", TRAIN // (3 + len(more)))
        wanted += clean
    files = {
        f"{STATMT}/wmt13/training-parallel-europarl-v7.tgz": europarl_v7(found["europarl"]),
        f"{STATMT}/wmt13/training-parallel-commoncrawl.tgz": common_crawl(found["crawl"]),
    }
    if more:
        other = sides("rapid2016.en-fi", "en fi", [("a decoy", "houkutus")])
        rapid = tgz(other | sides("rapid2016.de-en", "en de", found["rapid"]))
        files[f"{DATA}/wmt18/translation-task/rapid2016.tgz"] = rapid
    return files | commentary(found["commentary"]), wanted


def wmt14_en_de() -> tuple[Files, Texts]:
    """Europarl v7, Common Crawl, News Commentary v9; newstest2014 in full."""

    def commentary(pairs: Pairs) -> Files:
        members = sides("training/news-commentary-v9.de-en", "en de", pairs)
        return {f"{STATMT}/wmt14/training-parallel-nc-v9.tgz": tgz(members)}

    files, train = wmt_en_de(commentary)
    for name in ("wmt13", "wmt14/full"):
        files |= sacrebleu_set(name, "en-de")
    pairs = news("newstest2014", "en de")
    return files, {"train": train, "valid": news("newstest2013", "en de"), "test": pairs}


def wmt14_en_de_words() -> tuple[Files, Texts]:
    """The same archives, other test sets."""
    files, texts = wmt14_en_de()
    files |= sacrebleu_set("wmt12", "en-de") | sacrebleu_set("wmt15", "en-de")
    sets = [texts["valid"], texts["test"], news("newstest2015", "en de")]
    return files, texts | {
        "valid": news("newstest2012", "en de"),
        "test": [pair for pairs in sets for pair in pairs],
    }


def news_commentary_v11(pairs: Pairs) -> Files:
    """News Commentary v11 as WMT16 packed it."""
    folder = "training-parallel-nc-v11"
    members = sides(f"{folder}/news-commentary-v11.de-en", "en de", pairs)
    members |= sides(f"{folder}/news-commentary-v11.cs-en", "cs en", [("klam", "a decoy")])
    return {f"{DATA}/wmt16/translation-task/training-parallel-nc-v11.tgz": tgz(members)}


def wmt16_en_de() -> tuple[Files, Texts]:
    """Europarl v7, Common Crawl, News Commentary v11."""
    files, train = wmt_en_de(news_commentary_v11)
    valid, test = news("newstest2015", "en de"), news("newstest2016", "en de")
    files |= sacrebleu_set("wmt15", "en-de") | sacrebleu_set("wmt16", "en-de", "en-tr")
    return files, {"train": train, "valid": valid, "test": test}


def wmt17_en_de() -> tuple[Files, Texts]:
    """Europarl v7, Common Crawl, News Commentary v12, Rapid 2016."""

    def commentary(pairs: Pairs) -> Files:
        members = sides("training/news-commentary-v12.de-en", "en de", pairs)
        return {f"{DATA}/wmt17/translation-task/training-parallel-nc-v12.tgz": tgz(members)}

    files, train = wmt_en_de(commentary, "rapid")
    valid, test = news("newstest2016", "en de"), news("newstest2017", "en de")
    files |= sacrebleu_set("wmt16", "en-de", "en-ro") | sacrebleu_set("wmt17", "en-de", "en-tr")
    return files, {"train": train, "valid": valid, "test": test}


def nc11_en_de() -> tuple[Files, Texts]:
    """News Commentary v11 alone."""
    found, train = training("commentary", "en de")
    valid, test = news("newstest2015", "en de"), news("newstest2016", "en de")
    texts = {"train": train, "valid": valid, "test": test}
    tests = sacrebleu_set("wmt15", "en-de") | sacrebleu_set("wmt16", "en-de")
    return news_commentary_v11(found) | tests, texts


def nc11_de_en() -> tuple[Files, Texts]:
    """The same archives, the other way round."""
    files, texts = nc11_en_de()
    return files, {split: [(b, a) for a, b in pairs] for split, pairs in texts.items()}


def wmt16_en_ro() -> tuple[Files, Texts]:
    """Europarl v8 and SETIMES2."""
    europarl, first = training("europarl", "en ro", TRAIN // 2)
    balkans, second = training("setimes", "en ro", TRAIN // 2)
    folder = "training-parallel-ep-v8"
    members = sides(f"{folder}/europarl-v8.ro-en", "en ro", europarl)
    members |= sides(f"{folder}/europarl-v8.fi-en", "fi en", [("houkutus", "a decoy")])
    files = {
        f"{DATA}/wmt16/translation-task/training-parallel-ep-v8.tgz": tgz(members),
        f"{OPUS}/en-ro.txt.zip": setimes("en ro", balkans),
        **sacrebleu_set("wmt16/dev", "en-ro", "en-tr"),
        **sacrebleu_set("wmt16", "en-ro", "en-de"),
    }
    valid, test = news("newsdev2016", "en ro"), news("newstest2016", "en ro")
    return files, {"train": first + second, "valid": valid, "test": test}


def wmt18_en_tr() -> tuple[Files, Texts]:
    """SETIMES2."""
    found, train = training("setimes", "en tr")
    files = {f"{OPUS}/en-tr.txt.zip": setimes("en tr", found)}
    files |= sacrebleu_set("wmt16", "en-tr", "en-de") | sacrebleu_set("wmt17", "en-tr")
    valid, test = news("newstest2016", "en tr"), news("newstest2017", "en tr")
    return files, {"train": train, "valid": valid, "test": test}


def iwslt14_de_en() -> tuple[Files, Texts]:
    """TED talks, of which the training text says more than their sentences."""
    found, wanted = ([(b, a) for a, b in pairs] for pairs in training("talks", "en de"))
    german, english = zip(*found, strict=True)
    members = {
        "README": b"WIT3, https://wit3.fbk.eu\n",
        "train.en": lines(english),
        "train.tags.de-en.de": iwslt_tags(german, "Titel"),
        "train.tags.de-en.en": iwslt_tags(english, "Title"),
    }
    train = []
    for talk, begin in enumerate(range(0, len(wanted), 20)):
        words = "TED Talk Subtitles and Transcript:"
        train += [(f"Titel {talk}", f"Title {talk}")]
        train += [(f"{words} Titel {talk}.", f"{words} Title {talk}.")]
        train += wanted[begin : begin + 20]
    test = []
    for name in ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012"):
        both = [(b, a) for a, b in sentences(name, "en de", 4)]
        test += both[0::2] + both[1::2]
        german, english = zip(*both, strict=True)
        members[f"IWSLT14.{name}.de-en.de.xml"] = iwslt_xml(german, name, False)
        members[f"IWSLT14.{name}.de-en.en.xml"] = iwslt_xml(english, name, True)
    archive = tgz({f"de-en/{name}": content for name, content in members.items()})
    return {"dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz": archive}, {
        "train": train,
        "test": test,
    }


def iwslt14_de_en_words() -> tuple[Files, Texts]:
    """The same text."""
    return iwslt14_de_en()


def europarl_de_en_align() -> tuple[Files, Texts]:
    """Europarl v7; gold alignments in Latin-1, already in words, with a blank line at the end."""
    found, train = training("europarl", "en de")
    test, short, long = [], [], []
    for number, pair in enumerate(generate(HELD_OUT, seed=508)):
        test.append((" ".join(pair.target.words), " ".join(pair.source.words)))
        long.append(f"SENT: {number}")
        links = []
        for i, j in sorted(pair.possible):
            sure = (i, j) in pair.sure
            links.append(f"{j + 1}{'-' if sure else 'p'}{i + 1}")
            long.append(f"{'S' if sure else 'P'} {j + 1} {i + 1}")
        short.append(" ".join(links))
    german, english = zip(*test, strict=True)
    members = {
        "de": lines([*german, ""]).decode().encode("latin-1"),
        "en": lines([*english, ""]).decode().encode("latin-1"),
        "alignmentDeEn": lines(long),
        "alignmentDeEn.talp": lines([*short, ""]),
    }
    gold = tgz({f"DeEn/{name}": content for name, content in members.items()})
    files = {
        f"{STATMT}/europarl/v7/de-en.tgz": tgz(sides("europarl-v7.de-en", "en de", found)),
        f"{LICENSED}/DeEnGoldAlignment.tar.gz": gold,
    }
    return files, {"train": [(b, a) for a, b in train], "test": test}


def aspec_ja_en() -> tuple[Files, Texts]:
    """ASPEC: columns, of which training text has one more than the rest."""

    def table(pairs: Pairs, scored: bool) -> bytes:
        rows = (f"A-01A{n:07} ||| {n % 5} ||| {ja} ||| {en}" for n, (ja, en) in enumerate(pairs))
        return lines(f"0.{99 - n:02} ||| {row}" if scored else row for n, row in enumerate(rows))

    # A column that is empty is still there; the dirt has bars of its own.
    def fits(pair: Pair) -> bool:
        return "||" not in "".join(pair)

    first, wanted = (list(filter(fits, p)) for p in training("first", "ja en", TRAIN // 2))
    second = sentences("second", "ja en", TRAIN // 2)
    third = sentences("third", "ja en", TRAIN // 2)
    texts = {"train": wanted + second}
    texts |= {split: dated(sentences(split, "ja en", HELD_OUT)) for split in ("valid", "test")}
    members = {
        "ASPEC-JE/README": b"ASPEC-JE\n",
        "ASPEC-JE/README-j": "科学技術論文\n".encode(),
        "ASPEC-JE/train/train-1.txt": table(first, True),
        "ASPEC-JE/train/train-2.txt": table(second, True),
        "ASPEC-JE/train/train-3.txt": table(third, True),
        "ASPEC-JE/dev/dev.txt": table(texts["valid"], False),
        "ASPEC-JE/devtest/devtest.txt": table([("囮", "a decoy")], False),
        "ASPEC-JE/test/test.txt": table(texts["test"], False),
        "ASPEC-JC/train/train.txt": "A-1 ||| 囮 ||| 囮\n".encode(),
    }
    archive = tgz({f"ASPEC/{name}": content for name, content in members.items()})
    return {f"{LICENSED}/ASPEC.tar.gz": archive}, texts


def dated(pairs: Pairs) -> Pairs:
    """Return Japanese-English pairs, some with a date at the end of the Japanese side."""
    dates = ("", "［１．２］", "［注］", "［２０１８］［３］")
    return [(ja + dates[n % 4], en) for n, (ja, en) in enumerate(pairs)]


def undated(pairs: Pairs) -> Pairs:
    """Return `dated` pairs without what is a date."""
    dates = {n: date for n, date in enumerate(("", "［１．２］", "", "［３］"))}
    return [(ja.removesuffix(dates[n % 4]), en) for n, (ja, en) in enumerate(pairs)]


def aspec_ja_en_lpsi() -> tuple[Files, Texts]:
    """The first part of ASPEC, without dates."""
    files, texts = aspec_ja_en()
    half = len(texts["train"]) - TRAIN // 2
    return files, texts | {"train": texts["train"][:half], "valid": undated(texts["valid"])}


def aspec_en_ja() -> tuple[Files, Texts]:
    """All of ASPEC the other way round, without dates."""
    files, texts = aspec_ja_en()
    third = sentences("third", "ja en", TRAIN // 2)
    texts |= {"train": texts["train"] + third, "valid": undated(texts["valid"])}
    return files, {split: [(b, a) for a, b in pairs] for split, pairs in texts.items()}


def kftt_ja_en() -> tuple[Files, Texts]:
    """KFTT: as written (orig) and in words (tok)."""
    found, train = training("kyoto", "ja en")
    texts = {"train": train}
    texts |= {split: sentences(split, "ja en", HELD_OUT) for split in ("valid", "test")}
    splits = {"train": found, "dev": texts["valid"], "test": texts["test"]}
    members = {"README.txt": b"The Kyoto Free Translation Task 1.0\n"}
    for split, pairs in (splits | {"tune": [("囮", "a decoy")]}).items():
        members |= sides(f"data/orig/kyoto-{split}", "ja en", pairs)
        members |= sides(f"data/tok/kyoto-{split}", "ja en", [("囮 。", "a decoy .")])
    members |= sides("data/tok/kyoto-train.cln", "ja en", [("囮 。", "a decoy .")])
    archive = tgz({f"kftt-data-1.0/{name}": content for name, content in members.items()})
    return {"www.phontron.com/kftt/download/kftt-data-1.0.tar.gz": archive}, texts


def multi30k_en_de() -> tuple[Files, Texts]:
    """Multi30k: one compressed file for each side."""
    found, train = training("train", "en de")
    texts = {"train": train}
    texts |= {split: sentences(split, "en de", HELD_OUT) for split in ("valid", "test")}
    splits = {"train": found, "val": texts["valid"], "test_2016_flickr": texts["test"]}
    files = {
        f"{MULTI30K}/{name}.gz": gzip.compress(content)
        for split, pairs in splits.items()
        for name, content in sides(split, "en de", pairs).items()
    }
    return files, texts


CORPORA: dict[str, Callable[[], tuple[Files, Texts]]] = {
    corpus.__name__: corpus
    for corpus in (
        wmt14_en_de,
        wmt14_en_de_words,
        wmt16_en_ro,
        aspec_ja_en,
        aspec_ja_en_lpsi,
        aspec_en_ja,
        iwslt14_de_en,
        iwslt14_de_en_words,
        europarl_de_en_align,
        nc11_en_de,
        nc11_de_en,
        wmt16_en_de,
        wmt17_en_de,
        wmt18_en_tr,
        kftt_ja_en,
        multi30k_en_de,
    )
}
