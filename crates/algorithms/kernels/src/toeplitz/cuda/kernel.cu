// From the convolution's kernel to its spectrum.

// Displacement `index` of a padded axis of `padded` points, for images of `n` voxels; `found` says whether it
// occurs.
static __device__ __forceinline__ int displacement(int index, int padded, int n, bool& found) {
    if (index < n) return index;
    found &= index > padded - n;
    return index - padded;
}

static __device__ __forceinline__ double squared(cplx a) { return (double)a.x * a.x + (double)a.y * a.y; }

// The Hermitian part of q at the displacements of the first axis ≥ 0: `half` is [n0][p1][p2], q [m0][m1][m2]
// with displacement 0 at (c0, c1, c2). `sums`, one a block: Σ|anti-Hermitian part|², Σ|q|².
extern "C" __global__ void __launch_bounds__(256)
hermitian(const cplx* __restrict__ q, cplx* __restrict__ half, double2* __restrict__ sums, const int n0, const int n1,
          const int n2, const int p1, const int p2, const int m1, const int m2, const int c0, const int c1, const int c2) {
    __shared__ double2 parts[256];
    double2 sum = make_double2(0, 0);
    const long long count = (long long)n0 * p1 * p2;
    for (long long at = blockIdx.x * 256ll + threadIdx.x; at < count; at += gridDim.x * 256ll) {
        bool found = true;
        const int d0 = at / ((long long)p1 * p2);
        const int d1 = displacement(at / p2 % p1, p1, n1, found), d2 = displacement(at % p2, p2, n2, found);
        cplx value = make_cplx(0, 0);
        if (found) {
            const cplx there = q[((long long)(c0 + d0) * m1 + c1 + d1) * m2 + c2 + d2];
            const cplx back = conj(q[((long long)(c0 - d0) * m1 + c1 - d1) * m2 + c2 - d2]);
            value = (real)0.5 * (there + back);
            sum.x += squared(there - back) / 4;
            sum.y += squared(there);
        }
        half[at] = value;
    }
    parts[threadIdx.x] = sum;
    for (int step = 128; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) {
            parts[threadIdx.x].x += parts[threadIdx.x + step].x;
            parts[threadIdx.x].y += parts[threadIdx.x + step].y;
        }
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = parts[0];
}
