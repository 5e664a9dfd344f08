// Launches one of the kernels of crates/ladders/emu/tests/checking.cu as the tests of the emulator do, for
// compute-sanitizer: benches/sanitizer.sh.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../crates/ladders/emu/tests/checking.cu"

template <class T> static T* array(const std::vector<T>& values) {
    T* device = nullptr;
    cudaMalloc(&device, values.size() * sizeof(T));
    cudaMemcpy(device, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
    return device;
}

int main(int count, char** words) {
    if (count < 2) return 2;
    const std::string name = words[1];
    const int which = count > 2 ? atoi(words[2]) : 0;
    const int n = 200;
    std::vector<unsigned> numbers(n);
    for (unsigned i = 0; i < n; i++) numbers[i] = i * i % 61 % 64;
    unsigned* values = array(numbers);
    unsigned* counts = array(std::vector<unsigned>(64));
    float* in = array(std::vector<float>(256, 1.0f));
    float* in32 = array(std::vector<float>(32, 1.0f));
    float* out = array(std::vector<float>(256));
    float* out32 = array(std::vector<float>(32));
    float* out1 = array(std::vector<float>(1));
    float* parts = array(std::vector<float>(40));
    unsigned* ticket = array(std::vector<unsigned>(1));
    int* ints = array(std::vector<int>(8));
    if (name == "count_global") count_global<<<2, 128>>>(values, counts, n);
    if (name == "count_atomic") count_atomic<<<2, 128>>>(values, counts, n);
    if (name == "count_shared") count_shared<<<2, 128>>>(values, counts, n);
    if (name == "three_barriers") three_barriers<<<2, 128>>>(values, counts, n, which);
    if (name == "swap") swap<<<1, 256>>>(in, out, which);
    if (name == "warp_sum") warp_sum<<<1, 32>>>(in32, out1, which);
    if (name == "old_warp") old_warp<<<1, 32>>>(in32, out1);
    if (name == "shuffled") shuffled<<<1, 32>>>(in32, out1);
    if (name == "last_block") last_block<<<40, 32>>>(in, parts, ticket, out1, which);
    if (name == "flags") flags<<<8, 32>>>(out, ints, which);
    if (name == "same_flag") same_flag<<<2, 64>>>(in, ints, 100);
    if (name == "past_end") past_end<<<1, 32>>>(in32, out32, 5);
    if (name == "before_begin") before_begin<<<1, 32>>>(in32, out32);
    if (name == "wild") wild<<<1, 32>>>(out32, 1ll << 40);
    if (name == "shared_end") shared_end<<<1, 32>>>(out32);
    if (name == "unwritten") {
        float* scratch = nullptr;
        cudaMalloc(&scratch, 32 * sizeof(float));
        unwritten<<<1, 32>>>(scratch, out32, which);
    }
    if (name == "half_barrier") half_barrier<<<1, 32>>>(out32);
    if (name == "spin_lock") spin_lock<<<9, 64>>>(ints, out1);
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) printf("%s\n", cudaGetErrorString(error));
    return 0;
}
