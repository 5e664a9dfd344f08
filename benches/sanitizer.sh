#!/bin/sh
# What compute-sanitizer finds in the kernels with which the emulator's check is tested, on a machine with a
# GPU, nvcc and compute-sanitizer: benches/sanitizer.sh > table.md
# A cell has the tool's first finding, or "–" for none. `expected` is what the emulator's check finds, which
# crates/ladders/emu/tests/checking.rs tests.
set -u
cd "$(dirname "$0")"
program=${TMPDIR:-/tmp}/sanitizer
nvcc -arch=native -lineinfo -o "$program" sanitizer.cu || exit 1
echo "$(compute-sanitizer --version | sed -n 's/.*Version/compute-sanitizer/p'), $(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)"
echo
echo "| kernel | expected | racecheck | memcheck | initcheck | synccheck |"
echo "|---|---|---|---|---|---|"
while IFS='|' read -r case expected; do
    row="| \`$case\` | $expected |"
    for tool in racecheck memcheck initcheck synccheck; do
        # shellcheck disable=SC2086
        found=$(timeout 60 compute-sanitizer --tool $tool "$program" $case 2>&1 |
            grep -E "^========= (Error: Race|Warning: Race|Invalid|Uninitialized|Barrier error|Divergent)" |
            sed -E 's/^========= //; s/ between .*//; s/ of size.*//; s/ at (0x|__shared__|block|.*\+).*//; s/ reported//; s/\.$//' | head -1)
        row="$row ${found:-–} |"
    done
    echo "$row"
done <<CASES
count_global|race in global memory
count_atomic|none
count_shared|race in shared memory
three_barriers 0|none
three_barriers 1|race in shared memory
three_barriers 2|race in shared memory
three_barriers 3|race in shared memory
swap 0|race in shared memory
swap 1|none
warp_sum 0|race in shared memory
warp_sum 1|none
old_warp|race in shared memory
shuffled|none
last_block 0|race in global memory
last_block 1|none
flags 0|race in global memory
flags 1|none
same_flag|note: equal values
past_end|read outside an array
before_begin|write outside an array
wild|write outside an array
shared_end|write outside a shared array
unwritten 0|none
unwritten 1|read of what nobody wrote (shared)
unwritten 2|read of what nobody wrote (global)
half_barrier|barrier that not all threads reach
spin_lock|none
CASES
