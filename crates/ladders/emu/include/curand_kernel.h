// A stand-in for the part of NVIDIA's curand_kernel.h that kernels call, for machines without CUDA: Marsaglia's
// generator XORWOW, seeded by a hash. It gives other numbers than NVIDIA's cuRAND does for the same seed.
//
// Sequences of one seed have states that a hash of seed and sequence chooses, among 2^192; they do not overlap by any
// chance that matters. An offset leaves out as many numbers.

#ifndef EMU_CURAND
#define EMU_CURAND 1

struct curandStateXORWOW {
    unsigned d, v[5];
    int boxmuller_flag, boxmuller_flag_double;
    float boxmuller_extra;
    double boxmuller_extra_double;
};
typedef curandStateXORWOW curandStateXORWOW_t;
typedef curandStateXORWOW curandState;
typedef curandStateXORWOW curandState_t;

// The mixing function of SplitMix64.
static __device__ __forceinline__ unsigned long long emu_curand_mix(unsigned long long z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// 32 random bits.
static __device__ __forceinline__ unsigned curand(curandState* state) {
    unsigned t = state->v[0] ^ (state->v[0] >> 2);
    state->v[0] = state->v[1];
    state->v[1] = state->v[2];
    state->v[2] = state->v[3];
    state->v[3] = state->v[4];
    state->v[4] = (state->v[4] ^ (state->v[4] << 4)) ^ (t ^ (t << 1));
    state->d += 362437;
    return state->v[4] + state->d;
}

static __device__ inline void skipahead(unsigned long long count, curandState* state) {
    for (unsigned long long i = 0; i < count; i++) curand(state);
}

static __device__ inline void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset,
                                          curandState* state) {
    unsigned long long z = emu_curand_mix(seed + 0x9E3779B97F4A7C15ull) ^ emu_curand_mix(sequence * 2 + 1);
    unsigned words[6];
    for (int i = 0; i < 3; i++) {
        z += 0x9E3779B97F4A7C15ull;
        unsigned long long mixed = emu_curand_mix(z);
        words[2 * i] = (unsigned)mixed;
        words[2 * i + 1] = (unsigned)(mixed >> 32);
    }
    // Five words that are all 0 would stay so.
    for (int i = 0; i < 5; i++) state->v[i] = words[i] | (i == 0 ? 1u : 0u);
    state->d = words[5];
    state->boxmuller_flag = state->boxmuller_flag_double = 0;
    state->boxmuller_extra = 0;
    state->boxmuller_extra_double = 0;
    skipahead(offset, state);
}

// Uniform in (0, 1].
static __device__ __forceinline__ float curand_uniform(curandState* state) {
    return (float)curand(state) * 2.3283064e-10f + 1.1641532e-10f;
}
static __device__ inline double curand_uniform_double(curandState* state) {
    unsigned long long low = curand(state), high = curand(state);
    return (double)((high << 21 ^ low) & 0x1FFFFFFFFFFFFFull) * 1.1102230246251565e-16 + 5.551115123125783e-17;
}

// Normal with mean 0 and variance 1, by Box and Muller's method: two at once, of which one waits.
static __device__ inline float2 curand_normal2(curandState* state) {
    float radius = sqrtf(-2.0f * logf(curand_uniform(state))), angle = 6.2831853f * curand_uniform(state);
    float s, c;
    sincosf(angle, &s, &c);
    return make_float2(radius * s, radius * c);
}
static __device__ inline float curand_normal(curandState* state) {
    if (state->boxmuller_flag) {
        state->boxmuller_flag = 0;
        return state->boxmuller_extra;
    }
    float2 two = curand_normal2(state);
    state->boxmuller_flag = 1;
    state->boxmuller_extra = two.y;
    return two.x;
}
static __device__ inline double2 curand_normal2_double(curandState* state) {
    double radius = sqrt(-2.0 * log(curand_uniform_double(state)));
    double angle = 6.283185307179586 * curand_uniform_double(state);
    double s, c;
    sincos(angle, &s, &c);
    return make_double2(radius * s, radius * c);
}
static __device__ inline double curand_normal_double(curandState* state) {
    if (state->boxmuller_flag_double) {
        state->boxmuller_flag_double = 0;
        return state->boxmuller_extra_double;
    }
    double2 two = curand_normal2_double(state);
    state->boxmuller_flag_double = 1;
    state->boxmuller_extra_double = two.y;
    return two.x;
}

// e to the power of a normal number with this mean and deviation.
static __device__ inline float curand_log_normal(curandState* state, float mean, float deviation) {
    return expf(mean + deviation * curand_normal(state));
}
static __device__ inline double curand_log_normal_double(curandState* state, double mean, double deviation) {
    return exp(mean + deviation * curand_normal_double(state));
}

// Poisson: products of uniform numbers where the mean is small, Hörmann's transformed rejection (PTRS) where it is not.
static __device__ inline unsigned curand_poisson(curandState* state, double mean) {
    if (!(mean > 0)) return 0;
    if (mean < 10) {
        double least = exp(-mean), product = 1;
        for (unsigned k = 0;; k++) {
            product *= curand_uniform_double(state);
            if (product <= least) return k;
        }
    }
    double root = sqrt(mean), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
    double inverse = 1.1239 + 1.1328 / (b - 3.4), limit = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        double u = curand_uniform_double(state) - 0.5, v = curand_uniform_double(state);
        double us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + mean + 0.43);
        if (us >= 0.07 && v <= limit) return (unsigned)k;
        if (k < 0 || (us < 0.013 && v > us)) continue;
        if (log(v) + log(inverse) - log(a / (us * us) + b) <= k * log(mean) - mean - lgamma(k + 1)) return (unsigned)k;
    }
}

#endif
