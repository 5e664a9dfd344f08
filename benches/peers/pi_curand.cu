// Times of cuRAND's device functions for the 10^8 points of `rayspin-ladder pi`, in microseconds. A kernel
// has a Philox state a thread, takes four f32 a call, sums integers over warps and makes one atomic addition
// a warp. Each call clears the sum before, as ours does. The columns graph, stream and single are defined in
// `protocol.cuh`. The program tries several grids, shows them all, and the one with the fastest graph again
// at the end.
//
// `benches/peers/gpu.sh` builds and runs it.

#include "protocol.cuh"

#include <curand.h>
#include <curand_kernel.h>

static const long long points = 100000000;

__global__ void estimate(unsigned long long* hits, int each) {
    curandStatePhilox4_32_10_t state;
    curand_init(1, blockIdx.x * blockDim.x + threadIdx.x, 0, &state);
    unsigned count = 0;
    for (int i = 0; i < each; i += 2) {
        const float4 u = curand_uniform4(&state);
        count += u.x * u.x + u.y * u.y <= 1.0f;
        count += u.z * u.z + u.w * u.w <= 1.0f;
    }
    for (int lane = 16; lane > 0; lane /= 2) count += __shfl_down_sync(0xffffffffu, count, lane);
    if (threadIdx.x % 32 == 0) atomicAdd(hits, (unsigned long long)count);
}

int main() {
    print_versions();
    int device, multiprocessors;
    check(cudaGetDevice(&device));
    check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    unsigned long long *hits, found;
    check(cudaMalloc(&hits, sizeof(*hits)));
    cudaStream_t stream;
    check(cudaStreamCreate(&stream));
    double best = INFINITY;
    char line[256] = "";
    for (int threads : {128, 256, 512, 1024})
        for (int blocks : {2, 4, 8, 16, 32}) {
            const int grid = blocks * multiprocessors;
            // Two points a step.
            const int each = (int)((points + (long long)threads * grid - 1) / ((long long)threads * grid) + 1) & ~1;
            const double share = (double)points / ((double)each * threads * grid);
            const Times times = timed(stream, [&](int) {
                check(cudaMemsetAsync(hits, 0, sizeof(*hits), stream));
                estimate<<<grid, threads, 0, stream>>>(hits, each);
                check(cudaGetLastError());
            });
            check(cudaMemcpyAsync(&found, hits, sizeof(found), cudaMemcpyDeviceToHost, stream));
            check(cudaStreamSynchronize(stream));
            char text[256];
            std::snprintf(text, sizeof(text),
                          "pi, 1e8 points, curand_uniform4 of Philox, cuRAND %d, %4d threads, %2d blocks a multiprocessor: graph %.2f us (%.1f Gpoints/s), "
                          "stream %.2f us, single %.2f us, pi %.5f",
                          CURAND_VERSION, threads, blocks, times.graph * share, points / (times.graph * share) / 1e3, times.stream * share,
                          times.single * share, 4.0 * found / ((double)each * threads * grid));
            std::printf("%s\n", text);
            if (times.graph * share < best) {
                best = times.graph * share;
                std::copy(text, text + sizeof(text), line);
            }
        }
    std::printf("fastest: %s\n", line);
}
