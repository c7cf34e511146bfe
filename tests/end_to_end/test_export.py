"""Models out of fairseq and into it, by the real commands."""

import shutil
import subprocess
import sys

import pytest

from tests.end_to_end.commands import hypotheses, logged, run, train
from tests.end_to_end.corpora import VALID

WITHOUT_TORCH = """
import sys
sys.modules.update(torch=None, fairseq=None)
from syncattn_fairseq.cli.translate import main
sys.exit(main())
"""


def test_an_export_translates_as_its_checkpoint(text, data, syncattn, tmp_path):
    pytest.importorskip("ctranslate2")
    checkpoint, subwords = syncattn / "checkpoint_last.pt", text / "bpe.model"
    source = "".join((text / "words" / "test.en").read_text().splitlines(keepends=True)[:3])
    options = [f"--path={checkpoint}", f"--data-bin={data}", f"--subwords={subwords}"]
    folder = tmp_path / "out"
    said = run("syncattn-export", *options, "--format=ctranslate2", f"--output={folder}")
    assert said.splitlines()[-1].startswith(f"{folder}: 20 sentences have the same scores to ")
    wanted = run("syncattn-translate", *options, "--device=cpu", "--alignments", stdin=source)
    found = run("syncattn-translate", f"--path={folder}", "--alignments", stdin=source)
    # Trained for a moment only, it may not know where a sentence ends.
    for one, other in zip(wanted.splitlines(), found.splitlines(), strict=True):
        assert one.split("\t")[0][:30] == other.split("\t")[0][:30]
    words = [f"--path={folder}", "--alignments", "--max-len=50"]
    command = [sys.executable, "-c", WITHOUT_TORCH, *words]
    done = subprocess.run(command, input=source, capture_output=True, text=True)
    assert done.stdout and found.startswith(done.stdout), done.stderr

    said = run("syncattn-export", *options, "--format=fairseq", f"--output={folder}", fails=True)
    assert said.splitlines()[-1].startswith(f"error: {folder}: already exists")


def test_a_baseline_is_as_good_before_the_first_update_of_dbsa(data, tmp_path):
    baseline = tmp_path / "baseline"
    output = train(data, baseline, "transformer", "--max-update=8")
    [before] = logged(output, "valid")
    still = ["--max-update=1", "--lr=0", "--lr-scheduler=fixed"]
    checkpoint = baseline / "checkpoint_last.pt"
    # fairseq without this package can load it.
    alone = [data, f"--path={checkpoint}", "--cpu", "--gen-subset=valid", "--max-len-b=9"]
    decoded = run("fairseq-generate", *alone, "--required-batch-size-multiple=1")
    assert len(hypotheses(decoded)) == VALID
    output = train(
        data, tmp_path / "dbsa", "transformer_dbsa", *still, f"--finetune-from-model={checkpoint}"
    )
    assert "new parts: encoder.layers.0.self_attn.heads.dependency.weight" in output
    [after] = logged(output, "valid")
    for number in ("valid_loss", "valid_nll_loss", "valid_ppl"):
        assert after[number] == pytest.approx(before[number], abs=2e-3)
    assert after["valid_src_dep_loss"] > 0

    restored = tmp_path / "restored"
    restored.mkdir()
    shutil.copy(checkpoint, restored / "checkpoint_last.pt")
    fresh = [f"--reset-{name}" for name in ("optimizer", "dataloader", "meters", "lr-scheduler")]
    output = train(data, restored, "transformer_dbsa", *still, *fresh)
    [after] = logged(output, "valid")
    assert after["valid_nll_loss"] == pytest.approx(before["valid_nll_loss"], abs=2e-3)
