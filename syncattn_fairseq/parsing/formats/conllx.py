"""CoNLL-X (Buchholz and Marsi, 2006), written by MaltParser and others of its time."""

from .columns import Table

CONLLX = Table("in CoNLL-X", "\t", form=1, head=6, label=7, columns=10)
