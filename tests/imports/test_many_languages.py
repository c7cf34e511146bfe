"""M2M100 and NLLB, models of many languages, which are named by the first symbol of a sentence."""

import json
import re
import shutil

import pytest
import torch

import syncattn_fairseq
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.cli import bpe, translate
from syncattn_fairseq.cli.import_ import main
from syncattn_fairseq.data.preparation import stored_preparations
from syncattn_fairseq.export import export
from syncattn_fairseq.imports import import_model
from syncattn_fairseq.inference.decoding import Decoding
from tests.published import transformers, write_m2m

LINES = ["The old man sees a dog.", "Der alte Mann sieht einen Hund.", "She gives it to him, too."]
LINES += [f"{word} is not {word[::-1]}." for word in ["house", "garden", "tree", "river", "stone"]]
CODES = {"m2m": ("en", "de"), "nllb": ("eng_Latn", "deu_Latn")}


@pytest.fixture(scope="module", params=CODES)
def model(request, tmp_path_factory):
    """The name of a kind, its published folder and its imported one."""
    folder = tmp_path_factory.mktemp(request.param)
    write_m2m(folder / "hub", LINES, nllb=request.param == "nllb")
    source, target = CODES[request.param]
    import_model(folder / "hub", folder / "made", source, target)
    return request.param, folder / "hub", folder / "made"


def read_symbols(kind, hub):
    if kind == "m2m":
        tokenizer = transformers.M2M100Tokenizer.from_pretrained(hub)
        return {**tokenizer.encoder, **tokenizer.lang_token_to_id}
    added = json.loads((hub / "tokenizer.json").read_text())["added_tokens"]
    numbers = {each["content"]: each["id"] for each in added}
    loaded = syncattn_fairseq.load(hub.with_name("made"), device="cpu")
    words = loaded.task.source_dictionary.symbols
    return {word: n for n, word in enumerate(words) if n < min(numbers["eng_Latn"], 999)} | numbers


def test_it_computes_the_same(model):
    kind, hub, made = model
    loaded = syncattn_fairseq.load(made, device="cpu")
    numbers = read_symbols(kind, hub)
    theirs = transformers.M2M100ForConditionalGeneration.from_pretrained(hub).eval()
    first = [f"__{code}__" if kind == "m2m" else code for code in CODES[kind]]
    worst = 0.0
    for line in LINES:
        pieces = loaded.source_segmenter([line])[0]
        source, target = [first[0], *pieces, "</s>"], ["</s>", first[1], *pieces]
        words = loaded.task.source_dictionary
        ours = [torch.tensor([[words.index(w) for w in row]]) for row in (source, target)]
        ids = [torch.tensor([[numbers.get(w, 3) for w in row]]) for row in (source, target)]
        if kind == "m2m":
            tokenizer = transformers.M2M100Tokenizer.from_pretrained(hub, src_lang="en")
            assert tokenizer(line).input_ids == ids[0][0].tolist()
        with torch.no_grad():
            here = loaded.models[0](ours[0], torch.tensor([len(source)]), ours[1])[0]
            logits = theirs(input_ids=ids[0], decoder_input_ids=ids[1], use_cache=False).logits
        common = [word for word in numbers if word in words]
        columns = [torch.tensor([n[w] for w in common]) for n in (words.indices, numbers)]
        found = here.log_softmax(-1)[..., columns[0]] - logits.log_softmax(-1)[..., columns[1]]
        worst = max(worst, found.abs().max().item())
    assert worst < 1e-4


def test_translations_begin_with_the_language_which_nobody_sees(model, monkeypatch):
    kind, hub, made = model
    record = stored_preparations(made)
    source, target = CODES[kind]
    first = [f"__{code}__" if kind == "m2m" else code for code in CODES[kind]]
    assert [record[language].first for language in (source, target)] == first
    loaded = syncattn_fairseq.load(made, device="cpu")
    seen = []
    step = loaded.task.inference_step

    def watch(generator, models, sample, prefix_tokens=None, **given):
        found = step(generator, models, sample, prefix_tokens, **given)
        words = loaded.task.source_dictionary
        seen.append(words.string(sample["net_input"]["src_tokens"][0]).split())
        seen.append(words[int(found[0][0]["tokens"][0])])
        return found

    monkeypatch.setattr(loaded.task, "inference_step", watch)
    settings = Decoding(max_len=9)
    texts = loaded.translate(LINES, decoding=settings)
    rows = [row for row in seen if isinstance(row, list)]
    assert all(row.count(first[0]) == 1 for row in rows)
    assert {word for word in seen if isinstance(word, str)} == {first[1]}
    assert len(texts) == len(LINES) and not any(text.startswith(first[1]) for text in texts)
    theirs = transformers.M2M100ForConditionalGeneration.from_pretrained(hub).eval()
    numbers = read_symbols(kind, hub)
    pieces = loaded.source_segmenter(LINES[:1])[0]
    ids = torch.tensor([[numbers.get(w, 3) for w in [first[0], *pieces, "</s>"]]])
    found = theirs.generate(
        ids, forced_bos_token_id=numbers[first[1]], num_beams=1, max_new_tokens=6, min_length=9
    )[0].tolist()
    greedy = Decoding(beam=1, max_len=4)
    best = loaded.translate(LINES[:1], decoding=greedy)[0]
    symbols = {number: word for word, number in numbers.items()}
    expected = [symbols.get(n, "") for n in found[2:]]
    size = min(len(best.sentence.pieces), 4)
    assert [*best.sentence.pieces][:size] == expected[:size]
    with pytest.raises(DataError, match="reads a token for the language first; such models"):
        loaded.align(LINES[:1])


def test_the_command_line_translates(model, tmp_path, capsys):
    _, _, made = model
    source = tmp_path / "x"
    source.write_text("\n".join(LINES) + "\n")
    words = [f"--path={made}", f"--input={source}", "--max-len=5", "--device=cpu"]
    assert translate.main(words) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(LINES)


def test_it_is_exported_to_ctranslate2_and_to_nothing_else(model, tmp_path):
    pytest.importorskip("ctranslate2")
    kind, _, made = model
    source, target = CODES[kind]
    text, pieces = tmp_path / "text", tmp_path / "pieces"
    for folder in (text, pieces):
        folder.mkdir()
    for language in (source, target):
        (text / f"valid.{language}").write_text("\n".join(LINES) + "\n")
        arguments = [f"--model={made / f'subwords.{language}'}"]
        arguments += [f"--input={text / f'valid.{language}'}"]
        arguments += [f"--output={pieces / f'valid.{language}'}"]
        assert bpe.main(["apply", *arguments]) == 0
    from fairseq import options
    from fairseq_cli import preprocess

    words = [f"-s={source}", f"-t={target}", f"--destdir={tmp_path / 'bin'}"]
    words += [f"--validpref={pieces / 'valid'}", f"--trainpref={pieces / 'valid'}"]
    words += [
        f"--srcdict={made / f'dict.{source}.txt'}",
        f"--tgtdict={made / f'dict.{target}.txt'}",
    ]
    preprocess.main(options.get_preprocessing_parser().parse_args(words))
    path, data = made / "model.pt", tmp_path / "bin"
    assert "have the same scores" in export(path, data, "ctranslate2", tmp_path / "served")
    models = [syncattn_fairseq.load(each, device="cpu") for each in (made, tmp_path / "served")]
    decoding = Decoding(max_len=6, beam=1)
    ours, theirs = (each.translate(LINES, decoding=decoding) for each in models)
    assert [*map(str, ours)] == [*map(str, theirs)]
    for format in ("fairseq", "transformers", "marian"):
        with pytest.raises(
            DataError, match="reads the token .* first|supports only --positions marian"
        ):
            export(path, data, format, tmp_path / "other")


@pytest.fixture(scope="module")
def m2m(tmp_path_factory):
    return write_m2m(tmp_path_factory.mktemp("m2m") / "hub", LINES)


def spoil_index(folder):
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"x": "../../x"}}')


def change(name, **values):
    def apply(folder):
        table = json.loads((folder / name).read_text()) | values
        (folder / name).write_text(json.dumps(table))

    return apply


@pytest.mark.parametrize(
    ("languages", "spoil", "fault"),
    [
        (
            (),
            None,
            "the model has many languages; choose one with --source-lang, by the model's own code",
        ),
        (("-s=en",), None, "choose one with --target-lang"),
        (("-s=en", "-t=en"), None, "both languages are en; choose two"),
        (("-s=en", "-t=xx"), None, "has no language xx; choose from af, am, ar"),
        (("-s=en", "-t=</s>"), None, "choose one with --target-lang"),
        (("-s=en", "-t=de"), change("config.json", model_type="nllb-moe"), "type 'nllb-moe'; only"),
        (
            ("-s=en", "-t=de"),
            change("config.json", vocab_size=5),
            "symbols for 5 embedding vectors; get the",
        ),
        (
            ("-s=en", "-t=de"),
            lambda folder: (folder / "adapter_config.json").write_text("{}"),
            "adapter_config.json: the folder is an adapter, not a whole model; merge",
        ),
        (("-s=en", "-t=de"), change("config.json", auto_map={"A": "b--c.D"}), "auto_map refers to"),
        (("-s=en", "-t=de"), change("config.json", quantization_config={}), "quantization_config"),
        (("-s=en", "-t=de"), spoil_index, "names the file '../../x', which this folder"),
        (
            ("-s=en", "-t=de"),
            lambda folder: (folder / "sentencepiece.bpe.model").unlink(),
            "sentencepiece.bpe.model: no such file; give the complete folder",
        ),
    ],
)
def test_what_cannot_be_imported_is_refused_by_name(m2m, tmp_path, capsys, languages, spoil, fault):
    folder = shutil.copytree(m2m, tmp_path / "hub")
    if spoil:
        spoil(folder)
    assert main([str(folder), f"--output={tmp_path / 'made'}", *languages]) == 1
    [line] = capsys.readouterr().err.strip().splitlines()[-1:]
    assert line.startswith("error: ") and re.search(re.escape(fault), line), line
    assert not (tmp_path / "made").exists()


def test_an_nllb_without_its_added_tokens_is_refused(tmp_path):
    write_m2m(tmp_path / "hub", LINES, nllb=True)
    (tmp_path / "hub" / "tokenizer.json").write_text(
        '{"added_tokens": [{"id": 9, "content": "x"}]}'
    )
    with pytest.raises(DataError, match="the numbers of added_tokens do not continue"):
        import_model(tmp_path / "hub", tmp_path / "made", "eng_Latn", "deu_Latn")
