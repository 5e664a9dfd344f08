// Points of a type 3 on their way to the plans of its two stages, once a plan. DIMS: components of a point.
// Arrays of components are in the order x, y, z.

#define THREADS 256

// What the plan knows of the axes, [quantity][axis]: units of the components, the centres of positions and of
// frequencies, the grid's spacing and its cells.
#define AXES const double *unit = axes, *x_centre = axes + 3, *s_centre = axes + 6, *spacing = axes + 9, *cells = axes + 12;

// ab minus a whole number, exact up to the last rounding for any size of the product.
static __device__ __forceinline__ double turns(double a, double b) {
    double product = __dmul_rn(a, b);
    return (product - rint(product)) + fma(a, b, -product);
}

// scale · e^{−i2πt}.
static __device__ __forceinline__ cplx phase(double t, double scale) {
    double s, c;
    sincospi(-2.0 * t, &s, &c);
    return make_cplx((real)(scale * c), (real)(scale * s));
}

// φ̂(ξ) = W sinh(√q)/(√q I₀(β)), q = β² − (πWξ)².
static __device__ __forceinline__ double fourier(double xi, double width, double beta, double peak) {
    double turn = 3.14159265358979323846 * width * xi, q = beta * beta - turn * turn, root = sqrt(fabs(q));
    double ratio = fabs(q) < 1e-8 ? 1.0 + q / 6.0 : (q > 0.0 ? sinh(root) : sin(root)) / root;
    return width * ratio / peak;
}

// out[d][0 and 1][block]: the least and the largest number of component d among the block's points. Raises
// *not_finite to n − j for a point j with a number that is not finite.
extern "C" __global__ void __launch_bounds__(THREADS)
extents(const unsigned* __restrict__ x, const unsigned* __restrict__ y, const unsigned* __restrict__ z, long long start_x,
        long long start_y, long long start_z, long long stride_x, long long stride_y, long long stride_z,
        unsigned singles, unsigned n, const double* __restrict__ axes, double* __restrict__ out,
        unsigned* __restrict__ not_finite) {
    __shared__ double least[THREADS], most[THREADS];
    COMPONENTS
    const double* unit = axes;
#pragma unroll
    for (int d = 0; d < DIMS; d++) {
        double low = __longlong_as_double(0x7ff0000000000000LL), high = -low;
        for (unsigned long long j = blockIdx.x * (unsigned long long)THREADS + threadIdx.x; j < n;
             j += gridDim.x * (unsigned long long)THREADS) {
            double given = number(numbers[d], (singles >> d) & 1, start[d] + stride[d] * (long long)j);
            if (!(fabs(given) <= 1.7976931348623157e308)) atomicMax(not_finite, n - (unsigned)j);
            low = fmin(low, given * unit[d]);
            high = fmax(high, given * unit[d]);
        }
        least[threadIdx.x] = low;
        most[threadIdx.x] = high;
        __syncthreads();
        for (int step = THREADS / 2; step > 0; step /= 2) {
            if (threadIdx.x < step) {
                least[threadIdx.x] = fmin(least[threadIdx.x], least[threadIdx.x + step]);
                most[threadIdx.x] = fmax(most[threadIdx.x], most[threadIdx.x + step]);
            }
            __syncthreads();
        }
        if (threadIdx.x == 0) {
            out[2 * d * gridDim.x + blockIdx.x] = least[0];
            out[(2 * d + 1) * gridDim.x + blockIdx.x] = most[0];
        }
        __syncthreads();
    }
}

// to[d][k]: the positions in cells of the grid. factors[k] = e^{−i2πs_c·x_k}.
extern "C" __global__ void __launch_bounds__(THREADS)
positions(const unsigned* __restrict__ x, const unsigned* __restrict__ y, const unsigned* __restrict__ z, long long start_x,
          long long start_y, long long start_z, long long stride_x, long long stride_y, long long stride_z,
          unsigned singles, unsigned n, const double* __restrict__ axes, double shift, double* __restrict__ to,
          cplx* __restrict__ factors) {
    COMPONENTS
    AXES
    unsigned k = blockIdx.x * THREADS + threadIdx.x;
    if (k >= n) return;
    double sum = 0.0;
#pragma unroll
    for (int d = 0; d < DIMS; d++) {
        double x = number(numbers[d], (singles >> d) & 1, start[d] + stride[d] * k) * unit[d];
        to[(unsigned long long)d * n + k] = (x - x_centre[d]) / spacing[d] + shift + floor(0.5 * cells[d]);
        sum += turns(s_centre[d], x);
    }
    factors[k] = phase(sum, 1.0);
}

// to[d][j]: the frequencies in cycles per extent of the grid.
// factors[j] = e^{−i2π(s_j − s_c)·(x_c − hδ)} / φ̂(h(s_j − s_c)).
extern "C" __global__ void __launch_bounds__(THREADS)
frequencies(const unsigned* __restrict__ x, const unsigned* __restrict__ y, const unsigned* __restrict__ z, long long start_x,
            long long start_y, long long start_z, long long stride_x, long long stride_y, long long stride_z,
            unsigned singles, unsigned n, const double* __restrict__ axes, double shift, double width, double beta,
            double peak, double* __restrict__ to, cplx* __restrict__ factors) {
    COMPONENTS
    AXES
    unsigned j = blockIdx.x * THREADS + threadIdx.x;
    if (j >= n) return;
    double sum = 0.0, scale = 1.0;
#pragma unroll
    for (int d = 0; d < DIMS; d++) {
        double s = number(numbers[d], (singles >> d) & 1, start[d] + stride[d] * j) * unit[d];
        // These products are exact, but the difference of frequencies is not.
        sum += turns(s, x_centre[d]) - turns(s_centre[d], x_centre[d]);
        double cycles = (s - s_centre[d]) * spacing[d];
        sum -= cycles * shift;
        scale /= fourier(cycles, width, beta, peak);
        to[(unsigned long long)d * n + j] = cycles * cells[d];
    }
    factors[j] = phase(sum, scale);
}
