import re

import pytest
from fairseq.models import ARCH_MODEL_NAME_REGISTRY

from syncattn_fairseq.cli import options
from tests.importing import ROOT, fork


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert options.main(arguments) == 0
    return re.sub(r"\s+", " ", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("architecture", "option", "default"),
    [
        ("transformer_dbsa", "--encoder-dependency-layer N", "(1 = bottom, 0 = none) (default: 1)"),
        ("syntax_transformer", "--encoder-dependency-layer N", "0 = none) (default: 0)"),
        ("transformer_lpsi_tiny", "--distance-layers X", "such as 1,2, or all (default: 1,2)"),
        ("transformer_dbsa", "--distance-layers X", "such as 1,2, or all (none)"),
        ("transformer_pascal", "--pascal-parents {parse,self,", "(default: parse)"),
        ("rnn_local", "--source-attention {global,local,", "(default: local)"),
        ("rnn_local", "--src-dep-weight X", "(default: 0.5)"),
        ("rnn_local", "--alignment-head", "the head of a decoder layer"),
        ("rnn_local_double", "--double-context", "(on)"),
    ],
)
def test_an_option_with_the_default_of_an_architecture(capsys, architecture, option, default):
    _, found, rest = shown(capsys, architecture).partition(f" {option}")
    assert found and default in rest.partition(" --")[0]


def test_only_what_the_model_takes_and_what_is_on(capsys):
    assert not re.search(r"--pascal-layers|\(on\)", shown(capsys, "rnn_local"))
    assert not re.search("--half-window|--source-lang", shown(capsys, "transformer_dbsa"))


def test_every_architecture_is_listed(capsys):
    words = set(shown(capsys).split())
    for name, model in ARCH_MODEL_NAME_REGISTRY.items():
        if model in ("syntax_transformer", "syntax_rnn") and name != "syntax_rnn":
            assert {name, re.sub("_(tiny|iwslt_de_en)$", "", name)} & words, name


def test_an_architecture_of_others_is_refused(capsys):
    assert options.main(["lstm"]) == 1
    assert capsys.readouterr().err.startswith("error: lstm: is not an architecture of this plugin")


def test_a_plugin_of_the_user_is_shown(capfd):
    words = ["transformer_dbsa", f"--user-dir={ROOT / 'examples' / 'user_dir'}"]
    assert fork(lambda: options.main(words)) == 0  # what it registers stays there
    assert " --outward-layers " in capfd.readouterr().out
    assert "--outward-layers" not in shown(capfd, "transformer_dbsa")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "--user-dir {}: no such folder"),
        ("a file", "--user-dir {}: is a file; give the folder of your plugin"),
        ("import no_such_module\n", "--user-dir {}: No module named 'no_such_module'"),
        ("\n1 +\n", "{}/__init__.py:2: invalid syntax"),
    ],
)
def test_a_plugin_that_cannot_be_imported(tmp_path, capsys, content, message):
    folder = tmp_path / f"plugin_{len(content or '')}"
    if content == "a file":
        folder.touch()
    elif content is not None:
        folder.mkdir()
        (folder / "__init__.py").write_text(content)
    assert options.main([f"--user-dir={folder}"]) == 1
    assert capsys.readouterr().err == f"error: {message.format(folder)}\n"
