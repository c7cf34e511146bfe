#!/usr/bin/env bash
# Train a tiny model with two processes and translate with it, by syncattn-recipe in a real Slurm on
# this machine. Then requeue a job while it trains: it must continue from its checkpoint.
#
#   bash benchmarks/slurm/train.sh
#
# On Debian: apt-get install --no-install-recommends slurm-wlm munge. Nothing outside the scratch
# folder is written, and the daemons are stopped at the end. Takes minutes: every job starts Python.
#
# SCRATCH  an empty folder to use and keep (default: a temporary one, removed)
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/_slurm.sh"
start_slurm
PATH="$root/.venv/bin:$PATH"
cd "$scratch"

# ---- a corpus and a system

quietly() { # quietly COMMAND...
    "$@" >>corpus.log 2>&1 || { tail -n 5 corpus.log >&2; fail "$1 failed"; }
}

say "a corpus"
sentences=20
quietly syncattn-corpus words --train 500 --valid 20 --test $sentences
quietly syncattn-bpe learn --vocab-size 500 --model bpe --input words/train.{en,de}
names=({train,valid,test}.{en,de})
mkdir pieces
quietly syncattn-bpe apply --model bpe.model --input "${names[@]/#/words/}" --output "${names[@]/#/pieces/}"
splits=()
for split in train valid test; do
    splits+=("--${split}pref" "pieces/$split" "--${split}heads" "words/$split")
done
quietly syncattn-preprocess -s en -t de --joined-dictionary --destdir work/data-bin/tiny "${splits[@]}"

mkdir -p configs/tiny
cat >configs/tiny/_data.yaml <<'END'
{archives: [], train: [], test: [], subwords: {size: 500, joint: true}, checkpoint: last}
END
cat >configs/tiny/_corpus.yaml <<'END'
common: {fp16: true, log_format: json, log_interval: 1}
task: {source_lang: en, target_lang: de}
model: {share_all_embeddings: true, encoder_layers: 2, decoder_layers: 2, encoder_embed_dim: 32,
  encoder_ffn_embed_dim: 32, encoder_attention_heads: 4, decoder_attention_heads: 4}
lr_scheduler: {warmup_updates: 100}
optimization: {lr: [0.001], max_update: 2}
dataset: {max_tokens: 1024, disable_validation: true}
checkpoint: {no_epoch_checkpoints: true, save_interval: 9999}
END

recipe() { # recipe SETTING|OPTION...: replaces the shell
    exec syncattn-recipe tiny syncattn "$@" --configs configs --work work --from train \
        --cpu --processes 2 --slurm cpus-per-task=2 time=60
}

# ---- checks

logs() { compgen -G "work/checkpoints/$1/1/$2-*.jobs/*_0_log.out"; } # logs FOLDER STAGE: the first process's

job_of() { # job_of LOG
    local name="${1##*/}"
    echo "${name%_0_log.out}"
}

completed() { # completed LOG: check that the job that wrote it completed
    local state
    state="$(fact "$(job_of "$1")" JobState)"
    [ "$state" = COMPLETED ] || fail "job $(job_of "$1") ended as $state"
}

trained() { # trained LOG UPDATES: check that two processes trained to the end
    local rank
    completed "$1"
    for rank in 0 1; do
        grep -qF "distributed init (rank $rank): env://" "${1%_0_log.out}_${rank}_log.out" ||
            fail "$1: rank $rank is missing"
    done
    grep -q "Saved checkpoint .* @ $2 updates" "$1" || fail "$1: no checkpoint after $2 updates"
}

say "two jobs: one trains, one translates"
(recipe --to decode)
trained "$(logs tiny/syncattn train)" 2
completed "$(logs tiny/syncattn decode)"
[ -s work/checkpoints/tiny/syncattn/1/checkpoint_last.pt ] || fail "no checkpoint"
translated=$(grep -c '^H-' work/checkpoints/tiny/syncattn/1/test.txt) || true
[ "$translated" -eq "$sentences" ] || fail "$translated translations of $sentences sentences"
say "trained by two processes; $translated translations"

say "a job that is requeued while it trains"
updates=600
in_background recipe --to train optimization.max_update=$updates checkpoint.save_interval_updates=50 \
    checkpoint.keep_interval_updates=1 checkpoint.save_dir=checkpoints/requeued
until log="$(logs requeued train)" && grep -q 'Saved checkpoint' "$log"; do
    kill -0 "$client" 2>/dev/null || fail "the job has saved nothing"
    sleep 0.2
done
scontrol requeue "$(job_of "$log")"
wait "$client"
client=
trained "$log" $updates
[ "$(fact "$(job_of "$log")" Restarts)" -eq 1 ] || fail "job $(job_of "$log") was not started again"
began=$(sed -n 's/.*Loaded checkpoint .* @ \([0-9]*\) updates.*/\1/p' "$log" | head -n 1)
{ [ "${began:-0}" -gt 0 ] && [ "$began" -lt $updates ]; } || fail "$log: did not continue from a checkpoint"
say "requeued, and continued from update $began to $updates"
