"""The papers' equations as pure tensor functions, without fairseq and without parameters.

One file per paper, its equations in the paper's order and symbols:

* :mod:`.dbsa` -- dependency-based self-attention (Deguchi et al., RANLP 2019);
* :mod:`.syncattn` -- synchronous syntactic attention (Deguchi et al., ACL-IJCNLP SRW 2021);
* :mod:`.lpsi` -- latent phrase structure (Harada and Watanabe, ACL-IJCNLP SRW 2021);
* :mod:`.pascal` -- parent-scaled self-attention (Bugliarello and Okazaki, ACL 2020);
* :mod:`.lisa` -- linguistically-informed self-attention (Strubell et al., EMNLP 2018);
* :mod:`.sdatt` -- syntax-directed attention of RNNs (Chen et al., AAAI 2018).

What they are compared with is in :mod:`.controls`:

* :mod:`.controls.supervised_gate` -- gates set by a parser (Hou et al., Findings of EMNLP 2022);
* :mod:`.controls.tree_planted` -- fading with a distance (Yoshida et al., Findings of ACL 2024);
* :mod:`.controls.dasa` -- scores scaled by tree distances (Chi et al., PLoS One 2026);
* :mod:`.controls.forget_gate` -- gates that let attention fade (Lin et al., ICLR 2025);
* :mod:`.controls.guided_alignment` -- cross-attention trained on links (Garg et al., EMNLP 2019);
* :mod:`.controls.alibi` -- linear biases (Press et al., ICLR 2022), for any distance;
* :mod:`.controls.t5` -- learnt biases for relative positions (Raffel et al., JMLR 2020);
* :mod:`.controls.rotary` -- rotary position embedding (Su et al., 2021).

Shapes are in the signatures: ``Float[Tensor, "*#batch queries keys"]`` is a tensor of
floating-point numbers with one row for each query and one column for each key. ``*#batch`` stands
for any number of dimensions before them, sentences first, which broadcast. ``*batch`` does not
broadcast: in a result, it is what they broadcast to. Masks are boolean, True = masked. Half
precision inputs are summed, and turned, in float32.
"""

from .controls.alibi import alibi_slopes, linear_biases
from .controls.dasa import log_tree_weights, released_tree_weights, tree_weights
from .controls.forget_gate import forget_log_gates
from .controls.guided_alignment import guided_alignment_loss
from .controls.rotary import rotary_angles, rotate
from .controls.supervised_gate import gap_heights, supervised_log_gates
from .controls.t5 import relative_buckets
from .controls.tree_planted import planted_losses, planted_target
from .dbsa import biaffine_scores, dependency_loss
from .lpsi import (
    constant_log_gates,
    distance_gates,
    gated_attention,
    project_distances,
    sync_mse_loss,
    sync_rank_loss,
    syntactic_distances,
)
from .pascal import parent_gaussian, parent_scaled_scores
from .sdatt import (
    additive_scores,
    distances_from,
    expected_distances,
    flexible_attention,
    local_attention,
    predicted_position,
    syntax_directed_attention,
    syntax_directed_scores,
    tree_distances,
)
from .syncattn import project_attention, sync_attention_loss
