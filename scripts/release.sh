#!/usr/bin/env bash
# Check that a version is ready, make its artefacts in dist/, and tag it.
#
#   bash scripts/release.sh --dry-run     everything but the tag
#   bash scripts/release.sh               the tag too; pushed, it makes the workflow "release" publish what it builds
#
# PYTHON  the interpreter to use, 3.11 to 3.14 (python3)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
fail() { printf 'release.sh: %s\n' "$*" >&2; exit 1; }

dry=
case "$*" in
    "") ;;
    --dry-run) dry=1 ;;
    *) fail "unknown argument $1; usage: release.sh [--dry-run]" ;;
esac

version="$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' syncattn_fairseq/__init__.py)"
date="$(sed -n 's/^date-released: //p' CITATION.cff)"
grep -qx "version: $version" CITATION.cff || fail "CITATION.cff has another version than $version"
grep -qx "__version__ = \"$version\"" lab/syncattn_lab/__init__.py &&
    grep -qF "\"syncattn-fairseq[train]==$version\"" lab/pyproject.toml ||
    fail "lab/syncattn_lab/__init__.py or lab/pyproject.toml names another version than $version"
for project in {,lab/}pyproject.toml; do
    grep -qF "/blob/v$version/docs/index.md\"" "$project" || fail "$project: Documentation is not that of $version"
done
grep -qx "## $version, $date" CHANGELOG.md || fail "CHANGELOG.md has no heading '## $version, $date'"
if [ -z "$dry" ]; then
    [ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed"
    [ "$(date +%F)" = "$date" ] || fail "CITATION.cff and CHANGELOG.md do not have today's date"
    ! git rev-parse -q --verify "refs/tags/v$version" >/dev/null || fail "there is a tag v$version already"
fi

bash scripts/build.sh
for wheel in dist/syncattn_{fairseq,lab}-"$version"-py3-none-any.whl dist/fairseq_pure-*-py3-none-any.whl; do
    [ -f "$wheel" ] || fail "there is no $wheel"
    "${PYTHON:-python3}" -m zipfile --list "$wheel" | grep -Eq '\.dist-info/(licenses/)?LICENSE' || fail "$wheel has no licence"
done
(cd dist && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)
if [ -n "$dry" ]; then
    echo "ready: $version, of $date, in dist/; not tagged"
else
    git tag -a "v$version" -m "Version $version"
    echo "tagged v$version; to publish it: git push origin v$version"
fi
