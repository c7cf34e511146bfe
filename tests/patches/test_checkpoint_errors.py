from collections.abc import Callable
from typing import Any

import pytest
import torch

from syncattn_fairseq.base.errors import DataError
from tests.patches.resuming import Trainer, resume, save


def load_another_state() -> None:
    one, two = torch.zeros(1), torch.zeros(1)
    state = torch.optim.Adam([one, two]).state_dict()
    torch.optim.Adam([one]).load_state_dict(state)


def fail(error: Exception) -> Callable[..., None]:
    def load(*args: Any, **kwargs: Any) -> None:
        raise error

    return load


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (load_another_state, "by the training of another model"),
        (fail(AssertionError("Criterion does not match; please")), "with another criterion"),
        (fail(AssertionError("Optimizer does not match; please")), "with another optimizer"),
    ],
)
def test_another_training_is_not_resumed(tmp_path, monkeypatch, load, reason):
    path = save(tmp_path / "checkpoint_last.pt", 1)
    monkeypatch.setattr(Trainer, "load_checkpoint", lambda *args, **kwargs: load())
    for restored in ("checkpoint_last.pt", str(path)):
        with pytest.raises(DataError, match=f"^{path}: was saved {reason}; choose another --save-"):
            resume(tmp_path, restore_file=restored)
    monkeypatch.setattr(Trainer, "load_checkpoint", fail(ValueError("something else")))
    with pytest.raises(ValueError, match="something else"):
        resume(tmp_path)


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
