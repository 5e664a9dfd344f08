// Finite differences along up to three axes, every element read from memory once (its neighbours come from
// the cache).

#define THREADS 256
#define EACH(i, n) \
    for (unsigned long long i = blockIdx.x * (unsigned long long)THREADS + threadIdx.x; i < (n); \
         i += gridDim.x * (unsigned long long)THREADS)

// d_a(i) = w_a (x(i + e_a) − x(i)), 0 at the far edge.
extern "C" __global__ void __launch_bounds__(THREADS)
forward(const scalar* __restrict__ x, scalar* __restrict__ d, unsigned long long n, unsigned count,
        unsigned long long size0, unsigned long long step0, const real weight0, unsigned long long size1, unsigned long long step1, const real weight1,
        unsigned long long size2, unsigned long long step2, const real weight2) {
    EACH(i, n) {
        scalar here = x[i];
        for (unsigned a = 0; a < count; a++) {
            unsigned long long size = a == 0 ? size0 : a == 1 ? size1 : size2;
            unsigned long long step = a == 0 ? step0 : a == 1 ? step1 : step2;
            real weight = a == 0 ? weight0 : a == 1 ? weight1 : weight2;
            bool last = i / step % size == size - 1;
            scalar none;
            set(&none, 0);
            d[a * n + i] = last ? none : weight * (x[i + step] - here);
        }
    }
}

// Σ_a w_a (d_a(i − e_a) − d_a(i)), terms beyond an edge left out.
extern "C" __global__ void __launch_bounds__(THREADS)
adjoint(const scalar* __restrict__ d, scalar* __restrict__ x, unsigned long long n, unsigned count,
        unsigned long long size0, unsigned long long step0, const real weight0, unsigned long long size1, unsigned long long step1, const real weight1,
        unsigned long long size2, unsigned long long step2, const real weight2) {
    EACH(i, n) {
        scalar sum;
        set(&sum, 0);
        for (unsigned a = 0; a < count; a++) {
            unsigned long long size = a == 0 ? size0 : a == 1 ? size1 : size2;
            unsigned long long step = a == 0 ? step0 : a == 1 ? step1 : step2;
            real weight = a == 0 ? weight0 : a == 1 ? weight1 : weight2;
            unsigned long long at = i / step % size;
            if (at > 0) sum = sum + weight * d[a * n + i - step];
            if (at + 1 < size) sum = sum - weight * d[a * n + i];
        }
        x[i] = sum;
    }
}

// The two in one pass.
extern "C" __global__ void __launch_bounds__(THREADS)
normal(const scalar* __restrict__ x, scalar* __restrict__ out, unsigned long long n, unsigned count,
       unsigned long long size0, unsigned long long step0, const real weight0, unsigned long long size1, unsigned long long step1, const real weight1,
       unsigned long long size2, unsigned long long step2, const real weight2) {
    EACH(i, n) {
        scalar here = x[i], sum;
        set(&sum, 0);
        for (unsigned a = 0; a < count; a++) {
            unsigned long long size = a == 0 ? size0 : a == 1 ? size1 : size2;
            unsigned long long step = a == 0 ? step0 : a == 1 ? step1 : step2;
            real weight = a == 0 ? weight0 : a == 1 ? weight1 : weight2;
            unsigned long long at = i / step % size;
            if (at > 0) sum = sum + weight * weight * (here - x[i - step]);
            if (at + 1 < size) sum = sum + weight * weight * (here - x[i + step]);
        }
        out[i] = sum;
    }
}
