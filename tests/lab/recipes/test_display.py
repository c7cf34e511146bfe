import pytest

from syncattn_fairseq.lab.recipes import display
from syncattn_fairseq.lab.recipes.display import Display, duration

LINES = {
    "simple": "epoch 002: 100 / 300 loss=4.1, num_updates={}, lr=0.002",
    "json": '{{"loss": "4.1", "num_updates": "{}", "lr": "0.002"}}',
}


@pytest.mark.parametrize("text", LINES.values(), ids=LINES)
def test_a_training_says_in_a_log_how_far_it_is(text, monkeypatch, capsys):
    now = 0.0
    monkeypatch.setattr(display.time, "monotonic", lambda: now)
    with Display().stage("dbsa: train", 850) as show:
        for now in range(0, 70, 10):
            show(text.format(5 * now))
            show("something else")
    assert capsys.readouterr().out.splitlines() == [
        "== dbsa: train",
        "   dbsa: train: 150 of 850 updates",
        "   dbsa: train: 300 of 850 updates",
        "== dbsa: train: done in 1 min 0 s",
    ]


def test_other_stages_say_nothing_in_a_log(monkeypatch, capsys):
    monkeypatch.setattr(display, "REPORT_EVERY", 0)
    with Display().stage("binarise", None) as show:
        show("num_updates=3")
    assert capsys.readouterr().out.splitlines() == ["== binarise", "== binarise: done in 0 s"]


@pytest.mark.parametrize("seconds, text", [(59.4, "59 s"), (61, "1 min 1 s"), (7260, "2 h 1 min")])
def test_duration(seconds, text):
    assert duration(seconds) == text
