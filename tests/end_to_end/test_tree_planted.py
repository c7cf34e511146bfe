from tests.end_to_end import commands
from tests.end_to_end.commands import logged, train


def test_attention_is_planted_with_and_without_parses(text, data, tmp_path):
    encoder = ("--encoder-dependency-layer=1", "--encoder-parser=dot", "--src-dep-weight=0")
    ten = ("--max-update=10", "--validate-interval-updates=2", "--no-save")
    planted = (*encoder, "--src-planted-weight=5", *ten)
    decoder = ("--decoder-dependency-layer=1", "--tgt-dep-weight=0", "--tgt-planted-weight=5")
    output = train(data, tmp_path, "syntax_transformer", *planted, *decoder)
    assert len(logged(output)) == 10
    first, *_, last = logged(output, "valid")
    for loss in ("src_planted_loss", "tgt_planted_loss"):
        assert loss in logged(output)[0]
        assert last[f"valid_{loss}"] < first[f"valid_{loss}"]

    plain = tmp_path / "plain"
    arguments = ["-s=en", "-t=de", f"--destdir={plain}", "--joined-dictionary"]
    arguments += [f"--{split}pref={text / 'pieces' / split}" for split in ("train", "valid")]
    commands.run("fairseq-preprocess", *arguments)
    refused = train(plain, tmp_path, "syntax_transformer", *planted, fails=True)
    assert "--src-planted-weight 5.0: the batches have no tree distances" in refused
    linear = (*planted, "--planted-distance=linear")
    first, *_, last = logged(train(plain, tmp_path, "syntax_transformer", *linear), "valid")
    assert last["valid_src_planted_loss"] < first["valid_src_planted_loss"]
    assert "valid_tgt_planted_loss" not in last
