// How peers in CUDA C++ are timed: as `rayspin-ladder` times our own work on a GPU
// (crates/ladders/lab/src/measure.rs).
//
// A call takes one of several sets of buffers in turn. Together they hold at least three times the
// second-level cache, so that no call finds its input there. One call warms up, another tells how many calls
// make a round of 2 ms. The three ways to time calls follow, each after warm-up rounds that are not counted:
//
//   graph    A round is one CUDA graph of calls. The time is the device's, the median of 15 rounds. This is
//            `--launch graph`.
//   stream   A round is calls one after another without a wait. The time is the device's, the median of 15
//            rounds. This is `--launch stream`.
//   single   A call lies between two events, and the host waits for it before the next one. The time is the
//            median of 15 rounds' calls. This is `--launch single`.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

#ifndef FLAGS
#define FLAGS "not stated"
#endif

inline void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
    std::exit(1);
}

static const int warm = 3, rounds = 15;

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

// The machine, the compiler and its flags.
inline void print_versions() {
    cudaDeviceProp properties;
    int device, driver, runtime;
    check(cudaGetDevice(&device));
    check(cudaGetDeviceProperties(&properties, device));
    check(cudaDriverGetVersion(&driver));
    check(cudaRuntimeGetVersion(&runtime));
    std::printf("%s, L2 %.0f MB, CUDA driver %d.%d, runtime %d.%d, nvcc %d.%d.%d %s\n", properties.name, properties.l2CacheSize / 1e6,
                driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10, __CUDACC_VER_MAJOR__, __CUDACC_VER_MINOR__,
                __CUDACC_VER_BUILD__, FLAGS);
}

// Sets of `bytes` that together are three times the second-level cache.
inline int sets_of(double bytes) {
    int device, cache;
    check(cudaGetDevice(&device));
    check(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device));
    return (int)std::min(64.0, std::max(1.0, std::ceil(3.0 * cache / bytes)));
}

// Microseconds between two events around `work`, for which the host waits.
template <class Work>
static double by_events(cudaStream_t stream, cudaEvent_t begin, cudaEvent_t end, Work work) {
    check(cudaEventRecord(begin, stream));
    work();
    check(cudaEventRecord(end, stream));
    check(cudaEventSynchronize(end));
    float milliseconds;
    check(cudaEventElapsedTime(&milliseconds, begin, end));
    return milliseconds * 1e3;
}

// Microseconds of a call.
struct Times {
    double graph, stream, single;
    int runs;
};

// Times `call(i)`, i = 0, 1, 2 …, which puts its work on `stream`.
template <class Call>
static Times timed(cudaStream_t stream, Call call) {
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin));
    check(cudaEventCreate(&end));
    int next = 0;
    auto once = [&] { call(next++); };
    once();
    check(cudaStreamSynchronize(stream));
    const double first = by_events(stream, begin, end, once);
    const int runs = (int)std::min(1000.0, std::max(1.0, std::ceil(2e3 / std::max(first, 0.1))));
    auto calls = [&] {
        for (int i = 0; i < runs; i++) once();
    };
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    calls();
    cudaGraph_t graph;
    check(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t work;
    check(cudaGraphInstantiate(&work, graph, 0));
    std::vector<double> by_graph, by_stream, by_single;
    for (int round = -warm; round < rounds; round++) {
        const double time = by_events(stream, begin, end, [&] { check(cudaGraphLaunch(work, stream)); });
        if (round >= 0) by_graph.push_back(time / runs);
    }
    for (int round = -warm; round < rounds; round++) {
        const double time = by_events(stream, begin, end, calls);
        if (round >= 0) by_stream.push_back(time / runs);
    }
    for (int i = -warm * runs; i < rounds * runs; i++) {
        const double time = by_events(stream, begin, end, once);
        if (i >= 0) by_single.push_back(time);
    }
    check(cudaGraphExecDestroy(work));
    check(cudaGraphDestroy(graph));
    check(cudaEventDestroy(begin));
    check(cudaEventDestroy(end));
    return {median(by_graph), median(by_stream), median(by_single), runs};
}
