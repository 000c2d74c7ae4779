#!/usr/bin/env bash
# Runs every fuzz target for FUZZ_SECONDS each (60), from what earlier runs have found worth keeping (target/fuzz/corpus). A finding ends the run; its input stays in
# target/fuzz/found and is played again by: scripts/fuzz.sh TARGET FILE
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${FUZZ_SECONDS:-60}
export PATH="$PWD/target/tools/bin:$PATH"
fuzz() { scripts/cargo.sh +nightly fuzz "$@"; }

if [ $# -gt 0 ]; then
    target=$1
    shift
    exec scripts/cargo.sh +nightly fuzz run --target-dir target/fuzz/build "$target" "$@"
fi
for target in $(fuzz list); do
    printf '== %s, %s s\n' "$target" "$seconds"
    mkdir -p "target/fuzz/corpus/$target" target/fuzz/found
    status=0
    fuzz run --target-dir target/fuzz/build "$target" "target/fuzz/corpus/$target" -- \
        -max_total_time="$seconds" -timeout=10 -max_len=8192 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="target/fuzz/found/$target-" 2>&1 | grep -E "^(==|Done|stat::(number|average)|SUMMARY|thread|  *left|  *right)|panicked|Test unit" || status=${PIPESTATUS[0]}
    if [ "$status" != 0 ]; then
        echo "fuzz: $target has found something, see target/fuzz/found" >&2
        exit 1
    fi
done
echo "fuzz: nothing found"
