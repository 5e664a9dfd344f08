// Times of CUB for the histograms of `rayspin-ladder histogram`, in microseconds a call. It calls
// cub::DeviceHistogram::HistogramEven on 3984 x 4096 samples, under the names of the ladder's cases. The
// columns graph, stream and single are defined in `protocol.cuh` and mean the same as in `rayspin-ladder
// histogram --launch`.
//
// CUB gives counts of 32 bits, the ladder's cases walk, uniform, constant and tomogram counts of 8 bits that
// stop at 255, which CUB would have to clamp in another kernel. It finds a sample's bin by integers or by
// f32, as the type of its levels is; both are timed, and both are exact here.
//
// `benches/peers/gpu.sh` builds and runs it.

#include "protocol.cuh"

#include <cstdint>
#include <cub/cub.cuh>

enum Input { walk, uniform, constant, tomogram };

static const int n = 3984 * 4096;

// 64 mixed bits of a counter and a seed, as in crates/algorithms/tune/src/input.rs.
static uint64_t bits(uint64_t seed, uint64_t at) {
    uint64_t z = seed + (at + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

// The samples of crates/ladders/primitives/src/histogram/input.rs.
template <class Sample>
static std::vector<Sample> samples(Input kind, int bins, uint64_t seed) {
    std::vector<Sample> all(n);
    const double side = std::sqrt((double)n);
    int64_t at = bins / 2;
    for (int i = 0; i < n; i++) {
        const uint64_t b = bits(seed, i);
        switch (kind) {
        case walk: {
            all[i] = (Sample)at;
            auto number = [](uint64_t low) { return (low & 0xffffffff) / 4294967296.0 - 0.5; };
            at += (int64_t)std::trunc(16.0 * number(b) * number(b >> 32));
            if (at < 0) at = -at;
            if (at > bins - 1) at = 2 * (bins - 1) - at;
            break;
        }
        case uniform: all[i] = (Sample)((b & 0xffffffff) * bins >> 32); break;
        case constant: all[i] = (Sample)(bins / 2); break;
        case tomogram: {
            const double x = std::fmod(i, side) / side - 0.5, y = std::floor(i / side) / side - 0.5;
            const double r = (x / 0.42) * (x / 0.42) + (y / 0.32) * (y / 0.32);
            const double tissue = r > 1.0 ? 0.006 : r < 0.03 ? 0.42 : 0.26;
            uint64_t sum = 0;
            for (int k = 0; k < 4; k++) sum += b >> 16 * k & 0xffff;
            const double noise = (sum / 65536.0 - 2.0) * 0.01;
            all[i] = (Sample)std::min(std::max(tissue + noise, 0.0) * bins, bins - 1.0);
        }
        }
    }
    return all;
}

template <class Level, class Sample>
static void measure(const char* name, int bins, const std::vector<Sample*>& inputs, const std::vector<unsigned>& want) {
    unsigned* counts;
    check(cudaMalloc(&counts, sizeof(unsigned) * bins));
    void* room = nullptr;
    size_t bytes = 0;
    cudaStream_t stream;
    check(cudaStreamCreate(&stream));
    auto histogram = [&](const Sample* from) {
        return cub::DeviceHistogram::HistogramEven(room, bytes, from, counts, bins + 1, Level(0), Level(bins), n, stream);
    };
    check(histogram(inputs[0]));
    check(cudaMalloc(&room, bytes));
    check(cudaMemset(counts, 0xff, sizeof(unsigned) * bins));
    check(histogram(inputs[0]));
    std::vector<unsigned> found(bins);
    check(cudaMemcpyAsync(found.data(), counts, sizeof(unsigned) * bins, cudaMemcpyDeviceToHost, stream));
    check(cudaStreamSynchronize(stream));
    for (int one = 0; one < 2; one++) {
        const size_t sets = one ? 1 : inputs.size();
        const Times times = timed(stream, [&](int i) { check(histogram(inputs[i % sets])); });
        std::printf("histogram %-15s %d-bit samples, %4d bins, HistogramEven %d, %s levels, %s: graph %.2f us, stream %.2f us, single %.2f us%s\n",
                    name, (int)(8 * sizeof(Sample)), bins, CUB_VERSION, Level(0.5) > 0 ? "f32" : "i32", one ? "one buffer " : "in rotation",
                    times.graph, times.stream, times.single, one ? "" : found == want ? ", right" : ", wrong");
    }
    check(cudaStreamDestroy(stream));
    check(cudaFree(room));
    check(cudaFree(counts));
}

template <class Sample>
static void compare(const char* name, Input kind, int bins) {
    std::vector<Sample*> inputs(sets_of((double)sizeof(Sample) * n));
    std::vector<unsigned> want(bins);
    for (size_t set = 0; set < inputs.size(); set++) {
        const auto host = samples<Sample>(kind, bins, 1 + set);
        if (set == 0)
            for (Sample v : host) want[v]++;
        check(cudaMalloc(&inputs[set], sizeof(Sample) * n));
        check(cudaMemcpy(inputs[set], host.data(), sizeof(Sample) * n, cudaMemcpyHostToDevice));
    }
    measure<int>(name, bins, inputs, want);
    measure<float>(name, bins, inputs, want);
    for (Sample* input : inputs) check(cudaFree(input));
}

int main() {
    print_versions();
    compare<uint32_t>("walk-counts", walk, 1024);
    compare<uint32_t>("uniform-counts", uniform, 1024);
    compare<uint32_t>("constant-counts", constant, 1024);
    compare<uint32_t>("tomogram-256", tomogram, 256);
    compare<uint32_t>("tomogram-4096", tomogram, 4096);
    compare<uint32_t>("uniform-256", uniform, 256);
    compare<uint32_t>("uniform-4096", uniform, 4096);
    compare<uint16_t>("walk-u16", walk, 1024);
    compare<uint16_t>("uniform-u16", uniform, 1024);
    compare<uint16_t>("constant-u16", constant, 1024);
    compare<uint8_t>("tomogram-u8", tomogram, 256);
}
