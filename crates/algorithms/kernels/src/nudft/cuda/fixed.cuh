// Samples in constant memory with what a step along each axis adds to their phases, as 32-bit fractions of a
// turn. A wrapping integer product takes off whole turns for nothing; κ = k/n rounded to 2^-32 turns leaves
// 2^-24 turns at 256 points from the centre.

#ifndef UNROLL
#define UNROLL 4
#endif
#define CAPACITY 2048

struct Sample {
    unsigned x, y, z, none;
    cplx d;
};
__constant__ Sample piece[CAPACITY];

static __device__ unsigned fraction(double turns) {
    return (unsigned)(unsigned long long)rint((turns - floor(turns)) * 4294967296.0);
}

extern "C" __global__ void table(const double* __restrict__ k, int dims, int count, const cplx* __restrict__ samples,
                                 unsigned* __restrict__ out, int nz, int ny, int nx) {
    int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= count) return;
    const double* own = k + (long long)m * dims;
    ((Sample*)out)[m] = Sample{fraction(own[0] / nx), dims > 1 ? fraction(own[1] / ny) : 0,
                               dims > 2 ? fraction(own[2] / nz) : 0, 0, samples[m]};
}
