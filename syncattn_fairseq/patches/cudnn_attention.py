"""Keep PyTorch's attention off cuDNN.

Fault: PyTorch 2.5 and later try cuDNN first on recent GPUs. It makes a plan for every shape of a
batch, which takes up to a second (github.com/modelscope/FunASR/issues/3704), and batches of
translations have hundreds of shapes.
Test: ``test_small_patches.py`` sees that it is off; ``benchmarks/gpu.sh`` with and without the
patch shows whether it still costs time.
"""


def mend() -> None:
    """Switch off the cuDNN kernel of PyTorch's scaled dot-product attention."""
    import torch

    torch.backends.cuda.enable_cudnn_sdp(False)
