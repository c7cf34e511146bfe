"""Models, wired to fairseq. Importing this package registers them."""

from . import architectures, syntax_rnn, syntax_transformer
