import torch

import syncattn_fairseq.plugin  # noqa: F401  (turns it off)


def test_attention_is_kept_off_cudnn():
    assert not torch.backends.cuda.cudnn_sdp_enabled()
