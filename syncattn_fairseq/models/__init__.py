"""The models; importing this package registers them with fairseq."""

from . import architectures, syntax_rnn, syntax_transformer
