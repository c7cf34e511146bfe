"""The laboratory: recipes, scores, reports and controls for experiments with the plugin.

It imports :mod:`syncattn_fairseq`, which never imports it.
"""

__version__ = "0.1.0"
