from typing import Any

import pytest
import torch

from syncattn_fairseq.base.errors import DataError
from tests.patches.resuming import Trainer, resume, save


def test_another_models_training_is_not_resumed(tmp_path, monkeypatch):
    save(tmp_path / "checkpoint_last.pt", 1)

    def load(*args: Any, **kwargs: Any) -> None:
        one, two = torch.zeros(1), torch.zeros(1)
        state = torch.optim.Adam([one, two]).state_dict()
        torch.optim.Adam([one]).load_state_dict(state)

    monkeypatch.setattr(Trainer, "load_checkpoint", load)
    with pytest.raises(DataError, match=r"checkpoint_last\.pt: was saved by .* another --save-dir"):
        resume(tmp_path)

    def fail(*args: Any, **kwargs: Any) -> None:
        raise ValueError("something else")

    monkeypatch.setattr(Trainer, "load_checkpoint", fail)
    with pytest.raises(ValueError, match="something else"):
        resume(tmp_path)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (AssertionError("Criterion does not match; please reset"), "saved with another criterion"),
        (AssertionError("Optimizer does not match; please reset"), "saved with another optimizer"),
    ],
)
def test_another_training_is_not_resumed(tmp_path, monkeypatch, error, message):
    path = save(tmp_path / "checkpoint_last.pt", 1)

    def load(*args: Any, **kwargs: Any) -> None:
        raise error

    monkeypatch.setattr(Trainer, "load_checkpoint", load)
    for restored in ("checkpoint_last.pt", str(path)):
        with pytest.raises(DataError, match=f"^{path}: was {message}; choose another --save-dir"):
            resume(tmp_path, restore_file=restored)


@pytest.mark.parametrize("name", ["checkpoint_last.pt", "other.pt"])
def test_weights_of_another_model_are_explained(tmp_path, monkeypatch, name):
    path = save(tmp_path / name, 1)

    def load(*args: Any, **kwargs: Any) -> None:
        try:
            torch.nn.Linear(3, 4).load_state_dict(torch.nn.Linear(2, 4).state_dict())
        except RuntimeError:
            raise Exception(  # noqa: B904, TRY002  (as fairseq does)
                f"Cannot load model parameters from checkpoint {path}; please ensure that the "
                "architectures match."
            )

    monkeypatch.setattr(Trainer, "load_checkpoint", load)
    with pytest.raises(DataError, match=f"^{path}: is another model: weight is ") as error:
        resume(tmp_path, restore_file=name)
    last = name == "checkpoint_last.pt"
    assert str(error.value).endswith("; choose another --save-dir" if last else "here")
