"""Any settings are either accepted or refused in one line, before anything runs."""

import re
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from syncattn_lab.cli.recipe import main
from syncattn_lab.recipes.config_file import read_config
from syncattn_lab.recipes.systems import FAMILIES
from tests.fuzz.mutation import HOSTILE, fuzzed, mutate, refusing

CONFIGS = Path(__file__).parents[3] / "configs"
CORPORA = {
    "builtin_en_de": "dbsa",
    "wmt14_en_de_words": "rnn_syntax_directed",
    "europarl_de_en_align": "lpsi",
    "multi30k_tiny_en_de": "sh",
}
VALUES: list[Any] = [
    *(None, True, False, 0, -1, 3, 10**30, 0.5, float("inf"), float("nan")),
    *("", "x", "..", "../x", "/", "a b", "a\nb", "\0", "\u2028", "é", "-x", "--help", "$X", "${x}"),
    *("'", "|", "a | | b", "{language}", "plain=x", "x" * 5000, "@all", "!", "a!b!c", "http://["),
    *([], {}, [[]], [None], ["x"], {"x": 1}, {"": ""}, {"help": True}, {"x": [1, {"y": "z"}]}),
]
NAMES = ["x", "", "_self_", "_name", "help", "every", "en", "3", "a b", "../x", "\0", "-x"]


def places(node: Any) -> list[tuple[Any, Any]]:
    if not isinstance(node, dict | list):
        return []
    keys = list(node) if isinstance(node, dict) else list(range(len(node)))
    return [(node, key) for key in keys] + [at for key in keys for at in places(node[key])]


def damage(document: Any, random: Random) -> None:
    container, key = random.choice(places(document))
    match random.randint(0, 3):
        case 0:
            del container[key]
        case 1 if isinstance(container, dict):
            container[random.choice(NAMES)] = container.pop(key)
        case 2 if isinstance(container, dict):
            container[random.choice(NAMES)] = random.choice(VALUES)
        case _:
            container[key] = random.choice(VALUES)


def damaged_values(content: bytes, random: Random) -> bytes:
    document = yaml.safe_load(content)
    for _ in range(random.randint(1, 2)):
        if places(document):
            damage(document, random)
    return yaml.safe_dump(document, allow_unicode=True).encode()


@pytest.mark.parametrize("change", [damaged_values, mutate])
def test_settings_are_accepted_or_refused_in_one_line(tmp_path, capsys, change):
    for corpus in CORPORA:
        shutil.copytree(CONFIGS / corpus, tmp_path / "configs" / corpus)
    for family in FAMILIES:
        shutil.copytree(CONFIGS / family, tmp_path / "configs" / family)

    def check(seed: int) -> None:
        random = Random(seed)
        corpus, system = random.choice([*CORPORA.items()])
        path = random.choice(sorted((CONFIGS / corpus).glob("_*.yaml")))
        [of_all] = CONFIGS.glob(f"[rt]*/{system}.yaml")
        path = random.choice([path, of_all])
        changed = tmp_path / "configs" / path.relative_to(CONFIGS)
        changed.write_bytes(change(path.read_bytes(), random))
        options = [f"--configs={tmp_path / 'configs'}", f"--work={tmp_path / 'work'}"]
        systems = random.choice([[], [system], ["@all"]])
        status = main([corpus, *systems, *options, "--programs=sed", "--dry-run"])
        err = capsys.readouterr().err
        counts = err.startswith("trainings of ")
        assert (status, len(err.splitlines())) == (0 if counts else 1, 1), err
        assert not (tmp_path / "work").exists()
        shutil.copy(path, changed)

    fuzzed(check, 0.1)()


def test_hostile_bytes_anywhere(tmp_path):
    """Bytes that a mutation seldom puts where YAML makes something of them."""
    path = tmp_path / "x.yaml"
    for value in HOSTILE:
        for text in b"%s|%s: 1|a: %s|a: '%s'|a: \"%s\"|a: [%s]|- %s|&a %s".split(b"|"):
            path.write_bytes(text % value)
            with refusing(re.escape(str(path))):
                read_config(path)
