// A thread for each sample of each new coil.
extern "C" __global__ void coil_mixing(const float2* matrices, const float2* samples, float2* out, int coils, int kept, int points, int positions) {
    int index = blockIdx.x * blockDim.x + threadIdx.x, i = index / points, s = index % points;
    if (i >= kept) return;
    float2 sum = make_float2(0, 0);
    for (int j = 0; j < coils; j++) {
        float2 a = matrices[(i * coils + j) * positions + s % positions], b = samples[j * points + s];
        sum.x += a.x * b.x - a.y * b.y;
        sum.y += a.x * b.y + a.y * b.x;
    }
    out[index] = sum;
}
