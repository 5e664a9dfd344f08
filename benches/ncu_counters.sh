#!/bin/sh
# Nsight Compute's counters for every CUDA variant of every ladder, in the small problems that rayspin-ladder
# counters counts. Runs on a machine with a GPU, ncu and the packed programs (scripts/gpu-pack.sh); benches/
# ncu_table.py puts the result beside the counts. Arguments: the folder of the programs, the folder for the results.
set -eu
programs=${1:-dist/gpu/bin}
out=${2:-ncu}
ncu=${NCU:-ncu}
mkdir -p "$out"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader >"$out/machine.txt" 2>&1 || true
$ncu --version >>"$out/machine.txt" 2>&1

wanted="l1tex__t_requests_pipe_lsu_mem_global_op_ld l1tex__t_sectors_pipe_lsu_mem_global_op_ld
l1tex__t_requests_pipe_lsu_mem_global_op_st l1tex__t_sectors_pipe_lsu_mem_global_op_st
l1tex__t_requests_pipe_lsu_mem_global_op_red l1tex__t_sectors_pipe_lsu_mem_global_op_red
l1tex__t_requests_pipe_lsu_mem_global_op_atom l1tex__t_sectors_pipe_lsu_mem_global_op_atom
l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st
smsp__inst_executed smsp__thread_inst_executed smsp__thread_inst_executed_pred_on"
# Names that this version does not know would end the run.
known=$out/known.txt
$ncu --query-metrics >"$known" 2>/dev/null || : >"$known"
metrics=smsp__thread_inst_executed_per_inst_executed.ratio
for name in $wanted; do
    if [ ! -s "$known" ] || grep -q "^$name " "$known"; then metrics=$metrics,$name.sum; else echo "no metric $name" >>"$out/machine.txt"; fi
done
# Without a limit some ladder could take minutes: the profiler saves what it has when it is stopped.
timeout -s INT "${SECONDS_MOST:-330}" $ncu --clock-control none --cache-control none --csv --page raw --print-units base \
    --log-file "$out/ncu.csv" --metrics "$metrics" \
    "$programs/rayspin-ladder" counters ${LADDERS:---all} --launches "$out/launches.json" --device cuda >"$out/ladder.txt" 2>&1 ||
    echo "ncu ended with $?" >>"$out/machine.txt"
wc -l "$out/ncu.csv" || true
cat "$out/machine.txt"
