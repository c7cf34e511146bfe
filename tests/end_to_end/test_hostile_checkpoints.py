"""Checkpoints from strangers: no command runs what they hold, and none imports what they name."""

from pathlib import Path

import pytest
import torch

import syncattn_fairseq
from syncattn_fairseq.base.errors import DataError
from tests.checkpoints import Corpus, change_checkpoint, make_checkpoint
from tests.end_to_end.commands import generate, interactive, run, train

CODE = "[__import__('os').system('touch PWNED'), None][1]"
PLUGIN = "import pathlib\npathlib.Path('PWNED').touch()\n"


@pytest.fixture(scope="module")
def intact(small_corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("intact") / "model.pt"
    return make_checkpoint(small_corpus, path, "transformer_syncattn")


@pytest.fixture(scope="module")
def code(intact: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of plain values, one of which fairseq would run."""
    state = torch.load(intact)
    state["cfg"]["model"].encoder_xformers_att_config = CODE
    path = tmp_path_factory.mktemp("code") / "evil.pt"
    torch.save(state, path)
    return path


@pytest.fixture(scope="module")
def plugin(intact: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint whose plugin is the folder that it lies in."""
    state = torch.load(intact)
    state["cfg"]["common"]["user_dir"] = "."
    path = tmp_path_factory.mktemp("plugin") / "evil.pt"
    torch.save(state, path)
    (path.parent / "__init__.py").write_text(PLUGIN)
    return path


def call(name: str, corpus: Corpus, path: Path, fails: bool = True) -> str:
    """Let a command open a checkpoint, in the folder of that; return what it prints."""
    model = [f"--path={path}", f"--data-bin={corpus.data}", "--subwords", corpus.subwords]
    match name:
        case "syncattn-translate":
            return run(name, *model, stdin="the dog\n", cwd=path.parent, fails=fails)
        case "syncattn-show":
            return run(name, "the dog", *model, cwd=path.parent, fails=fails)
        case "syncattn-show --figure":
            options = ["the dog", "--kind=alignment", "--figure=x.svg", *model]
            return run("syncattn-show", *options, cwd=path.parent, fails=fails)
        case "syncattn-export":
            options = [*model, "--format=fairseq", "--output=out"]
            return run(name, *options, cwd=path.parent, fails=fails)
        case "syncattn-show --html":
            text = corpus.folder / "words" / "test.de"
            options = [f"--references={text}", "--system", "x", text, "--attention", "x", path]
            options += [f"--data-bin={corpus.data}", f"--subwords={corpus.subwords}"]
            options += ["--tokenize=none", "--html=x.html"]
            return run("syncattn-show", *options, cwd=path.parent, fails=fails)
        case "syncattn-average":
            return run(name, path, "--output=mean.pt", cwd=path.parent, fails=fails)
        case "fairseq-generate":
            return generate(corpus.data, path, "--gen-subset=valid", cwd=path.parent, fails=fails)
        case "fairseq-interactive":
            return interactive(corpus.data, path, "the dog\n", cwd=path.parent, fails=fails)
        case "fairseq-validate":
            options = [corpus.data, f"--path={path}", "--cpu", "--valid-subset=valid"]
            options += [f"--user-dir={syncattn_fairseq.__path__[0]}", "--max-tokens=900"]
            options += ["--task=translation_with_syntax"]
            return run(name, *options, cwd=path.parent, fails=fails)
        case _:
            options = [f"{name.removeprefix('fairseq-train ')}={path}", "--max-update=1"]
            output = path.parent / "output"
            return train(corpus.data, output, "transformer", *options, cwd=path.parent, fails=fails)


#: Those that build the model in our own code.
LOADING = ["translate", "show", "show --figure", "export", "show --html"]
COMMANDS = [
    *(f"syncattn-{name}" for name in [*LOADING, "average"]),
    *(f"fairseq-{name}" for name in ("generate", "interactive", "validate")),
    *(f"fairseq-train {option}" for option in ("--restore-file", "--finetune-from-model")),
]


@pytest.mark.parametrize("name", COMMANDS)
def test_code_in_an_option_is_refused(small_corpus, code, name):
    output = call(name, small_corpus, code)
    assert "Traceback" not in output
    last = output.splitlines()[-1]
    assert last.startswith(f"error: {code}: the checkpoint's option encoder_xformers_att_config: ")
    assert sorted(path.name for path in code.parent.iterdir()) in (
        ["evil.pt"],
        ["evil.pt", "output"],
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_plugin_that_only_the_checkpoint_names_is_not_imported(small_corpus, plugin, name):
    output = call(name, small_corpus, plugin, fails=name != "syncattn-average")
    assert "Traceback" not in output
    assert not (plugin.parent / "PWNED").exists()
    if name.startswith("fairseq-train"):
        assert f"error: {plugin}: is another model: " in output
    decodes = name in ("fairseq-generate", "fairseq-interactive", "fairseq-validate")
    if decodes or name.removeprefix("syncattn-") in LOADING:
        said = output.splitlines()[-1]
        assert said.startswith(f"error: {plugin}: was trained with the plugin '.', which is ")
        assert "--user-dir FOLDER" in said


def test_python_refuses_both(small_corpus, code, plugin, monkeypatch):
    for path in (code, plugin):
        monkeypatch.chdir(path.parent)
        with pytest.raises(DataError, match=f"^{path}: ") as error:
            syncattn_fairseq.load(path, small_corpus.data, small_corpus.subwords, device="cpu")
        assert "\n" not in str(error.value)
        assert not Path("PWNED").exists()


def test_another_dictionary_is_named(small_corpus, intact, data, tmp_path):
    said = "was trained with another dictionary, of 192 source subwords; the dictionary "
    earlier = change_checkpoint(intact, tmp_path / "checkpoint_last.pt", task_state={})
    output = generate(data, earlier, fails=True)
    assert output.splitlines()[-1].startswith(f"error: {earlier}: {said}here has ")
    sizes = ["--decoder-layers=3", *(f"--{side}-embed-dim=16" for side in ("encoder", "decoder"))]
    sizes += [f"--{side}-ffn-embed-dim=16" for side in ("encoder", "decoder")]
    output = train(data, tmp_path, "transformer_syncattn", *sizes, fails=True)
    last = output.splitlines()[-1]
    assert last.startswith(f"error: {tmp_path / 'checkpoint_last.pt'}: {said}here has ")
    assert "choose another --save-dir" in last
    with pytest.raises(DataError, match=f"^{earlier}: {said}in {data} has \\d+; use the data of "):
        syncattn_fairseq.load(earlier, data, small_corpus.subwords, device="cpu")


def test_a_plugin_that_the_caller_names_is_imported(small_corpus, plugin):
    named = plugin.parent / "named_plugin"
    named.mkdir()
    (named / "__init__.py").write_text(PLUGIN)
    options = [f"--data-bin={small_corpus.data}", f"--subwords={small_corpus.subwords}"]
    options += [f"--path={plugin}", f"--user-dir={named}"]
    run("syncattn-translate", *options, stdin="the dog\n", cwd=plugin.parent)
    (plugin.parent / "PWNED").unlink()
