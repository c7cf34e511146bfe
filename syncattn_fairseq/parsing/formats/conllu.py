"""CoNLL-U, the format of Universal Dependencies: Stanza, UDPipe, spaCy, CoreNLP and others.

https://universaldependencies.org/format.html
"""

from .columns import Table

CONLLU = Table("in CoNLL-U", "\t", form=1, head=6, label=7, columns=10, multiword=True)
