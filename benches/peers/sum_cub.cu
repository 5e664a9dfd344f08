// What CUB takes for the sum of 2^22 i32, over buffers in rotation that together exceed the second-level cache threefold, then over one
// buffer again and again; each figure is that of a call, in microseconds:
//
//   graph    250 calls in one CUDA graph, the device's clock, the median of 15 rounds: `rayspin ladder reduction --launch graph`
//   stream   250 calls asked for one after another, the device's clock, the median of 15 rounds: `--launch stream`
//   single   a call between two events that the host waits for before the next one, the median of 3750: `--launch single`
//   to host  a call, the copy of its number to pinned memory and the wait for it, the host's clock, the median of 3750: what
//            `cargo run --release -p rayspin-primitives --example sum_calls` measures of the library's function
//
// Three rounds, or as many calls, come before each and are not counted.
//
//     nvcc -O2 -std=c++17 -arch=native benches/peers/sum_cub.cu -o sum_cub && ./sum_cub

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cub/cub.cuh>
#include <vector>

static void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
    std::exit(1);
}

static const int sets = 10, n = 1 << 22, runs = 250, warm = 3, rounds = 15;

static double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
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

template <class Sum>
static void measure(const char* name) {
    int* inputs[sets];
    long long want = 0;
    std::vector<int> host(n);
    unsigned long long state = 1;
    for (auto& input : inputs) {
        want = 0;
        for (int& v : host) {
            state = state * 6364136223846793005ull + 1442695040888963407ull;
            want += v = (int)(state >> 32);
        }
        check(cudaMalloc(&input, sizeof(int) * n));
        check(cudaMemcpy(input, host.data(), sizeof(int) * n, cudaMemcpyHostToDevice));
    }
    Sum *out, *found;
    check(cudaMalloc(&out, sizeof(Sum)));
    check(cudaMallocHost(&found, sizeof(Sum)));
    void* room = nullptr;
    size_t bytes = 0;
    check(cub::DeviceReduce::Sum(room, bytes, inputs[0], out, n));
    check(cudaMalloc(&room, bytes));
    cudaStream_t stream;
    check(cudaStreamCreate(&stream));
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin));
    check(cudaEventCreate(&end));
    for (int one = 0; one < 2; one++) {
        auto call = [&](int i) { check(cub::DeviceReduce::Sum(room, bytes, inputs[one ? 0 : i % sets], out, n, stream)); };
        auto calls = [&] {
            for (int i = 0; i < runs; i++) call(i);
        };
        call(0);
        check(cudaStreamSynchronize(stream));
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        calls();
        cudaGraph_t graph;
        check(cudaStreamEndCapture(stream, &graph));
        cudaGraphExec_t work;
        check(cudaGraphInstantiate(&work, graph, 0));
        std::vector<double> by_graph, by_stream, by_single, to_host;
        for (int round = -warm; round < rounds; round++) {
            const double time = by_events(stream, begin, end, [&] { check(cudaGraphLaunch(work, stream)); });
            if (round >= 0) by_graph.push_back(time / runs);
        }
        for (int round = -warm; round < rounds; round++) {
            const double time = by_events(stream, begin, end, calls);
            if (round >= 0) by_stream.push_back(time / runs);
        }
        for (int i = -warm * runs; i < rounds * runs; i++) {
            const double time = by_events(stream, begin, end, [&] { call(i + warm * runs); });
            if (i >= 0) by_single.push_back(time);
        }
        for (int i = -warm * runs; i < rounds * runs; i++) {
            const auto began = std::chrono::steady_clock::now();
            call(i + warm * runs);
            check(cudaMemcpyAsync(found, out, sizeof(Sum), cudaMemcpyDeviceToHost, stream));
            check(cudaStreamSynchronize(stream));
            const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - began;
            if (i >= 0) to_host.push_back(time.count());
        }
        call(sets - 1);
        check(cudaMemcpyAsync(found, out, sizeof(Sum), cudaMemcpyDeviceToHost, stream));
        check(cudaStreamSynchronize(stream));
        std::printf("sum 2^22 i32 to %s, cub::DeviceReduce::Sum %d, %s: graph %.2f us, stream %.2f us, single %.2f us, to host %.2f us%s\n",
                    name, CUB_VERSION, one ? "one buffer " : "in rotation", median(by_graph), median(by_stream), median(by_single),
                    median(to_host), one ? "" : *found == (Sum)want ? ", right" : ", wrong");
        check(cudaGraphExecDestroy(work));
        check(cudaGraphDestroy(graph));
    }
    for (int* input : inputs) check(cudaFree(input));
    check(cudaFree(out));
    check(cudaFreeHost(found));
    check(cudaFree(room));
}

int main() {
    measure<long long>("i64");
    measure<int>("i32");
}
