"""The facts about corpora, those that ``--init`` writes too, and the table of keys in the docs."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from lab.tests.recipes.test_cell import make_cell
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.doctor import Limits
from syncattn_fairseq.data.pieces import learn_raw_pieces
from syncattn_lab.cli.recipe import main
from syncattn_lab.recipes.corpus_facts import Corpus, Subwords, load_corpus
from syncattn_lab.recipes.corpus_texts import Archive, Here
from syncattn_lab.recipes.new_corpus import _SYSTEMS, write_corpus
from syncattn_lab.recipes.text_formats import collect
from syncattn_lab.synthetic.generated_corpus import generate
from tests.cli.errors import read_error

CONFIGS = Path(__file__).parents[3] / "configs"
FOLDERS = sorted(path.parent for path in CONFIGS.glob("*/_data.yaml"))
PAGE = (Path(__file__).parents[3] / "docs" / "recipes.md").read_text(encoding="utf-8")
OWN = PAGE[PAGE.index("## Your own corpus") : PAGE.index("## What is wrong")]


@pytest.mark.parametrize("name", _SYSTEMS)
def test_what_is_said_of_a_system_is_what_the_page_says(name):
    line = "; ".join(_SYSTEMS[name])
    page = (CONFIGS.parent / "docs" / "systems.md").read_text("utf-8")
    [row, *_] = [row for row in page.splitlines() if f"`{name}`" in row]
    _, _, _, training, translating, exports, _ = row.split("|")
    assert ("; no parser;" in line) == (training.strip() == "none")
    assert "no parser" in line and translating.strip() == "none"
    formats = ("CTranslate2", "transformers", "fairseq")
    assert [f in line for f in formats] == [f in exports for f in formats]
    assert (make_cell(name).settings.needs == set()) == ("; no parser;" in line)


@pytest.fixture
def raw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of texts, below the current one."""
    monkeypatch.chdir(tmp_path)
    for n, (split, count) in enumerate({"train": 400, "valid": 7, "test": 6}.items()):
        pairs = list(generate(count, seed=n))
        for language in ("en", "de"):
            path = tmp_path / "raw" / language / f"{split}.{language}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            sides = (pair.source if language == "en" else pair.target for pair in pairs)
            path.write_text("".join(" ".join(side.words) + "\n" for side in sides))
    return tmp_path / "raw"


def names(*splits: str) -> list[str]:
    return [f"raw/{side}/{split}.{side}.txt" for split in splits for side in ("en", "de")]


def test_a_corpus_is_written_for_texts(raw, capsys):
    assert main(["--init", "mine", *names("train", "valid", "test")]) == 0
    said, *systems, first, second = capsys.readouterr().out.splitlines()
    following = [first, second]
    assert said.startswith("mine: 400 pairs, ") and "3 layers of 256, 500 updates" in said
    assert [line.split()[1:4] for line in following] == [["syncattn-recipe", "mine", "@all"]] * 2
    corpus = load_corpus(Path("mine"))
    assert [line.split()[:2] for line in systems] == [["system", f"{n}:"] for n in corpus.systems]
    commented = Path("mine/_data.yaml").read_text()
    assert all(line.replace("system ", "\n# ") in commented for line in systems)
    assert corpus.languages == ("en", "de") and corpus.here and corpus.here.path == raw
    assert corpus.here.test == "{language}/test.{language}.txt"
    assert corpus.subwords.joint and corpus.subwords.size == 1256  # with bytes
    texts = [(name, "uax29") for name in names("train")]
    assert learn_raw_pieces(texts, 1256)[0], "the text has as many"
    assert main([*following[0].split()[2:4], "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert f"--archives {raw} --languages en de" in out and "train: " not in out
    assert [n for n in corpus.systems if f"== {n}, seed 1: train" in out] == corpus.systems
    error = read_error(capsys, main(["mine", "--init", *names("train")]))
    assert error == "error: mine: has a corpus already; choose another folder, or remove this one\n"


@pytest.mark.parametrize("given", [("train",), ("train", "valid")])
def test_what_is_not_given_is_held_out(raw, given):
    write_corpus(Path("mine"), names(*given), gpu=True)
    corpus = load_corpus(Path("mine"))
    assert corpus.here and corpus.here.path == Path.cwd() / "mine" / "texts"
    texts = {
        split: [
            *zip(
                *(
                    (corpus.here.path / f"{split}.{x}").read_text().splitlines()
                    for x in ("en", "de")
                ),
                strict=True,
            )
        ]
        for split in ("train", "valid", "test")
    }
    counts = {split: len(pairs) for split, pairs in texts.items()}
    assert corpus.clean == {"max_words": 100, "ratio": 9, "exclude": "test"}
    assert counts == {"train": 400 - 20 * (3 - len(given)), "test": 20} | {
        "valid": 7 if "valid" in given else 20
    }
    whole = [*zip(*(Path(name).read_text().splitlines() for name in names("train")), strict=True)]
    parts = [s for s in texts if s not in given[1:]]
    assert sorted(pair for s in parts for pair in texts[s]) == sorted(whole)


def test_different_pairs_are_held_out(raw):
    """Pairs that repeat, but for case and spaces, are either held out or learnt."""
    for name in names("train"):
        text = Path(name).read_text()
        half = "".join(text.splitlines(keepends=True)[:200])
        Path(name).write_text(text + text.upper().replace(" ", "  ") + "\n" + half)
    write_corpus(Path("mine"), names("train"), gpu=True)
    texts = {}
    for split in ("train", "valid", "test"):
        sides = [Path(f"mine/texts/{split}.{x}").read_text().lower() for x in ("en", "de")]
        texts[split] = [*zip(*(side.splitlines() for side in sides), strict=True)]
    held_out = [*texts["valid"], *texts["test"]]
    assert len(held_out) == len({*held_out}) == 2 * (len({*held_out, *texts["train"]}) // 20)
    assert not {*held_out} & {*texts["train"]}
    assert len(texts["train"]) > 2 * (400 - len(held_out)), "repeated pairs are still learnt"
    [first, *_] = Path("mine/_data.yaml").read_text().splitlines()
    assert f"{len(texts['train']):,} pairs" in first


@pytest.mark.parametrize("inside", ["texts/train.{}", "texts/deeper/train.{}", "train.{}"])
def test_nothing_is_written_onto_what_is_there(raw, inside, capsys):
    for language in ("en", "de"):
        path = Path("mine", inside.format(language))
        path.parent.mkdir(parents=True, exist_ok=True)
        (raw / language / f"train.{language}.txt").rename(path)
    before = {path: path.read_bytes() for path in Path("mine").rglob("*") if path.is_file()}
    files = [f"mine/{inside.format(language)}" for language in ("en", "de")]
    if inside.startswith("texts"):
        assert (
            "mine/texts: this folder is not empty, and the held-out pairs would be"
            in read_error(capsys, main(["--init", "mine", *files]))
        )
        assert {path for path in Path("mine").rglob("*") if path.is_file()} == {*before}
    else:
        assert main(["--init", "mine", *files]) == 0
    assert {path: path.read_bytes() for path in before} == before


def test_no_file_of_a_corpus_is_replaced(raw, capsys):
    Path("mine").mkdir()
    Path("mine/_corpus.yaml").symlink_to("nowhere")
    assert "mine: has a corpus already" in read_error(
        capsys, main(["--init", "mine", *names("train")])
    )
    Path("other").mkdir()
    Path("other/texts").symlink_to(raw)
    fault = "other/texts: this folder is not empty"
    assert fault in read_error(capsys, main(["--init", "other", *names("train")]))
    assert not Path("other/_data.yaml").exists()


@pytest.mark.parametrize(
    ("first", "second", "languages"),
    [
        ("z.en", "z.pt_BR", ("en", "pt_BR")),
        ("z.pt_PT", "z.pt_BR", ("pt_PT", "pt_BR")),
        ("a-b/en/z_en", "a-b/zh-Hans/z_zh-Hans", ("en", "zh-Hans")),
        ("z.eng_Latn.txt", "z.hin_Deva.txt", ("eng_Latn", "hin_Deva")),
        ("z.en_US", "z.es_419", ("en_US", "es_419")),
        ("z.en", "z.no", ("en", "no")),
        ("q\"x: y #'.en", "q\"x: y #'.de", ("en", "de")),
        ("\\n😀 %s\\.en", "\\n😀 %s\\.de", ("en", "de")),
        ("a [b]*?.en", "a [b]*?.de", ("en", "de")),
    ],
)
def test_names_of_files_and_languages_come_back(raw, first, second, languages):
    for source, name in zip(names("train"), (first, second), strict=True):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(source).rename(name)
    write_corpus(Path("mine"), [first, second] * 3, gpu=False)
    corpus = load_corpus(Path("mine"))
    assert corpus.languages == languages and corpus.here and corpus.here.path
    pattern = str(corpus.here.path / corpus.here.train)
    assert [Path(pattern.replace("{language}", x)) for x in languages] == [
        Path(name).absolute() for name in (first, second)
    ]
    assert {*languages} == corpus.parses.keys() and corpus.subwords.raw
    [read] = corpus.list_texts("train")
    form, _, address = read.partition("=")
    assert len([*collect(corpus.here.path, form, address, languages)]) == 400
    assert main(["mine", "transformer", "--dry-run"]) == 0


@pytest.mark.parametrize("name", ["a!b", "a{language}", "${a}", "a\nb", "a\u2028b", "a\udcffb"])
def test_a_name_with_a_meaning_of_its_own_is_refused(raw, name):
    with pytest.raises(DataError, match="has a special meaning in file names of a recipe; r"):
        write_corpus(Path("mine"), [f"{name}.en", f"{name}.de"], gpu=False)


def test_splits_have_the_same_languages(raw, capsys):
    for language in ("fr", "de"):
        (raw / f"valid.{language}").write_text("a\n" * 7)
    (raw / "valid.en").write_text("a\n" * 7)
    for pair in (("valid.en", "valid.fr"), ("valid.de", "valid.en")):
        files = [f"raw/{name}" for name in pair]
        error = read_error(capsys, main(["--init", "mine", *names("train"), *files]))
        assert f"{' '.join(files)}: " in error and "but the training text is en and de" in error
    assert not Path("mine").exists()


def test_what_is_wrong_with_the_text_is_said(raw, capsys):
    shown = [Path(name).read_text().splitlines() for name in names("train", "test")]
    for name, learnt, lines in zip(names("test"), shown[:2], shown[2:], strict=True):
        longest = max(range(400), key=lambda n: len(shown[0][n]))
        Path(name).write_text("\n".join([*lines, learnt[longest]]) + "\n")
    assert main(["--init", "mine", *names("train", "valid", "test")]) == 0
    [warning] = [x for x in capsys.readouterr().err.splitlines() if "test sentences are in" in x]
    assert warning.startswith("warning: test: test sentences are in the training text (")
    assert "raw/en/test.en.txt:7, which is raw/en/train.en.txt:" in warning
    assert "clean leaves these sentences out" in warning


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        (["raw/en/train.en.txt"], "mine: give two files of training text, such as train.en trai"),
        (names("train")[:1] * 2, "the names of the two files must differ only in the language"),
        (
            ["raw/en/train.en.txt", "raw/de/valid.de.txt"],
            "the names of the two files must differ only",
        ),
        (names("none"), "none.en.txt: no such file"),
        (names("test"), "raw/en/test.en.txt: has 6 pairs; a training needs at least 100"),
        (["a.x y", "a.de"], "'x y' is not the name of a language"),
        (names("train", "uneven"), "the sides differ in length: 1 in "),
    ],
)
def test_what_is_no_parallel_text_writes_nothing(raw, files, fault, capsys):
    (raw / "en" / "uneven.en.txt").write_text("a\n")
    (raw / "de" / "uneven.de.txt").write_text("a\nb\n")
    assert fault in read_error(capsys, main(["--init", "mine", *files]))
    assert not Path("mine").exists()


def test_languages_have_their_own_tools(raw):
    def written(source: str, target: str) -> Corpus:
        for split in ("train", "valid", "test"):
            text = (raw / "en" / f"{split}.en.txt").read_text()
            (raw / f"{split}.{source}").write_text(text)
            (raw / f"{split}.{target}").write_text(
                text.translate({n: n - 97 + 0x3041 for n in range(97, 123)})
            )
        splits = ("train", "valid", "test")
        write_corpus(
            Path(target), [f"raw/{s}.{x}" for s in splits for x in (source, target)], False
        )
        return load_corpus(Path(target))

    japanese = written("en", "ja")
    assert japanese.score == {"tokenize": "char"} and not japanese.subwords.joint
    assert japanese.system("transformer").load()["model"]["share_decoder_input_output_embed"]
    foreign = " abcdefghijklmnopqrstuvwxyz" * 2  # of names, which other scripts have, too
    with Path("raw/train.ja").open("a") as file:
        file.write(foreign + "\n")
    with Path("raw/train.en").open("a") as file:
        file.write(foreign + "\n")
    splits = ("train", "valid", "test")
    write_corpus(Path("mixed"), [f"raw/{s}.{x}" for s in splits for x in ("en", "ja")], False)
    assert not load_corpus(Path("mixed")).subwords.joint
    unknown = written("en", "xx")
    assert unknown.score == {"tokenize": "13a"} and unknown.subwords.raw
    assert not japanese.words and not unknown.words


def test_the_table_has_all_keys():
    rows = [line.split("|") for line in OWN.splitlines() if line.startswith("| `")]
    keys = {key for row in rows for key in re.findall(r"`(\w+)`", row[1])}
    derived = {"folder", "source", "target", "start_options"}
    assert keys == {field.name for field in fields(Corpus)} - derived - {"every", "last"}
    named = {key: row[2] for row in rows for key in re.findall(r"`(\w+)`", row[1])}
    assert "every" in named["valid"] and "last" in named["valid"]
    limits = PAGE[PAGE.index("| in `examine`") : PAGE.index("`--check` refuses")]
    assert {field.name for field in fields(Limits)} <= {*re.findall(r"`(\w+)(?:: 8)?`", limits)}
    for key, kind in (("here", Here), ("archives", Archive), ("subwords", Subwords)):
        assert all(f"`{field.name}" in named[key] for field in fields(kind)), key


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_every_corpus_has_its_facts(folder: Path) -> None:
    corpus = load_corpus(folder)
    names = [archive.name for archive in corpus.archives]
    assert len({*names}) == len(names)
    for archive in corpus.archives:
        assert (archive.url or "").startswith("https://") != bool(archive.licence)
        assert re.fullmatch("[0-9a-f]{64}", archive.sha256 or "0" * 64)
    for names_of_systems in corpus.groups.values():
        assert all(corpus.system(name.partition(":")[0]) for name in names_of_systems)
    if corpus.generated:
        return
    assert [bool(corpus.valid), bool(corpus.every), bool(corpus.last)].count(True) == 1
    assert {*corpus.words} == (set() if corpus.subwords.raw else {*corpus.languages})
    assert {*corpus.parses} == {*corpus.languages}
    for text in (*corpus.train, *corpus.valid, *corpus.test):
        assert text.partition("=")[2].partition("!")[0].replace("{language}", "en") in names
    for name in corpus.systems:
        corpus.system(corpus.baseline(name))


def test_a_part_of_your_own_training_pairs_may_be_for_validation(tmp_path: Path) -> None:
    facts = (
        "subwords: {joint: true}\n"
        "here: {variable: MINE, train: 't.{language}', test: 'e.{language}'}\n"
    )
    for name, text in (("_data", facts), ("_corpus", "task: {source_lang: en, target_lang: de}\n")):
        (tmp_path / f"{name}.yaml").write_text(text + "valid: {every: 20}\n" * (name == "_data"))
    corpus = load_corpus(tmp_path)
    assert corpus.every == 20 and corpus.valid == [] and corpus.list_texts("valid") == []
    (tmp_path / "_data.yaml").write_text(f"{facts}train: [{{plain: 'x.{{language}}'}}]\n")
    with pytest.raises(DataError, match=r"_data\.yaml: the text train is given twice"):
        load_corpus(tmp_path)
