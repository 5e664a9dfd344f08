// Pairs of coils (i, j ≤ i), numbered i(i+1)/2 + j, and sums over teams of 1 to 32 neighbouring lanes.

#define ALL 0xffffffffu
// The smallest normal f32: below it there is nothing but rounding.
#define NOTHING ((real)1.17549435e-38)

static __device__ __forceinline__ unsigned first_of(unsigned pair) {
    unsigned i = (unsigned)((sqrtf(8.0f * (float)pair + 1.0f) - 1.0f) * 0.5f);
    while (i * (i + 1) / 2 > pair) i--;
    while ((i + 1) * (i + 2) / 2 <= pair) i++;
    return i;
}

static __device__ __forceinline__ real team_sum(real value, unsigned team) {
    for (unsigned step = team / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL, value, step);
    return value;
}
