# Sourced by install.sh and build.sh, in the root of the checkout.

fairseq_wheel() { # fairseq_wheel PYTHON: print the path of the wheel of fairseq-pure; it is made once, for every Python
    local pin key cache work
    pin="$(sed -n 's/^\(fairseq-fixed==[^ ]*\) *# wheel \(.*\)/\1 --hash=\2/p' constraints.txt)"
    key="$(cat scripts/slim_fairseq.py scripts/pure_fairseq/*.{md,py} - <<<"$pin" | cksum | cut -d ' ' -f 1)"
    cache="${XDG_CACHE_HOME:-$HOME/.cache}/syncattn-fairseq/$key"
    if ! compgen -G "$cache/*.whl" >/dev/null; then
        mkdir -p "$cache" && work="$(mktemp -d "$cache/new.XXXXXX")" && echo "$pin" >"$work/pin.txt" &&
            # What is compiled in it is not used. Given a hash, pip checks the file.
            "$1" -m pip --disable-pip-version-check download -q --no-deps --only-binary :all: --require-hashes \
                --python-version 3.12 --platform manylinux_2_28_x86_64 -r "$work/pin.txt" -d "$work" >&2 &&
            mkdir "$work/made" && "$1" scripts/slim_fairseq.py "$work"/*.whl "$work/made" >&2 &&
            # Renamed into place: a half-written wheel must never be found there.
            mv "$work"/made/*.whl "$cache" && rm -rf "$work" || return 1
    fi
    echo "$cache"/*.whl
}
