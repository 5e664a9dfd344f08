"""How peers from Python are timed on a GPU: as `rayspin-ladder` times our own work (crates/ladders/lab/src/measure.rs).

Calls take sets of buffers in turn, as many calls as take 2 ms make a round, the device's clock times 15 rounds after one that warms up, and
their median counts. A round is one CUDA graph ("graph") where the call can be captured, and calls one after another without a wait ("stream").
"""

import statistics

import torch

ROUNDS = 15


def seconds(work):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e-3


def median(work, runs, rounds):
    work()
    return statistics.median(seconds(work) / runs for _ in range(rounds))


def timed(call, sets=1, rounds=ROUNDS):
    """Seconds of `call(set)` in a graph, or None where it cannot be captured, and in a stream, the current one."""
    stream = torch.cuda.current_stream()
    for i in range(sets):
        call(i)
    stream.synchronize()
    runs = max(1, min(1000, int(2e-3 / max(seconds(lambda: call(0)), 1e-6))))
    runs = -(-runs // sets) * sets
    many = lambda: [call(i % sets) for i in range(runs)]
    graph, captured = torch.cuda.CUDAGraph(), True
    # The default stream cannot be captured; work on another one has to wait for it.
    own = stream if stream != torch.cuda.default_stream() else None
    try:
        with torch.cuda.graph(graph, stream=own, capture_error_mode="thread_local"):
            many()
    except Exception:
        torch.cuda.synchronize()
        captured = False
    in_graph = median(graph.replay, runs, rounds) if captured else None
    return in_graph, median(many, runs, rounds)


def versions():
    return f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}"
