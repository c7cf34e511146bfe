"""Any archive, and any text in it, is read or refused in one line, in little memory."""

import bz2
import gzip
import re
import tarfile
from collections.abc import Callable
from random import Random

import pytest

from lab.tests.recipes.packing import special, tar, zipped
from lab.tests.recipes.test_archives import MEMBERS, OTHERS
from lab.tests.recipes.test_formats import IWSLT_XML, NEWSTEST, TRAIN_TAGS, TREEBANK
from syncattn_lab.recipes import archives
from syncattn_lab.recipes.text_formats import PAIRS, TEXTS, collect
from tests.fuzz.mutation import MEMORY, fuzzed, memory, mutate, refusing

LONG = special("é" * 150, tarfile.DIRTYPE)  # with a header for its name
TAR = tar({**MEMBERS, "noise": b"noise"}, "w", *OTHERS, LONG)
ZIP = zipped({**MEMBERS, "noise": b"noise", "link": b"noise"}, "link")


KINDS: dict[str, tuple[bytes, Callable[[bytes], bytes]]] = {
    "x.tar": (TAR, bytes),
    "x.tgz": (TAR, lambda content: gzip.compress(content, 1)),
    "x.tar.gz": (gzip.compress(TAR), bytes),
    "x.tar.bz2": (bz2.compress(TAR), bytes),
    "x.zip": (ZIP, bytes),
}


@pytest.mark.parametrize("name", KINDS)
def test_archives(tmp_path, name, monkeypatch):
    monkeypatch.setattr(archives, "LEAST", 1 << 20)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    valid, pack = KINDS[name]
    before = memory()

    def check(seed: int) -> None:
        random = Random(seed)
        (tmp_path / name).write_bytes(pack(mutate(valid, random)))
        member = random.choice([*MEMBERS, "link", "a/pipe", "é" * 150])
        refused = refusing("^" + re.escape(f"{tmp_path / name}"))
        with refused, archives.open_member(tmp_path, f"{name}!{member}") as file:
            file.read()
        assert [path.name for path in tmp_path.iterdir()] == [name]

    fuzzed(check)()
    assert memory() - before < MEMORY


TEXT = {
    "plain": "a b\n\nc\n",
    "latin1": "a b\n\nc\n",
    "sgm": NEWSTEST,
    "iwslt_tags": TRAIN_TAGS,
    "iwslt_xml": IWSLT_XML,
    **dict.fromkeys(("conllu", "conllu_text", "conllu_heads", "conllu_labels"), TREEBANK),
    "aspec": "1 ||| a ||| 2 ||| 本 ||| b\n2 ||| 本［１］ ||| b\n",
    "aspec_undated": "1 ||| a ||| 2 ||| 本 ||| b\n2 ||| 本［１］ ||| b\n",
}


@pytest.mark.parametrize("name", [*TEXTS, *PAIRS])
def test_texts(tmp_path, name):
    languages = ("ja", "en") if name in PAIRS else ("en", "de")
    place = "x" if name in PAIRS else "x.{language}"
    valid = TEXT[name].encode()

    def check(seed: int) -> None:
        random = Random(seed)
        for language in languages:
            file = tmp_path / place.replace("{language}", language)
            file.write_bytes(mutate(valid, random))
        with refusing():
            for pair in collect(tmp_path, name, place, languages):
                assert all(text == " ".join(text.split()) for text in pair)

    fuzzed(check)()
