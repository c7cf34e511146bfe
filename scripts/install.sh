#!/usr/bin/env bash
# Create .venv with the plugin and the laboratory, or bring it up to date. Quick when nothing is to do.
#
#   bash scripts/install.sh [--extras parse]       extras of pyproject.toml or lab/pyproject.toml
#
# PYTHON          the interpreter to use, 3.11 to 3.14
# TORCH           what pip is asked for instead of our choice of torch, e.g. TORCH=torch==2.13.0
#                 for CUDA on a login node that has no GPU itself
# XDG_CACHE_HOME  where our wheel of fairseq is kept (~/.cache)
set -euo pipefail
unset PYTHONHOME PYTHONPATH # else pip takes packages from elsewhere for installed

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
cd "$root"
source scripts/_fairseq.sh
venv=.venv
log=$venv/install.log
extras=dev,moses,subword-nmt

say() { printf 'install: %s\n' "$*"; }
fail() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }
has_extra() { grep -q "^$1 = \[" "$2"; } # has_extra NAME PYPROJECT

while [ $# -gt 0 ]; do
    case $1 in
        --extras)
            for extra in $(tr , ' ' <<<"${2:-}"); do
                has_extra "$extra" pyproject.toml || has_extra "$extra" lab/pyproject.toml ||
                    fail "neither pyproject.toml nor lab/pyproject.toml has an extra '$extra'"
                extras="$extras,$extra"
            done
            shift $(($# > 1 ? 2 : 1))
            ;;
        -h | --help)
            sed -n '2,/^set /{s/^# \{0,1\}//;/^set /!p}' "${BASH_SOURCE[0]}"
            exit
            ;;
        *) fail "unknown argument $1; usage: install.sh [--extras parse]" ;;
    esac
done

# The stamp .venv/.complete is written last and says what it vouches for: the place (a copied venv
# runs the programs of the old one), the files that decide what is installed, and the extras.
# .venv/.incomplete marks a venv of ours that is being filled.
inputs="$(cat constraints.txt {,lab/}pyproject.toml scripts/{install.sh,_fairseq.sh,slim_fairseq.py} \
    scripts/pure_fairseq/*.{md,py} | cksum)"
stamped() { sed -n "s/^$1=//p" $venv/.complete 2>/dev/null || true; }

missing_extras() {
    local have extra
    have=",$(stamped extras),"
    for extra in ${extras//,/ }; do
        case $have in *",$extra,"*) ;; *) printf '%s ' "$extra" ;; esac
    done
}

wrong_python() { # PYTHON names another version than the one installed
    [ -n "${PYTHON:-}" ] && [ "$(version "$PYTHON")" != "$(version $venv/bin/python)" ]
}

extras_of() { # extras_of PYPROJECT: those of $extras that it has, as [a,b]
    local extra found=
    for extra in ${extras//,/ }; do
        if has_extra "$extra" "$1"; then found="$found,$extra"; fi
    done
    echo "${found:+[${found#,}]}"
}

version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

todo() { # what the venv needs: nothing, extend, update, rebuild, create; or it is of another Python or maker
    if [ ! -e $venv ]; then echo create
    elif [ -e $venv/.incomplete ] || [ -z "$(ls -A $venv)" ]; then echo rebuild
    elif [ ! -e $venv/.complete ]; then echo foreign
    elif [ "$(stamped root)" != "$root" ] || [ ! -x $venv/bin/python ]; then echo rebuild
    elif wrong_python; then echo other
    elif [ "$(stamped inputs)" != "$inputs" ]; then echo update
    elif [ -n "$(missing_extras)" ]; then echo extend
    else echo nothing
    fi
}

choose_python() { # PYTHON, or the first that the pinned versions are made for
    local candidate found
    set -- python3 python3.13 python3.12 python3.11 python3.14 python
    [ -z "${PYTHON:-}" ] || set -- "$PYTHON"
    for candidate; do
        found="$(version "$candidate")" || continue
        case $found in
            3.1[1-4]) ;;
            *) continue ;;
        esac
        "$candidate" -c 'import ensurepip, venv' 2>/dev/null ||
            fail "$candidate has no venv module; on Debian: apt install python$found-venv"
        echo "$candidate"
        return
    done
    fail "Python 3.11 to 3.14 is needed (found ${found:-none});" \
        "name one with PYTHON=/path/to/python3.11"
}

step() { # step LABEL COMMAND...: one line with seconds; the output goes to the log
    local label=$1 began=$SECONDS
    shift
    printf '  %-58s' "$label"
    if ! "$@" >>$log 2>&1; then
        printf 'failed\n'
        fail "$label: $(grep -iE '(^|[a-z])error\b' $log | tail -n 1 | cut -c -300) (see $log)"
    fi
    printf '%4d s\n' $((SECONDS - began))
}

pip() { $venv/bin/python -m pip --disable-pip-version-check "$@"; }
pip_install() { pip install --no-compile -c constraints.txt "$@"; }
pinned() { sed -n "s/^$1==\([^ ;]*\).*/\1/p" constraints.txt; }

torch_arguments() { # what to ask pip for: CUDA where there is a GPU, else the CPU build if possible
    local torch index=https://download.pytorch.org/whl/cpu
    torch="torch==$(pinned torch)"
    if nvidia-smi >/dev/null 2>&1; then
        echo "$torch,!=$(pinned torch)+cpu"
    elif [ "$(uname -s)" != Linux ]; then
        echo "$torch" # is the CPU build
    elif pip install --dry-run --no-deps "$torch+cpu" >/dev/null 2>&1; then
        echo "$torch+cpu" # from an index or folder of pip's own configuration
    elif reachable $index/torch/; then
        echo "$torch+cpu --extra-index-url $index"
    else
        say "no CPU build of torch within reach: taking the one with CUDA, several GB" >&2
        echo "$torch"
    fi
}

reachable() {
    $venv/bin/python - "$1" 2>/dev/null <<<'import sys, urllib.request
urllib.request.urlopen(sys.argv[1], timeout=5)'
}

install_torch_and_fairseq() {
    local torch="${TORCH:-$(torch_arguments)}"
    # shellcheck disable=SC2086 # several arguments
    step "${torch%%[, ]*}" pip_install $torch setuptools
    step "wheel of fairseq-pure $(pinned fairseq-pure)" fairseq_wheel $venv/bin/python
    step "fairseq-pure $(pinned fairseq-pure)" \
        pip_install --no-deps --force-reinstall "$(fairseq_wheel $venv/bin/python)"
}

[ "$(todo)" != nothing ] || exit 0

if command -v flock >/dev/null; then # two runs at once: the second waits and finds the work done
    exec 9>>$venv.lock
    flock -n 9 || { say "waiting for another install of $root"; flock 9; }
fi

began=$SECONDS
work="$(todo)"
case $work in
    nothing) exit 0 ;;
    other) fail "$root/$venv has Python $(version $venv/bin/python), not that of PYTHON; remove it and run again" ;;
    foreign) fail "$root/$venv was not made by this script; move it away and run again" ;;
    update | extend)
        added="$(missing_extras)"
        extras="$(stamped extras)${added:+,$(tr ' ' , <<<"${added% }")}"
        if [ "$work" = update ]; then say "$venv is out of date: updating it"
        else say "adding to $venv: ${added% }"
        fi
        mv $venv/.complete $venv/.incomplete
        ;;
    *)
        python="$(choose_python)"
        [ "$work" = create ] ||
            say "$venv is incomplete, or of another place: rebuilding it"
        rm -rf $venv
        mkdir $venv
        touch $venv/.incomplete
        step "$venv with Python $(version "$python")" "$python" -m venv $venv
        ;;
esac

if [ "$work" != extend ]; then # else another script that runs in the venv keeps them
    install_torch_and_fairseq
fi
step "syncattn-fairseq and syncattn-lab [$extras]" \
    pip_install --no-build-isolation -e ".$(extras_of pyproject.toml)" -e "./lab$(extras_of lab/pyproject.toml)"
# Shows that it works, and leaves the bytecode that pip was told not to make for all of torch.
step "first import" env -u PYTHONDONTWRITEBYTECODE \
    $venv/bin/python -c 'import fairseq_cli.generate, fairseq_cli.train'

printf '%s\n' "root=$root" "inputs=$inputs" "extras=$extras" >$venv/.incomplete
mv $venv/.incomplete $venv/.complete
say "done in $((SECONDS - began)) s"
