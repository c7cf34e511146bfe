"""EDA's own format, ``head`` before ``word``, and ``eda -o conll`` (Flannery et al., 2012).

Columns are separated by single spaces, since a Japanese word may contain U+3000, the ideographic
space. A root has the head -1 or 0. Without ``--labeling``, labels are meaningless.

The text must be the one that KyTea analysed: EDA reads ``kytea``'s output.
"""

from .columns import Table

EDA = Table("in EDA's format", " ", form=2, head=1, label=4, columns=4, header="ID=")
EDA_CONLL = Table("of eda -o conll", " ", form=1, head=6, label=7, columns=7)
