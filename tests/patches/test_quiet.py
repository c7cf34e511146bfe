import logging
import warnings

import pytest
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.options import get_generation_parser, parse_args_and_arch

from syncattn_fairseq.patches import quiet


@pytest.mark.parametrize(
    ("name", "warnoptions", "hushed"),
    [("fairseq-generate", [], True), ("fairseq-generate", ["default"], False), ("x", [], False)],
)
def test_only_what_looks_like_a_failure_is_left_out(
    monkeypatch, caplog, recwarn, name, warnoptions, hushed
):
    monkeypatch.setattr("sys.argv", [name])
    monkeypatch.setattr("sys.warnoptions", warnoptions)
    for logger in quiet._TRANSLATING:
        monkeypatch.setattr(logging.getLogger(logger), "filters", [])
    for logger in ("", "hydra", "fairseq_cli"):
        caplog.set_level(logging.DEBUG, logger)
    quiet.mend()
    convert_namespace_to_omegaconf(parse_args_and_arch(get_generation_parser(), ["b", "--path=x"]))
    assert any(record.name.startswith("hydra") for record in caplog.records) != hushed
    caplog.clear()
    for logger, message in (("generate", {"all": 1}), ("generate", "loading"), ("train", {"a": 1})):
        logging.getLogger(f"fairseq_cli.{logger}").info(message)
    expected = ["loading", "{'a': 1}"]  # training keeps its options
    assert caplog.messages == (expected if hushed else ["{'all': 1}", *expected])
    warnings.warn("`torch.cuda.amp.autocast(args...)` is deprecated.", FutureWarning, stacklevel=1)
    warnings.warn("'pin_memory' argument is set as true but no accelerator is found", stacklevel=1)
    warnings.warn("mine", stacklevel=1)
    *others, mine = (str(warning.message) for warning in recwarn)
    assert mine == "mine"
    for word in ("hydra", "autocast", "pin_memory"):
        assert any(word in other for other in others) != hushed, others
