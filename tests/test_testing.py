"""The helper that users test their heads with notices what it should."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.modules import PARTS, register_part
from syncattn_fairseq.modules.heads import Heads
from syncattn_fairseq.testing import build_model, check_model


def test_a_misspelt_option_is_refused():
    with pytest.raises(DataError, match=r"^local_layer: .* no such option; did you mean local_l"):
        check_model(local_layer="1")
    with pytest.raises(DataError, match="^zzz: syntax_transformer_tiny has no such option$"):
        check_model(zzz=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dasa_distance": "linaer"}, "dasa_distance: 'linaer' is not one of linear, tree"),
        ({"source_trees": "none"}, "source_trees: 'none' is not one of parse, shuffled, random"),
        ({"local_window": "two"}, "local_window: 'two' is not a whole number"),
        ({"gate_temperature": "1.0"}, "gate_temperature: '1.0' is not a number"),
        ({"dependency_key_bias": "yes"}, "dependency_key_bias: 'yes' is not true or false"),
    ],
)
def test_a_value_that_the_command_line_would_refuse_is_refused(options, message):
    with pytest.raises(DataError, match=f"^{message}"):
        check_model(local_layers="1", **options)


def make_part(name: str) -> type[Heads]:
    @dataclass
    class Options:
        pass

    Options.__annotations__[name] = str
    setattr(Options, name, field(default="", metadata={"help": "layers"}))

    class Mine(Heads):
        title = "mine"

    Mine.Options = dataclass(Options)
    return Mine


def test_an_option_has_one_owner(monkeypatch):
    with pytest.raises(
        ValueError, match="^mine: constant_gate already has an option constant_gate_layers"
    ):
        register_part("mine")(make_part("constant_gate_layers"))
    assert "mine" not in PARTS
    monkeypatch.setitem(PARTS, "mine", make_part("encoder_layers"))
    with pytest.raises(DataError, match="^Options: fairseq already has an option encoder_layers"):
        build_model()


def test_a_faulty_plugin_is_told_what_to_mend():
    with pytest.raises(DataError, match="^there is already a syntactic part named labels: choose"):
        register_part("labels")(make_part("own_layers"))

    class Options:
        own_layers: str = ""

    with pytest.raises(DataError, match="^mine: put @dataclass before the class Options$"):
        register_part("mine")(type("Mine", (Heads,), {"Options": Options}))
    Options.own_layers = field()  # type: ignore[assignment]
    with pytest.raises(DataError, match="^mine: give the option own_layers a default"):
        register_part("mine")(type("Mine", (Heads,), {"Options": dataclass(Options)}))
    assert "mine" not in PARTS


def test_parts_may_share_their_options(monkeypatch):
    one: Any = make_part("mine_layers")

    class Other(one):
        pass

    monkeypatch.setattr("syncattn_fairseq.modules.part.PARTS", {})
    register_part("one")(one)
    register_part("other")(Other)
