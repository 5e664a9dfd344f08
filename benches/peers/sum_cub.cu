// Times of CUB for the sum of 2^22 i32, in microseconds a call: over buffers in rotation, then over one
// buffer again and again. The columns graph, stream and single are defined in `protocol.cuh` and mean the
// same as in `rayspin-ladder reduction --launch`. Beside them
//
//   to host a call, the copy of its number to pinned memory and the wait for it, the host's clock, the
//   median, as
//            `cargo run --release -p rayspin-primitives --example sum_calls` measures the library's function
//
// `benches/peers/gpu.sh` builds and runs it.

#include "protocol.cuh"

#include <chrono>
#include <cub/cub.cuh>

static const int n = 1 << 22;

template <class Sum>
static void measure(const char* name) {
    std::vector<int*> inputs(sets_of(4.0 * n));
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
    for (int one = 0; one < 2; one++) {
        const size_t sets = one ? 1 : inputs.size();
        auto call = [&](int i) { check(cub::DeviceReduce::Sum(room, bytes, inputs[i % sets], out, n, stream)); };
        const Times times = timed(stream, call);
        std::vector<double> to_host;
        for (int i = -warm * times.runs; i < rounds * times.runs; i++) {
            const auto began = std::chrono::steady_clock::now();
            call(i + warm * times.runs);
            check(cudaMemcpyAsync(found, out, sizeof(Sum), cudaMemcpyDeviceToHost, stream));
            check(cudaStreamSynchronize(stream));
            const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - began;
            if (i >= 0) to_host.push_back(time.count());
        }
        call(inputs.size() - 1);
        check(cudaMemcpyAsync(found, out, sizeof(Sum), cudaMemcpyDeviceToHost, stream));
        check(cudaStreamSynchronize(stream));
        std::printf("sum 2^22 i32 to %s, cub::DeviceReduce::Sum %d, %s: graph %.2f us, stream %.2f us, single %.2f us, to host %.2f us%s\n",
                    name, CUB_VERSION, one ? "one buffer " : "in rotation", times.graph, times.stream, times.single, median(to_host),
                    one ? "" : *found == (Sum)want ? ", right" : ", wrong");
    }
    check(cudaStreamDestroy(stream));
    for (int* input : inputs) check(cudaFree(input));
    check(cudaFree(out));
    check(cudaFreeHost(found));
    check(cudaFree(room));
}

int main() {
    print_versions();
    measure<long long>("i64");
    measure<int>("i32");
}
