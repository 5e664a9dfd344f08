// What CUB takes for the sum of 2^22 i32, by the protocol of `rayspin ladder reduction`: calls in rotation over buffers that together
// exceed the second-level cache threefold, in one CUDA graph, the device's clock, the median of 15 rounds; then one buffer again and
// again.
//
//     nvcc -O2 -std=c++17 -arch=native benches/peers/sum_cub.cu -o sum_cub && ./sum_cub

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cub/cub.cuh>
#include <vector>

static void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
    std::exit(1);
}

template <class Sum>
static void measure(const char* name) {
    const int sets = 10, n = 1 << 22, runs = 250;
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
    Sum *out, found;
    check(cudaMalloc(&out, sizeof(Sum)));
    void* room = nullptr;
    size_t bytes = 0;
    check(cub::DeviceReduce::Sum(room, bytes, inputs[0], out, n));
    check(cudaMalloc(&room, bytes));
    cudaStream_t stream;
    check(cudaStreamCreate(&stream));
    check(cub::DeviceReduce::Sum(room, bytes, inputs[sets - 1], out, n, stream));
    check(cudaStreamSynchronize(stream));
    check(cudaMemcpy(&found, out, sizeof(Sum), cudaMemcpyDeviceToHost));
    double times[2];
    for (int one = 0; one < 2; one++) {
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        for (int i = 0; i < runs; i++) check(cub::DeviceReduce::Sum(room, bytes, inputs[one ? 0 : i % sets], out, n, stream));
        cudaGraph_t graph;
        check(cudaStreamEndCapture(stream, &graph));
        cudaGraphExec_t work;
        check(cudaGraphInstantiate(&work, graph, 0));
        cudaEvent_t begin, end;
        check(cudaEventCreate(&begin));
        check(cudaEventCreate(&end));
        std::vector<float> rounds;
        for (int round = 0; round < 18; round++) {
            check(cudaEventRecord(begin, stream));
            check(cudaGraphLaunch(work, stream));
            check(cudaEventRecord(end, stream));
            check(cudaEventSynchronize(end));
            float milliseconds;
            check(cudaEventElapsedTime(&milliseconds, begin, end));
            if (round >= 3) rounds.push_back(milliseconds * 1e3f / runs);
        }
        std::sort(rounds.begin(), rounds.end());
        times[one] = rounds[rounds.size() / 2];
    }
    std::printf("sum 2^22 i32 to %s, cub::DeviceReduce::Sum %d: %7.2f us, one buffer %7.2f us, %s\n", name, CUB_VERSION, times[0],
                times[1], found == (Sum)want ? "right" : "wrong");
}

int main() {
    measure<long long>("i64");
    measure<int>("i32");
}
