"""Milliseconds of NCCL's sum of vectors over all GPUs of this machine: python benches/peers/nccl.py [voxels along an axis]

Each GPU has a process (torch.distributed) and a vector of n³ complex numbers of 8 bytes, which all processes sum in place. A round is timed on the
host, from an idle GPU to an idle GPU, as `cargo run --release -p rayspin --example several_gpus` times Rayspin's sum. The median of 50 rounds, after
10 that are not counted, on the slowest GPU; least to most in brackets.
"""

import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

WARM, ROUNDS = 10, 50


def rank(number, count, voxels):
    torch.cuda.set_device(number)
    dist.init_process_group("nccl", rank=number, world_size=count, device_id=torch.device("cuda", number))
    vector = torch.ones(2 * voxels, device="cuda")
    taken = []
    for _ in range(WARM + ROUNDS):
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        dist.all_reduce(vector)
        torch.cuda.synchronize()
        taken.append((time.perf_counter() - start) * 1e3)
    slowest = torch.tensor(taken[WARM:], device="cuda")
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    if number == 0:
        slowest = slowest.sort().values.tolist()
        nccl, megabytes = ".".join(map(str, torch.cuda.nccl.version())), 8e-6 * voxels
        text = f"{slowest[ROUNDS // 2]:.3f} ms ({slowest[0]:.3f} to {slowest[-1]:.3f})"
        print(f"NCCL {nccl}, torch {torch.__version__}: {count} GPUs, sum of vectors of {megabytes:.0f} MB: {text}")
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    count = torch.cuda.device_count()
    mp.spawn(rank, args=(count, int(sys.argv[1] if len(sys.argv) > 1 else 256) ** 3), nprocs=count)
