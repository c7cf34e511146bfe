import math

import torch

from syncattn_fairseq.functional import relative_depth_scores


def test_scores_equal_the_loop():
    torch.manual_seed(0)
    query, embedding = torch.randn(2, 3, 5, 4).double(), torch.randn(5, 4).double()
    depths = torch.tensor([[0, 1, 2, 7, 1], [3, 0, 0, 1, 9]], dtype=torch.int16)
    scores = relative_depth_scores(query, depths, embedding)
    for b in range(2):
        for i in range(5):
            for j in range(5):
                difference = max(-2, min(2, int(depths[b, j]) - int(depths[b, i])))
                for h in range(3):
                    expected = query[b, h, i] @ embedding[difference + 2] / math.sqrt(4)
                    torch.testing.assert_close(scores[b, h, i, j], expected)
