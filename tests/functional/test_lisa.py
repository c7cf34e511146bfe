import torch
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.functional import parser_scores
from tests.functional import reference

sizes = st.integers(1, 6)


@given(sizes, sizes, sizes, st.booleans(), st.integers(0, 2**31))
def test_parser_scores_equal_the_loop(T, S, d, bias, seed):
    torch.manual_seed(seed)
    query, key, weight = torch.randn(T, d), torch.randn(S, d), torch.randn(d, d)
    b = torch.randn(d) if bias else None
    expected = reference.biaffine_scores(
        reference.leaky_relu(query.double()), reference.leaky_relu(key.double()), weight.double(), b
    )
    torch.testing.assert_close(
        parser_scores(query, key, weight, b).double(),
        torch.tensor(expected).double(),
        rtol=1e-5,
        atol=1e-5,
    )
