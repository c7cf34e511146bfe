#!/usr/bin/env bash
# Test combinations of versions: install each row of the table below in its own venv, run tests and
# check_install.sh, and print the table with the outcomes. Takes gigabytes, and minutes for each row.
#
#   bash scripts/test_matrix.sh [ROW...]
#
# MATRIX  where the venvs are (~/.cache/syncattn-fairseq/matrix)
# TESTS   arguments for pytest
#
# uv is used if it is on the path: it downloads each torch once for all rows, and links it.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
source "$root/scripts/_fairseq.sh"
cd "$root"
unset PYTHONHOME PYTHONPATH
matrix="${MATRIX:-${XDG_CACHE_HOME:-$HOME/.cache}/syncattn-fairseq/matrix}"
read -ra tests <<<"${TESTS:-tests/functional tests/modules tests/models tests/criterions tests/data \
    tests/tasks tests/export tests/imports tests/inference tests/parsing tests/serving}"

pinned() { sed -n "s/^$1==\([^ ;]*\).*/\1/p" constraints.txt; }

# All that is required, extras too, but for what compiles, what runs no test, and a spaCy as old as its floor, which
# needs another typer than transformers.
floors="$(grep -oh '"[a-z0-9-]\+>=[0-9.]\+"' {,lab/}pyproject.toml | tr -d '"' | sort -u |
    grep -vE '^(pyicu|setuptools|mypy|ruff|spacy|ginza|ja-ginza)>=')"

# Row, Python, versions (floors, pins, or newest), fairseq (our wheel, or a package)
rows="
floor-3.11   3.11  floors  ours
pinned-3.11  3.11  pins    ours
pinned-3.12  3.12  pins    ours
pinned-3.13  3.13  pins    ours
pinned-3.14  3.14  pins    ours
newest-3.13  3.13  newest  ours
newest-3.14  3.14  newest  ours
ve-3.11      3.11  pins    ve-fairseq==0.12.3
ve-3.12      3.12  pins    ve-fairseq==0.12.3
"

requirements() { # requirements VERSIONS
    local package floor
    while IFS='>=' read -r package _ floor; do
        case $1 in
            floors) echo "$package==$floor" ;; # 2.6 is 2.6.0
            pins) echo "$package==$(pinned "$package")" ;;
            newest) echo "$package" ;;
        esac
    done <<<"$floors"
}

find_python() { # find_python VERSION: on the path or among pyenv's
    local candidate
    for candidate in "python$1" "$HOME"/.pyenv/versions/"$1".*/bin/python; do
        "$candidate" -c 'import venv' 2>/dev/null && { echo "$candidate"; return; }
    done
    return 1
}

get() { # get VENV ARGUMENTS...: pip install
    local venv=$1
    shift
    if command -v uv >/dev/null; then
        uv pip install --python "$venv/bin/python" "$@"
    else
        "$venv/bin/pip" install "$@"
    fi
}

fill() { # fill VENV PYTHON VERSIONS FAIRSEQ
    local wanted fairseq=$4
    mapfile -t wanted < <(requirements "$3")
    # What ours requires, and what translation needs of others, which also require torchaudio, and by it another torch.
    wanted+=("hydra-core<1.4" bitarray packaging "setuptools>=77")
    [ "$fairseq" = ours ] || wanted+=(scikit-learn)
    "$(find_python "$2")" -m venv "$1" && touch "$1/.filling" &&
        if [ "$fairseq" = ours ]; then fairseq="$(fairseq_wheel "$1/bin/python")"; fi &&
        get "$1" "${wanted[@]}" && get "$1" --no-deps "$fairseq" &&
        get "$1" --no-deps --no-build-isolation -e . -e lab &&
        # ve-fairseq looks for --user-dir beside itself, where an editable install leaves only a hook.
        ln -sfn "$root/syncattn_fairseq" "$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/"
}

outcome() { # outcome ROW PYTHON VERSIONS FAIRSEQ: print the last cell of the row
    local venv="$matrix/$1" log="$matrix/$1.log" passed began=$SECONDS
    find_python "$2" >/dev/null || { echo "no Python $2 on this machine"; return; }
    if [ ! -e "$venv/.filled" ]; then
        [ ! -e "$venv/.filling" ] || rm -rf "$venv" # of an earlier run that was stopped
        [ ! -e "$venv" ] || { echo "$venv was not made by this script; move it away"; return; }
        fill "$venv" "$2" "$3" "$4" >"$log" 2>&1 || {
            echo "cannot be installed: $(grep -i error "$log" | tail -n 1 | cut -c -120)"
            return
        }
        echo "installed in $((SECONDS - began)) s: $(du -sm "$venv" | cut -f 1) MB," \
            "$("$venv/bin/pip" list 2>/dev/null | tail -n +3 | wc -l) packages" >"$venv/.filled"
    fi
    "$venv/bin/python" -m pytest -o addopts= -q --disable-warnings -p no:cacheprovider \
        "${tests[@]}" >"$log" 2>&1 || {
        echo "tests fail: $(tail -n 1 "$log" | cut -c -120) ($log)"
        return
    }
    passed="$(tail -n 1 "$log")"
    PATH="$venv/bin:$PATH" bash <(grep -v 'pip check' scripts/check_install.sh) >>"$log" 2>&1 || {
        echo "does not work once installed: $(tail -n 1 "$log" | cut -c -120) ($log)"
        return
    }
    echo "$(<"$venv/.filled"); pip check: $("$venv/bin/pip" check 2>&1 | paste -sd ';'); passed: $passed; every command"
}

mkdir -p "$matrix"
echo "| row | Python | torch | numpy | sacrebleu | sentencepiece | stanza | fairseq | outcome |"
echo "|---|---|---|---|---|---|---|---|---|"
while read -r row python versions which; do
    [ -n "$row" ] || continue
    [ $# -eq 0 ] || [[ " $* " = *" $row "* ]] || continue
    said="$(outcome "$row" "$python" "$versions" "$which" </dev/null)"
    cells="$("$matrix/$row/bin/python" - 2>/dev/null <<'PYTHON' || true
from importlib.metadata import PackageNotFoundError, version


def found(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return "-"


fairseq = next((f"{n} {found(n)}" for n in ("fairseq-pure", "ve-fairseq") if found(n) != "-"), "-")
print(" | ".join([*map(found, "torch numpy sacrebleu sentencepiece stanza".split()), fairseq]))
PYTHON
    )"
    echo "| $row | $python | ${cells:-- | - | - | - | - | -} | $said |"
done <<<"$rows"
