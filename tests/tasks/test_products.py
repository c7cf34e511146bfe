import platform

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from syncattn_fairseq.tasks import products
from syncattn_fairseq.tasks.products import bf16_products, tf32_products


def test_only_large_products_are_of_bfloat16():
    torch.manual_seed(1)
    layer, x = nn.Linear(64, 1024), torch.randn(128, 64)
    exact = layer(x)
    with bf16_products():
        rounded, small, double = layer(x), layer(x[:9]), layer.double()(x.double())
    assert rounded.dtype == torch.float32 and double.dtype == torch.float64
    assert 1e-4 < (rounded - exact).abs().max() < 3e-2
    assert torch.equal(small, exact[:9])
    with pytest.raises(ValueError, match="x"), bf16_products():
        raise ValueError("x")
    assert torch.equal(layer.float()(x), exact)


@pytest.mark.parametrize("bias", [True, False])
def test_products_have_few_numbers_of_rows_and_their_numbers_do_not_depend_on_it(bias, monkeypatch):
    monkeypatch.setattr(products, "WORTHWHILE", 0)
    seen = set()
    fill_up = products._fill_up
    monkeypatch.setattr(products, "_fill_up", lambda x, rows: seen.add(rows) or fill_up(x, rows))
    torch.manual_seed(1)
    layer = nn.Linear(24, 40, bias)
    for batch, length in ((3, 5), (2, 9), (16, 1), (4, 4)):
        x = torch.randn(batch, length, 24, requires_grad=True)
        results = []
        for rounded in (None, int, lambda rows: -(-rows // 16) * 16):
            x.grad = layer.weight.grad = None
            if bias:
                layer.bias.grad = None
            if rounded is None:
                out = layer(x)
                out.square().sum().backward()
            else:
                with bf16_products(rounded):
                    out = layer(x)
                    out.square().sum().backward()
            results.append([out.detach(), x.grad, *(p.grad for p in layer.parameters())])
        exact, plain, filled = results
        torch.testing.assert_close(filled, plain, rtol=2e-2, atol=1e-5)
        for tensor, expected in zip(filled, exact, strict=True):
            assert tensor.shape == expected.shape and tensor.dtype == torch.float32
            assert (tensor - expected).norm() < 2e-2 * expected.norm()
    assert {rows for rows in seen if rows % 16 == 0} == {16, 32}


def test_a_layer_that_is_frozen_or_first_needs_no_gradient(monkeypatch):
    monkeypatch.setattr(products, "WORTHWHILE", 0)
    weight, x = torch.randn(8, 4), torch.randn(3, 4)
    with bf16_products(lambda rows: 16):
        for given in ((x.requires_grad_(), weight), (x.detach(), weight.requires_grad_())):
            F.linear(*given).sum().backward()
    assert x.grad is not None and weight.grad is not None
    torch.testing.assert_close(x.grad, weight.detach().sum(0).expand(3, 4), rtol=2e-2, atol=2e-2)


def test_a_gpu_multiplies_in_tf32_only_meanwhile():
    before = torch.backends.cuda.matmul.allow_tf32
    with pytest.raises(ValueError, match="x"), tf32_products():
        assert torch.backends.cuda.matmul.allow_tf32
        raise ValueError("x")
    assert torch.backends.cuda.matmul.allow_tf32 == before


def test_the_processor_is_asked(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: "yes", raising=False)
    assert products.multiplies_bf16() is True
