#!/usr/bin/env bash
# Runs every fuzz target for FUZZ_SECONDS each (60), from what earlier runs have found worth keeping (target/fuzz/corpus) and from seeds: those of SQL are the statements of the scenarios and of PostgreSQL's corpus, those of rdb the values that redis-server has dumped,
# others stand in fuzz/seeds. A finding ends the run; its input stays in
# target/fuzz/found and is played again by: scripts/fuzz.sh TARGET FILE
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${FUZZ_SECONDS:-60}
export PATH="$PWD/target/tools/bin:$PATH"
# GCC moves constant tables of C functions out of the stack and still poisons them when their scope ends: zstd's were taken for a use after scope.
export CFLAGS="${CFLAGS-} -fno-sanitize-address-use-after-scope"

fuzz() { scripts/cargo.sh +nightly fuzz "$@"; }

if [ $# -gt 0 ]; then
    target=$1
    shift
    exec scripts/cargo.sh +nightly fuzz run --target-dir target/fuzz/build "$target" "$@"
fi
# Each statement of the scenarios is a file; `mode` is a byte before it, for the target that wants one.
statements() {
    mkdir -p "$1"
    awk -v folder="$1" -v mode="$2" 'BEGIN { RS = ""; FS = "\n" } !/^#/ {
        text = $0; end = match(text, /;(\n|$)/); if (!end) next
        text = substr(text, 1, end - 1); sub(/^[a-z]: /, "", text)
        file = folder "/" ++count; printf "%s%s", mode, text > file; close(file)
    }' crates/sql-mysql/tests/scenarios/*.txt
}
statements target/fuzz/seeds/sql_text @
statements target/fuzz/seeds/sql_parse @
statements target/fuzz/seeds/sql_bind ""
mkdir -p target/fuzz/seeds/postgres_parse
awk '{ file = "target/fuzz/seeds/postgres_parse/" NR; print > file; close(file) }' scripts/postgres_corpus/forms.txt
mkdir -p target/fuzz/seeds/rdb
perl -F'\t' -ane 'open F, ">", "target/fuzz/seeds/rdb/$."; print F pack "H*", $F[1]; close F' crates/rdb/tests/it/corpus.txt

for target in $(fuzz list); do
    printf '== %s, %s s\n' "$target" "$seconds"
    mkdir -p "target/fuzz/corpus/$target" target/fuzz/found
    seeds=()
    for folder in "fuzz/seeds/$target" "target/fuzz/seeds/$target"; do
        if [ -d "$folder" ]; then seeds+=("$folder"); fi
    done
    words=()
    case $target in sql_* | postgres_*) words=(-dict=fuzz/sql.dict) ;; esac
    status=0
    fuzz run --target-dir target/fuzz/build "$target" "target/fuzz/corpus/$target" "${seeds[@]}" -- "${words[@]}" \
        -max_total_time="$seconds" -timeout=10 -max_len=8192 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="target/fuzz/found/$target-" 2>&1 | grep -E "^(==|Done|stat::(number|average)|SUMMARY|thread|  *left|  *right)|panicked|Test unit" || status=${PIPESTATUS[0]}
    if [ "$status" != 0 ]; then
        echo "fuzz: $target has found something, see target/fuzz/found" >&2
        exit 1
    fi
done
echo "fuzz: nothing found"
