#!/usr/bin/env bash
# Build what a release page offers into dist/: the sdist and the wheel of this package, checked, and the wheel of
# fairseq without torch extensions, for the interpreter's version and this kind of machine. Installs .venv first, since
# fairseq's setup.py imports torch.
#
#   PYTHON  the interpreter to use, 3.10 to 3.13 (python3)
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
source "$root/scripts/_fairseq.sh"
cd "$root"
unset PYTHONHOME PYTHONPATH

tools="$(mktemp -d)"
trap 'rm -rf "$tools"' EXIT
"${PYTHON:-python3}" -m venv "$tools"
"$tools/bin/pip" install -q --disable-pip-version-check -c constraints.txt build setuptools twine

# setuptools would reuse what an earlier build left in build/.
rm -rf build dist
# The wheel is built from the sdist, which shows if the sdist lacks a file. Without isolation, setuptools is the pinned one.
"$tools/bin/python" -m build --no-isolation
"$tools/bin/twine" check --strict dist/*
use_venv
build_fairseq "$root/.venv/bin/python" "$tools/wheels"
mv "$tools"/wheels/*.whl dist/
