from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import syncattn_fairseq.plugin  # noqa: F401  (knows the models' options)
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.checkpoints.averaging import average_checkpoints, find_last_checkpoints
from syncattn_fairseq.checkpoints.checkpoint_file import read_checkpoint


def save(path: Path, updates: int, model: dict[str, torch.Tensor], **rest: Any) -> Path:
    state = {"model": model, "optimizer_history": [{"num_updates": updates}], **rest}
    torch.save(state, path)
    return path


def test_means_types_and_the_newest(tmp_path):
    models = [
        {"w": torch.tensor([value], dtype=torch.float16), "steps": torch.tensor([n])}
        for n, value in enumerate([2048.0, 2048.0, 2052.0])
    ]
    paths = [
        save(tmp_path / f"{n}.pt", updates, model, cfg={"n": n}, last_optimizer_state={"m": 0})
        for n, (updates, model) in enumerate(zip([10, 30, 20], models, strict=True))
    ]
    assert average_checkpoints(paths, tmp_path / "mean.pt") == [10, 30, 20]
    mean = torch.load(tmp_path / "mean.pt")
    assert mean["model"]["w"].dtype == torch.float16
    assert mean["model"]["w"].item() == torch.tensor(6148 / 3).half().item() == 2050
    assert mean["model"]["steps"].item() == 1
    assert mean["cfg"] == {"n": 1}
    assert "last_optimizer_state" not in mean


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_means_are_not_computed_in_the_stored_type(tmp_path, dtype):
    large = 2 / torch.finfo(dtype).eps  # in this type, adding 1 to it changes nothing
    paths = [
        save(tmp_path / f"{n}.pt", n, {"w": torch.tensor([value], dtype=dtype)})
        for n, value in enumerate([large, 1, 1])
    ]
    average_checkpoints(paths, tmp_path / "mean.pt")
    expected = torch.tensor((large + 2) / 3, dtype=torch.float64).to(dtype)
    assert expected != torch.tensor(large / 3, dtype=torch.float64).to(dtype)
    assert torch.load(tmp_path / "mean.pt")["model"]["w"] == expected


def test_tied_parameters_stay_tied(tmp_path):
    paths = []
    for n in range(2):
        tied = torch.full((1000,), float(n))
        paths.append(save(tmp_path / f"{n}.pt", n, {"c": tied.clone(), "b": tied, "a": tied}))
    average_checkpoints(paths, tmp_path / "mean.pt")
    model = torch.load(tmp_path / "mean.pt")["model"]
    assert [*model] == ["c", "b", "a"] and all(w.eq(0.5).all() for w in model.values())
    assert model["a"].data_ptr() == model["b"].data_ptr() != model["c"].data_ptr()


def test_output_may_be_an_input(tmp_path):
    paths = [save(tmp_path / f"{n}.pt", n, {"a": torch.tensor([2.0 * n])}) for n in range(2)]
    average_checkpoints(paths, paths[0])
    assert torch.load(paths[0])["model"]["a"].item() == 1


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"a": torch.zeros(2)}, "parameter b has the shape None in one and "),
        ({"a": torch.zeros(2), "b": torch.zeros(3)}, "parameter b has the shape "),
        (
            {"a": torch.zeros(2), "b": torch.zeros(2), "c": torch.zeros(1)},
            "parameter c has the shape ",
        ),
    ],
)
def test_other_models_are_refused(tmp_path, other, message):
    one = save(tmp_path / "1.pt", 1, {"a": torch.zeros(2), "b": torch.zeros(2)})
    with pytest.raises(
        DataError, match=f"2.pt and .*1.pt: the checkpoints are not of the same model: {message}"
    ):
        average_checkpoints([one, save(tmp_path / "2.pt", 2, other)], tmp_path / "mean.pt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.pt", "2.pt"]


def train(folder: Path, number: int, **settings: dict[str, Any]) -> Path:
    """Save a checkpoint of a training with these settings."""
    cfg = {
        "model": {"arch": "transformer_lpsi", "gate_temperature": 1.0, "dropout": 0.1},
        "common": {"seed": 1},
        "checkpoint": {"save_dir": "a", "finetune_from_model": None},
        "criterion": {"_name": "label_smoothed_cross_entropy", "label_smoothing": 0.1},
    }
    cfg = {name: {**values, **settings.get(name, {})} for name, values in cfg.items()}
    meaning = {"dict.en.txt": "0" * 64, **settings.get("meaning", {})}
    task_state = {"fingerprint": {"meaning": meaning, "provenance": []}}
    weights = {"w": torch.ones(1)}
    return save(folder / f"{number}.pt", number, weights, cfg=cfg, task_state=task_state)


OTHER = {"checkpoint": {"save_dir": "b"}}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"meaning": {"dict.en.txt": "1" * 64}}, "trained on different data: dict.en.txt differs"),
        (
            {"model": {"gate_temperature": 2.0}},
            "not of the same model: gate_temperature is 2.0 in one",
        ),
        (
            {"model": {"arch": "transformer_dbsa"}},
            "not of the same model: arch is transformer_dbsa in",
        ),
        (
            {"common": {"seed": 2}, **OTHER},
            "from two trainings: common.seed is 2 in one and 1 in the other; average",
        ),
        (
            {"criterion": {"label_smoothing": 0.0}, **OTHER},
            "from two trainings: criterion.label_smoothing is 0.0 in one and 0.1 in",
        ),
    ],
)
def test_checkpoints_of_two_trainings_are_not_averaged(tmp_path, settings, message):
    paths = [train(tmp_path, 1), train(tmp_path, 2, **settings)]
    with pytest.raises(DataError, match=f"^{paths[1]} and {paths[0]}: .*{message}"):
        average_checkpoints(paths, tmp_path / "mean.pt")
    assert len([*tmp_path.iterdir()]) == 2


@pytest.mark.parametrize(
    "settings",
    [
        OTHER,  # it was moved
        {"common": {"seed": 2}, "criterion": {"label_smoothing": 0.0}},  # it was resumed
        {"model": {"dropout": 0.3}},
        {"common": {"seed": 2}, "checkpoint": {"save_dir": "b", "finetune_from_model": "x.pt"}},
        {"meaning": {"subwords.en": "2" * 64}},
    ],
)
def test_checkpoints_of_one_training_or_start_are_averaged(tmp_path, settings):
    paths = [train(tmp_path, 1), train(tmp_path, 2, **settings)]
    assert average_checkpoints(paths, tmp_path / "mean.pt") == [1, 2]
    kept = read_checkpoint(tmp_path / "mean.pt")["task_state"]["fingerprint"]["meaning"]
    assert kept["dict.en.txt"] == "0" * 64
    bare = save(tmp_path / "3.pt", 3, {"w": torch.ones(1)})  # says nothing of itself
    assert average_checkpoints([paths[0], bare], tmp_path / "mean.pt") == [1, 3]


@pytest.mark.parametrize(
    "state",
    [
        *({"model": {}, "optimizer_history": [{"num_updates": n}]} for n in (True, -1, 1.0, "1")),
        {"model": {}, "optimizer_history": [{"num_updates": torch.tensor(1)}]},
        {"model": {7: torch.ones(1)}, "optimizer_history": [{"num_updates": 1}]},
        {"model": [], "optimizer_history": [{"num_updates": 1}]},
        {"model": {}, "optimizer_history": []},
        {"model": {}, "optimizer_history": [{}]},
        {"weights": 1},
    ],
)
def test_a_history_or_names_of_another_type_are_refused(tmp_path, state):
    torch.save(state, tmp_path / "1.pt")
    with pytest.raises(
        DataError, match="1.pt: lacks the model or the optimizer history; give a fairseq"
    ):
        average_checkpoints([tmp_path / "1.pt"], tmp_path / "mean.pt")


@pytest.mark.parametrize(
    "odd",
    [
        torch.zeros(2, dtype=torch.complex64),
        torch.zeros(2, dtype=torch.float8_e4m3fn),
        torch.zeros(2).to_sparse(),
        torch.zeros(2, dtype=torch.int64).to_sparse(),
        torch.zeros(2, device="meta"),
        torch.zeros(2, dtype=torch.int64, device="meta"),
    ],
    ids=lambda odd: f"{odd.dtype}-{odd.layout}-{odd.device}",
)
def test_tensors_that_cannot_be_averaged_are_refused(tmp_path, odd):
    path = save(tmp_path / "1.pt", 1, {"a": odd})
    with pytest.raises(
        DataError, match=r"^\S*1\.pt: the parameter a is a tensor of \S+ \(.*not of plain numbers"
    ):
        average_checkpoints([path], tmp_path / "mean.pt")


def test_last_checkpoints_are_ordered_by_number(tmp_path):
    names = ["checkpoint1", "checkpoint2", "checkpoint10", "checkpoint_last", "checkpoint_best"]
    names += ["checkpoint_1_900", "checkpoint_2_1000", "checkpoint.best_loss_1.2"]
    for name in names:
        (tmp_path / f"{name}.pt").touch()
    assert [p.name for p in find_last_checkpoints(tmp_path, 2)] == [
        "checkpoint2.pt",
        "checkpoint10.pt",
    ]
    assert [p.name for p in find_last_checkpoints(tmp_path, 1, "update")] == [
        "checkpoint_2_1000.pt"
    ]
    with pytest.raises(
        DataError, match="2 checkpoints of the kind --by update, but 3 are to be averaged"
    ):
        find_last_checkpoints(tmp_path, 3, "update")


class Call:
    """Is a call of a function when it is read, and then gets a state."""

    def __init__(self, *reduced: Any) -> None:
        self.reduced = reduced

    def __reduce__(self) -> Any:
        return self.reduced


def test_arrays_of_numbers_are_read(tmp_path):
    kept = {"counts": np.arange(4).reshape(2, 2), "totals": np.array([0.5, 2.0])}
    read = read_checkpoint(save(tmp_path / "a.pt", 1, {}, extra_state=kept))["extra_state"]
    for name, array in kept.items():
        assert read[name].dtype == array.dtype and np.array_equal(read[name], array)


@pytest.mark.parametrize(
    "extra",
    [
        np.array([None, "text"], dtype=object),
        np.array([(1, 2)], dtype=[("a", "i8"), ("b", "O")]),
        np.array(["text"]),
        Call(np.ndarray, ((1,), np.dtype("i8"), b"A" * 8)),
        Call(np.dtype, (("V8", np.dtype("i8")),)),
    ],
    ids=["objects", "fields", "text", "made by hand", "another type"],
)
def test_arrays_of_anything_else_are_refused(extra, tmp_path):
    with pytest.raises(DataError, match="PyTorch cannot load the file"):
        read_checkpoint(save(tmp_path / "a.pt", 1, {}, extra_state=extra))


def test_no_file_changes_the_types_of_numbers(tmp_path):
    fields = (3, "|", None, ("a",), {"a": (np.dtype("f8"), 0)}, 8, 8, 0)
    extra = Call(np.dtype, ("i8", False, True), fields)
    read = read_checkpoint(save(tmp_path / "a.pt", 1, {}, extra_state=extra))["extra_state"]
    assert read is np.dtype("i8") and read.fields is None
