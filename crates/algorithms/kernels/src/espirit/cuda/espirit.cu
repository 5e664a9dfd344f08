// Eigenvectors of G_ij(x) = Σ_δ Q_ij[δ] e^{−i2πδ·x}.
// BLOCK: vectors that are iterated.

#define THREADS 128
// Blocks per multiprocessor: bounds the registers for the small matrices.
#define BLOCKS (BLOCK > 3 ? 3 : BLOCK > 2 ? 7 : 10)
#define MAX_ITERATIONS 40
// Residual ‖Gv − λv‖ of unit vectors at which iteration ends.
#define CONVERGED ((real)1e-4)

// e^{−i2πδx} of lag number `lag` of `lags` (odd, the middle one 0) at index i of an axis of n.
static __device__ __forceinline__ cplx phase_at(int lag, int lags, int i, int n) {
    long long turns = (long long)(lag - lags / 2) * (i - n / 2) % n;
    double s, c;
    sincospi(-2.0 * (double)turns / n, &s, &c);
    return make_cplx((real)c, (real)s);
}

// Lags along z summed up for some planes: out[plane][lag y, lag x][pair].
extern "C" __global__ void __launch_bounds__(THREADS)
planes(const cplx* __restrict__ q, int lz, int lags_yx, int nz, int first_plane, unsigned pairs, unsigned coils,
       cplx* __restrict__ out) {
    extern __shared__ cplx phases[];
    for (int d = threadIdx.x; d < lz; d += THREADS) phases[d] = phase_at(d, lz, first_plane + blockIdx.y, nz);
    __syncthreads();
    unsigned item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= lags_yx * pairs) return;
    unsigned pair = item % pairs, lag = item / pairs;
    unsigned i = first_of(pair), j = pair - i * (i + 1) / 2;
    const cplx* own = q + (unsigned long long)(i * coils + j) * lz * lags_yx + lag;
    cplx sum = make_cplx(0, 0);
    for (int d = 0; d < lz; d++) sum = fma(own[(unsigned long long)d * lags_yx], phases[d], sum);
    out[(unsigned long long)blockIdx.y * lags_yx * pairs + item] = sum;
}

// Lags along y summed up for the rows first_row … of all planes' rows: out[row][lag x][pair].
extern "C" __global__ void __launch_bounds__(THREADS)
rows(const cplx* __restrict__ planes, int ly, unsigned items, int ny, unsigned first_row, unsigned first_plane,
     cplx* __restrict__ out) {
    extern __shared__ cplx phases[];
    unsigned row = first_row + blockIdx.x;
    for (int d = threadIdx.x; d < ly; d += THREADS) phases[d] = phase_at(d, ly, row % ny, ny);
    __syncthreads();
    const cplx* own = planes + (unsigned long long)(row / ny - first_plane) * ly * items;
    for (unsigned item = blockIdx.y * THREADS + threadIdx.x; item < items; item += gridDim.y * THREADS) {
        cplx sum = make_cplx(0, 0);
        for (int d = 0; d < ly; d++) sum = fma(own[(unsigned long long)d * items + item], phases[d], sum);
        out[(unsigned long long)blockIdx.x * items + item] = sum;
    }
}

static __device__ __forceinline__ cplx team_sum(cplx value, unsigned team) {
    return make_cplx(team_sum(value.x, team), team_sum(value.y, team));
}

// One voxel of a team of 1 to 32 neighbouring lanes; lane l has the coils l, l + team, …. All lanes of a warp
// come along together; what a team that is not `going` has stays as it is.
struct Voxel {
    const cplx* matrix;
    cplx* vectors;
    cplx* images;
    unsigned stride, coils, lane, team;

    __device__ cplx& v(unsigned k, unsigned i) const { return vectors[(k * coils + i) * stride]; }
    __device__ cplx& g(unsigned k, unsigned i) const { return images[(k * coils + i) * stride]; }

    // Gram–Schmidt; a vector that the others leave nothing of is replaced by a coil's own direction.
    __device__ void orthonormalise(bool going) const {
        for (unsigned k = 0; k < BLOCK; k++) {
            bool open = going;
            for (unsigned attempt = 0; attempt <= coils && __any_sync(ALL, open); attempt++) {
                real full = 0;
                for (unsigned i = lane; open && i < coils; i += team) full += norm_sqr(v(k, i));
                full = sqrt(team_sum(full, team));
                // Twice is enough to be orthogonal in the precision of the numbers.
                for (unsigned again = 0; again < 2; again++) {
                    for (unsigned m = 0; m < k; m++) {
                        cplx overlap = make_cplx(0, 0);
                        for (unsigned i = lane; open && i < coils; i += team) overlap = overlap + mul_conj(v(m, i), v(k, i));
                        overlap = team_sum(overlap, team);
                        for (unsigned i = lane; open && i < coils; i += team) v(k, i) = v(k, i) - mul(v(m, i), overlap);
                    }
                }
                real left = 0;
                for (unsigned i = lane; open && i < coils; i += team) left += norm_sqr(v(k, i));
                left = sqrt(team_sum(left, team));
                bool good = left > (real)1e-5 * full && left > NOTHING;
                for (unsigned i = lane; open && i < coils; i += team) {
                    if (good)
                        v(k, i) = make_cplx(v(k, i).x / left, v(k, i).y / left);
                    else
                        v(k, i) = make_cplx(i == attempt ? 1 : 0, 0);
                }
                open = open && !good;
            }
        }
        __syncwarp();
    }

    // g ← G v.
    __device__ void apply(bool going) const {
        for (unsigned i = lane; going && i < coils; i += team) {
            cplx sums[BLOCK];
#pragma unroll
            for (unsigned k = 0; k < BLOCK; k++) sums[k] = make_cplx(0, 0);
            for (unsigned j = 0; j < coils; j++) {
                unsigned high = max(i, j), low = min(i, j);
                cplx m = matrix[(high * (high + 1) / 2 + low) * stride];
                if (i < j) m.y = -m.y;
#pragma unroll
                for (unsigned k = 0; k < BLOCK; k++) sums[k] = fma(m, v(k, j), sums[k]);
            }
#pragma unroll
            for (unsigned k = 0; k < BLOCK; k++) g(k, i) = sums[k];
        }
        __syncwarp();
    }

    // Turns vectors and their images to the eigenvectors of VᴴGV, the largest eigenvalue first.
    __device__ void ritz(real (&values)[BLOCK], bool going) const {
        cplx h[BLOCK][BLOCK], u[BLOCK][BLOCK];
#pragma unroll
        for (unsigned a = 0; a < BLOCK; a++) {
#pragma unroll
            for (unsigned b = 0; b < BLOCK; b++) {
                u[a][b] = make_cplx(a == b ? 1 : 0, 0);
                if (b < a) continue;
                cplx sum = make_cplx(0, 0);
                for (unsigned i = lane; going && i < coils; i += team) sum = sum + mul_conj(v(a, i), g(b, i));
                sum = team_sum(sum, team);
                if (a == b) sum.y = 0;
                h[a][b] = sum;
                h[b][a] = conj(sum);
            }
        }
        // One sweep is exact for two vectors; more of them are nearly diagonal from the iteration before.
#pragma unroll 1
        for (unsigned sweep = 0; sweep < (BLOCK > 2 ? 4 : 1); sweep++) {
#pragma unroll
            for (unsigned p = 0; p < BLOCK; p++) {
#pragma unroll
                for (unsigned q = p + 1; q < BLOCK; q++) rotate(h, u, p, q);
            }
        }
#pragma unroll
        for (unsigned k = 0; k < BLOCK; k++)
            if (going) values[k] = h[k][k].x;
#pragma unroll
        for (unsigned a = 0; a < BLOCK; a++) {
#pragma unroll
            for (unsigned k = 0; k + 1 < BLOCK; k++) {
                if (!going || !(values[k + 1] > values[k])) continue;
                real value = values[k];
                values[k] = values[k + 1];
                values[k + 1] = value;
#pragma unroll
                for (unsigned m = 0; m < BLOCK; m++) {
                    cplx other = u[m][k];
                    u[m][k] = u[m][k + 1];
                    u[m][k + 1] = other;
                }
            }
        }
        for (unsigned i = lane; going && i < coils; i += team) {
            turn(u, vectors + i * stride);
            turn(u, images + i * stride);
        }
        __syncwarp();
    }

    // One coil's entries of all vectors.
    __device__ void turn(const cplx (&u)[BLOCK][BLOCK], cplx* of) const {
        cplx before[BLOCK];
#pragma unroll
        for (unsigned m = 0; m < BLOCK; m++) before[m] = of[m * coils * stride];
#pragma unroll
        for (unsigned k = 0; k < BLOCK; k++) {
            cplx sum = make_cplx(0, 0);
#pragma unroll
            for (unsigned m = 0; m < BLOCK; m++) sum = fma(before[m], u[m][k], sum);
            of[k * coils * stride] = sum;
        }
    }

    // Makes h[p][q] zero by a rotation by θ of the plane of both, tan 2θ = 2|h_pq| / (h_pp − h_qq); u gets it
    // too.
    static __device__ __forceinline__ void rotate(cplx (&h)[BLOCK][BLOCK], cplx (&u)[BLOCK][BLOCK], unsigned p,
                                                  unsigned q) {
        real size = sqrt(norm_sqr(h[p][q]));
        if (!(size > NOTHING)) return;
        cplx direction = make_cplx(h[p][q].x / size, h[p][q].y / size);
        real apart = (real)0.5 * (h[p][p].x - h[q][q].x);
        real r = sqrt(size * size + apart * apart);
        // The larger of the two by the root, the other from sin 2θ, so that neither is a difference of near
        // numbers.
        real larger = sqrt((real)0.5 * (1 + fabs(apart) / r)), smaller = (real)0.5 * size / (r * larger);
        real c = apart >= 0 ? larger : smaller, s = apart >= 0 ? smaller : larger;
#pragma unroll
        for (unsigned m = 0; m < BLOCK; m++) {
            columns(h[m][p], h[m][q], direction, c, s);
            columns(u[m][p], u[m][q], direction, c, s);
        }
#pragma unroll
        for (unsigned m = 0; m < BLOCK; m++) {
            cplx a = h[p][m], b = h[q][m];
            h[p][m] = c * a + s * mul(direction, b);
            h[q][m] = c * b - s * mul_conj(direction, a);
        }
    }

    // Columns p and q become c p + s conj(d) q and −s d p + c q.
    static __device__ __forceinline__ void columns(cplx& p, cplx& q, cplx direction, real c, real s) {
        cplx a = p, b = q;
        p = c * a + s * mul_conj(direction, b);
        q = c * b - s * mul(direction, a);
    }
};

// Maps of `tile` voxels of a row a block: sums[row][lag x][pair] of the rows first_row …, eigenvectors by
// subspace iteration with Rayleigh–Ritz, V ← orthonormal basis of GV. Shared memory: the tile's matrices, its
// vectors, their images, each [..][tile | 1], then phases [lag x][tile].
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
solve(const cplx* __restrict__ sums, const cplx* __restrict__ phase, cplx* __restrict__ maps, unsigned coils,
      unsigned sets, real crop, int lx, int nx, unsigned long long first_row, unsigned long long voxels, unsigned tiles,
      unsigned tile, unsigned team) {
    extern __shared__ cplx shared[];
    unsigned stride = tile | 1, pairs = coils * (coils + 1) / 2;
    cplx* vectors = shared + pairs * stride;
    cplx* images = vectors + BLOCK * coils * stride;
    cplx* phases = images + BLOCK * coils * stride;
    unsigned row = blockIdx.x / tiles, begin = blockIdx.x % tiles * tile;
    unsigned count = min(tile, nx - begin);
    for (unsigned t = threadIdx.x; t < lx * tile; t += THREADS)
        phases[t] = phase_at(t / tile, lx, begin + t % tile, nx);
    __syncthreads();
    const cplx* own = sums + (unsigned long long)row * lx * pairs;
    for (unsigned t = threadIdx.x; t < pairs * tile; t += THREADS) {
        unsigned voxel = t % tile, pair = t / tile;
        cplx sum = make_cplx(0, 0);
        for (int d = 0; d < lx; d++) sum = fma(own[d * pairs + pair], phases[d * tile + voxel], sum);
        unsigned i = first_of(pair);
        if (pair == i * (i + 1) / 2 + i) sum.y = 0;
        shared[pair * stride + voxel] = sum;
    }
    __syncthreads();
    unsigned lane = threadIdx.x % team, teams = THREADS / team;
    for (unsigned base = 0; base < tile; base += teams) {
        unsigned at = base + threadIdx.x / team;
        bool active = at < count, going = active;
        unsigned here = active ? at : 0;
        Voxel voxel = {shared + here, vectors + here, images + here, stride, coils, lane, team};
        for (unsigned i = lane; active && i < coils; i += team) {
            for (unsigned k = 0; k < BLOCK; k++) {
                // Something of every direction.
                real angle = (real)(1.7 * k * i + 0.9 * k * k + 0.4 * i), s, c;
                sincospi(angle / (real)3.14159265358979, &s, &c);
                voxel.v(k, i) = make_cplx(c, s);
            }
        }
        voxel.orthonormalise(active);
        real values[BLOCK];
        for (unsigned k = 0; k < BLOCK; k++) values[k] = 0;
        for (unsigned iteration = 0; iteration < MAX_ITERATIONS && __any_sync(ALL, going); iteration++) {
            voxel.apply(going);
            voxel.ritz(values, going);
            real residual = 0;
#pragma unroll
            for (unsigned k = 0; k < BLOCK; k++) {
                real part = 0;
                for (unsigned i = lane; going && i < coils; i += team)
                    part += norm_sqr(voxel.g(k, i) - values[k] * voxel.v(k, i));
                part = team_sum(part, team);
                if (k < sets && !(part <= residual)) residual = part;
            }
            if (residual < CONVERGED * CONVERGED || iteration + 1 == MAX_ITERATIONS) going = false;
            for (unsigned i = lane; going && i < coils; i += team)
                for (unsigned k = 0; k < BLOCK; k++) voxel.v(k, i) = voxel.g(k, i);
            voxel.orthonormalise(going);
        }
#pragma unroll
        for (unsigned k = 0; k < BLOCK; k++) {
            cplx overlap = make_cplx(0, 0);
            for (unsigned i = lane; active && i < coils; i += team)
                overlap = overlap + mul_conj(phase[i], voxel.v(k, i));
            overlap = team_sum(overlap, team);
            real size = sqrt(norm_sqr(overlap));
            // 0 at the crop, 1 from halfway to 1 on, cos² between.
            real t = (values[k] - crop) / ((real)0.5 * (1 - crop)), root;
            t = t < 0 ? 0 : t > 1 ? 1 : t;
            root = sinpi((real)0.5 * t);
            cplx turn = size > 0 ? make_cplx(overlap.x / size, -overlap.y / size) : make_cplx(1, 0);
            turn = root * root * turn;
            for (unsigned i = lane; active && i < coils; i += team) voxel.v(k, i) = mul(voxel.v(k, i), turn);
        }
        __syncwarp();
    }
    __syncthreads();
    for (unsigned t = threadIdx.x; t < sets * coils * tile; t += THREADS) {
        unsigned voxel = t % tile, map = t / tile;
        if (voxel < count)
            maps[map * voxels + (first_row + row) * nx + begin + voxel] = vectors[map * stride + voxel];
    }
}
