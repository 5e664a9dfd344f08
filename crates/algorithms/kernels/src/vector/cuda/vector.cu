// Sums and updates of real or complex vectors: each element is read once and written once. Sums are formed in
// f64 by a number of blocks that depends on the length alone, then added in their order: the same bits on
// every GPU.

#define THREADS 256
#define WARPS (THREADS / 32)

// Σ over the block's threads, in thread 0.
static __device__ double2 block_sum(double2 sum) {
    __shared__ double2 parts[WARPS];
    for (int step = 16; step > 0; step /= 2) {
        sum.x += __shfl_down_sync(0xffffffffu, sum.x, step);
        sum.y += __shfl_down_sync(0xffffffffu, sum.y, step);
    }
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < WARPS; i++) {
            sum.x += parts[i].x;
            sum.y += parts[i].y;
        }
    }
    return sum;
}

#define EACH(i, n) \
    for (unsigned long long i = blockIdx.x * (unsigned long long)THREADS + threadIdx.x; i < (n); \
         i += gridDim.x * (unsigned long long)THREADS)

extern "C" __global__ void __launch_bounds__(THREADS)
dot(const scalar* __restrict__ x, const scalar* __restrict__ y, unsigned long long n, double2* __restrict__ partial) {
    double2 sum = make_double2(0.0, 0.0);
    EACH(i, n) {
        double2 term = dot_of(x[i], y[i]);
        sum.x += term.x;
        sum.y += term.y;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
norm_squared(const scalar* __restrict__ x, unsigned long long n, double2* __restrict__ partial) {
    double2 sum = make_double2(0.0, 0.0);
    EACH(i, n) sum.x += square(x[i]);
    sum = block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// x ← x + αp, r ← r − αq, and the parts of ‖r‖².
extern "C" __global__ void __launch_bounds__(THREADS)
cg_update(const real alpha, const scalar* __restrict__ p, const scalar* __restrict__ q, scalar* __restrict__ x,
          scalar* __restrict__ r, unsigned long long n, double2* __restrict__ partial) {
    double2 sum = make_double2(0.0, 0.0);
    EACH(i, n) {
        x[i] = x[i] + alpha * p[i];
        scalar left = r[i] - alpha * q[i];
        r[i] = left;
        sum.x += square(left);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// One block adds the parts; the sum is in thread 0.
static __device__ double2 sum_of_parts(const double2* __restrict__ partial, unsigned count) {
    double2 sum = make_double2(0.0, 0.0);
    for (unsigned i = threadIdx.x; i < count; i += THREADS) {
        sum.x += partial[i].x;
        sum.y += partial[i].y;
    }
    return block_sum(sum);
}

extern "C" __global__ void __launch_bounds__(THREADS)
finish(const double2* __restrict__ partial, unsigned count, double2* __restrict__ out) {
    double2 sum = sum_of_parts(partial, count);
    if (threadIdx.x == 0) *out = sum;
}

// y[i] <- x[places[i]], 0 beyond the end of x.
extern "C" __global__ void __launch_bounds__(THREADS)
gather(const scalar* __restrict__ x, unsigned long long of_x, const unsigned* __restrict__ places, scalar* __restrict__ y,
       unsigned long long n) {
    EACH(i, n) {
        unsigned place = places[i];
        if (place < of_x) y[i] = x[place];
        else set(&y[i], 0);
    }
}

// Scalars of conjugate gradients, as conjugate.rs has them. Once HALT is not 0 nothing changes any more.
enum { HALT, RHO, LENGTH, LARGEST, FORM_RE, FORM_IM, ALPHA, BETA };

// <p, Ap> from its parts, and the step along p, unless the curvature is one to look at.
extern "C" __global__ void __launch_bounds__(THREADS)
cg_alpha(const double2* __restrict__ partial, unsigned count, double vanishing, double indefinite,
         double* __restrict__ state) {
    double2 form = sum_of_parts(partial, count);
    if (threadIdx.x != 0 || state[HALT] != 0.0) return;
    state[FORM_RE] = form.x;
    state[FORM_IM] = form.y;
    // v - v is 0 for finite numbers only.
    bool finite = form.x - form.x == 0.0 && form.y - form.y == 0.0;
    if (finite) state[LARGEST] = fmax(state[LARGEST], form.x / state[LENGTH]);
    double least = vanishing * state[LARGEST] * state[LENGTH];
    if (finite && form.x > least && fabs(form.y) <= indefinite * form.x) state[ALPHA] = state[RHO] / form.x;
    else state[HALT] = 1.0;
}

// cg_update with the step that cg_alpha found.
extern "C" __global__ void __launch_bounds__(THREADS)
cg_step(const double* __restrict__ state, const scalar* __restrict__ p, const scalar* __restrict__ q, scalar* __restrict__ x,
        scalar* __restrict__ r, unsigned long long n, double2* __restrict__ partial) {
    if (state[HALT] != 0.0) return;
    const real alpha = (real)state[ALPHA];
    double2 sum = make_double2(0.0, 0.0);
    EACH(i, n) {
        x[i] = x[i] + alpha * p[i];
        scalar left = r[i] - alpha * q[i];
        r[i] = left;
        sum.x += square(left);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// |r|^2 from its parts, and how much of p stays in the next direction.
extern "C" __global__ void __launch_bounds__(THREADS)
cg_beta(const double2* __restrict__ partial, unsigned count, double size, double enough, double* __restrict__ state) {
    double next = sum_of_parts(partial, count).x;
    if (threadIdx.x != 0 || state[HALT] != 0.0) return;
    double beta = state[RHO] > 0.0 ? next / state[RHO] : 0.0;
    double relative = sqrt(next) / size;
    state[RHO] = next;
    // Rounded as on the CPU: nothing contracted.
    state[LENGTH] = __dadd_rn(next, __dmul_rn(__dmul_rn(beta, beta), state[LENGTH]));
    state[BETA] = beta;
    if (!(relative > enough) || relative - relative != 0.0) state[HALT] = 2.0;
}

// p <- r + beta p.
extern "C" __global__ void __launch_bounds__(THREADS)
cg_turn(const double* __restrict__ state, const scalar* __restrict__ r, scalar* __restrict__ p, unsigned long long n) {
    if (state[HALT] != 0.0) return;
    scalar beta;
    set(&beta, (real)state[BETA]);
    EACH(i, n) p[i] = mul_add(beta, p[i], r[i]);
}

extern "C" __global__ void __launch_bounds__(THREADS)
axpy(const scalar alpha, const scalar* __restrict__ x, scalar* __restrict__ y, unsigned long long n) {
    EACH(i, n) y[i] = mul_add(alpha, x[i], y[i]);
}

extern "C" __global__ void __launch_bounds__(THREADS)
xpby(const scalar* __restrict__ x, const scalar beta, scalar* __restrict__ y, unsigned long long n) {
    EACH(i, n) y[i] = mul_add(beta, y[i], x[i]);
}

extern "C" __global__ void __launch_bounds__(THREADS)
scale(const scalar alpha, scalar* __restrict__ x, unsigned long long n) {
    EACH(i, n) x[i] = mul(alpha, x[i]);
}

// y ← d ⊙ x, or conj(d) ⊙ x; d is repeated along x.
extern "C" __global__ void __launch_bounds__(THREADS)
multiply(const scalar* __restrict__ d, unsigned long long period, const scalar* __restrict__ x, scalar* __restrict__ y,
         unsigned long long n, unsigned conjugate) {
    EACH(i, n) {
        scalar factor = d[i % period];
        y[i] = conjugate ? mul_conj(factor, x[i]) : mul(factor, x[i]);
    }
}

// y ← w ⊙ x with real w.
extern "C" __global__ void __launch_bounds__(THREADS)
weight(const real* __restrict__ w, unsigned long long period, const scalar* __restrict__ x, scalar* __restrict__ y,
       unsigned long long n) {
    EACH(i, n) y[i] = w[i % period] * x[i];
}

// y ← x / d, 0 where d is 0; for real numbers.
extern "C" __global__ void __launch_bounds__(THREADS)
divide(const real* __restrict__ x, const real* __restrict__ d, real* __restrict__ y, unsigned long long n) {
    EACH(i, n) y[i] = d[i] == 0 ? 0 : x[i] / d[i];
}

// x ← max(x, 0); for real numbers.
extern "C" __global__ void __launch_bounds__(THREADS)
cut_negative(real* __restrict__ x, unsigned long long n) {
    EACH(i, n) x[i] = x[i] > 0 ? x[i] : 0;
}

// A box of e0 × e1 × e2 × e3 elements; of each side its first element and the strides of all axes but the
// last, which is packed.
extern "C" __global__ void __launch_bounds__(THREADS)
copy_box(const scalar* __restrict__ x, scalar* __restrict__ y, unsigned long long x_first, unsigned long long x0,
         unsigned long long x1, unsigned long long x2, unsigned long long y_first, unsigned long long y0,
         unsigned long long y1, unsigned long long y2, unsigned long long e0, unsigned long long e1,
         unsigned long long e2, unsigned long long e3) {
    EACH(i, e0 * e1 * e2 * e3) {
        unsigned long long row = i / e3, i3 = i % e3, i2 = row % e2, i1 = row / e2 % e1, i0 = row / (e2 * e1);
        y[y_first + i0 * y0 + i1 * y1 + i2 * y2 + i3] = x[x_first + i0 * x0 + i1 * x1 + i2 * x2 + i3];
    }
}

// The lowest index of an element that is not finite.
extern "C" __global__ void __launch_bounds__(THREADS)
first_not_finite(const scalar* __restrict__ x, unsigned long long n, unsigned long long* __restrict__ first) {
    EACH(i, n) {
        if (!is_number(x[i])) atomicMin(first, i);
    }
}
