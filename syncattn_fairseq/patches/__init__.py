"""Patches of fairseq and PyTorch: a file for each fault, with a function ``mend``.

:mod:`syncattn_fairseq.plugin` calls them, in order. Each file names the versions with the fault,
and a test in ``tests/patches`` that fails without the patch. To see whether a patch is still needed
with a new version, take its name out of ``plugin.py`` (and its call out of the tests of one_line,
safety_saves and finite_losses) and run that test: if it passes, delete the patch.
"""
