# Sourced by install.sh and build.sh, in the root of the checkout.

build_fairseq() { # build_fairseq PYTHON FOLDER: fairseq without its torch extensions, as a wheel in FOLDER
    local python=$1 folder=$2 work=$2/fairseq
    rm -rf "$work" && mkdir -p "$work" &&
        sed -n 's/^\(fairseq-fixed==[^ ]*\) *# sdist \(.*\)/\1 --hash=\2/p' constraints.txt >"$work/requirement.txt" &&
        # Given a hash, pip checks the archive before it runs its setup.py. An isolated build would
        # fetch a torch with all of CUDA.
        "$python" -m pip --disable-pip-version-check download --no-deps --no-binary :all: \
            --no-build-isolation --require-hashes -r "$work/requirement.txt" -d "$work" &&
        "$python" scripts/slim_fairseq.py "$work"/*.tar.gz "$work" &&
        (unset CUDA_HOME && "$python" -m pip --disable-pip-version-check wheel \
            --no-deps --no-build-isolation -w "$folder" "$work"/*/) &&
        rm -rf "$work"
}
