// Local principal components of coil images.

#define THREADS 128
// Voxels of a tile of the sum over the whole image.
#define TILE 32
#define MAX_ITERATIONS 40
// Squared change of the unit vector at which power iteration ends.
#define CONVERGED ((real)1e-8)

// Unit dominant eigenvector v of the Hermitian matrix with the lower triangle r, by a team of 1 to 32
// neighbouring lanes. Zeros for a zero matrix. All lanes of a warp call this together; lanes of a team that
// is not `active` only take part in the exchanges.
static __device__ void dominant(const cplx* r, unsigned stride, unsigned n, cplx* v, cplx* next, unsigned lane,
                                unsigned team, bool active) {
    real top = -1;
    unsigned strongest = 0;
    if (active) {
        for (unsigned j = lane; j < n; j += team) {
            real power = r[(j * (j + 1) / 2 + j) * stride].x;
            if (power > top) {
                top = power;
                strongest = j;
            }
        }
    }
    for (unsigned step = team / 2; step > 0; step /= 2) {
        real power = __shfl_xor_sync(ALL, top, step);
        unsigned other = __shfl_xor_sync(ALL, strongest, step);
        if (power > top || (power == top && other < strongest)) {
            top = power;
            strongest = other;
        }
    }
    bool going = active && top > NOTHING;
    real size = 0;
    for (unsigned i = lane; active && i < n; i += team) {
        cplx value = make_cplx(0, 0);
        if (going) {
            unsigned high = max(i, strongest), low = min(i, strongest);
            cplx m = r[(high * (high + 1) / 2 + low) * stride];
            value = make_cplx(m.x / top, (i < strongest ? -m.y : m.y) / top);
        }
        v[i * stride] = value;
        size += norm_sqr(value);
    }
    size = sqrt(team_sum(size, team));
    for (unsigned i = lane; going && i < n; i += team) v[i * stride] = make_cplx(v[i * stride].x / size, v[i * stride].y / size);
    __syncwarp();
    for (unsigned iteration = 0; iteration < MAX_ITERATIONS && __any_sync(ALL, going); iteration++) {
        size = 0;
        for (unsigned i = lane; going && i < n; i += team) {
            cplx sum = make_cplx(0, 0);
            for (unsigned j = 0; j < n; j++) {
                unsigned high = max(i, j), low = min(i, j);
                cplx m = r[(high * (high + 1) / 2 + low) * stride];
                if (i < j) m.y = -m.y;
                sum = fma(m, v[j * stride], sum);
            }
            sum = make_cplx(sum.x / top, sum.y / top);
            next[i * stride] = sum;
            size += norm_sqr(sum);
        }
        size = sqrt(team_sum(size, team));
        // No lane changes v before all have read it.
        __syncwarp();
        going = going && size > 0;
        real change = 0;
        for (unsigned i = lane; going && i < n; i += team) {
            cplx value = make_cplx(next[i * stride].x / size, next[i * stride].y / size);
            change += norm_sqr(value - v[i * stride]);
            v[i * stride] = value;
        }
        change = team_sum(change, team);
        going = going && !(change < CONVERGED);
        __syncwarp();
    }
}

// Computes the maps of a chunk's voxels from their windows' sums, `tile` voxels per block. The maps have
// `voxels` voxels per coil. The chunk has `inner` voxels in each plane, `count` in all, and begins at voxel
// `first_voxel` of the maps, whose planes have `plane_voxels`. Shared memory: the tile's covariances, then
// two vectors, each [..][tile | 1].
extern "C" __global__ void __launch_bounds__(THREADS)
solve(const cplx* __restrict__ sums, const cplx* __restrict__ reference, cplx* __restrict__ maps, unsigned coils,
      unsigned long long voxels, unsigned inner, unsigned long long count, unsigned long long first_voxel,
      unsigned long long plane_voxels, unsigned tile, unsigned team) {
    extern __shared__ cplx shared[];
    unsigned stride = tile | 1, pairs = coils * (coils + 1) / 2;
    cplx* vectors = shared + pairs * stride;
    cplx* next = vectors + coils * stride;
    unsigned long long begin = (unsigned long long)blockIdx.x * tile;
    unsigned held = (unsigned)min((unsigned long long)tile, count - begin);
    for (unsigned t = threadIdx.x; t < pairs * tile; t += THREADS) {
        unsigned voxel = t % tile, pair = t / tile;
        if (voxel < held) shared[pair * stride + voxel] = sums[pair * count + begin + voxel];
    }
    __syncthreads();
    unsigned lane = threadIdx.x % team, teams = THREADS / team;
    for (unsigned base = 0; base < tile; base += teams) {
        unsigned voxel = base + threadIdx.x / team;
        bool active = voxel < held;
        cplx* v = vectors + (active ? voxel : 0);
        dominant(shared + (active ? voxel : 0), stride, coils, v, next + (active ? voxel : 0), lane, team, active);
        // Turned so that its component along the reference is real and positive.
        real re = 0, im = 0;
        for (unsigned i = lane; active && i < coils; i += team) {
            cplx part = mul_conj(reference[i], v[i * stride]);
            re += part.x;
            im += part.y;
        }
        re = team_sum(re, team);
        im = team_sum(im, team);
        real size = sqrt(re * re + im * im);
        cplx turn = size > 0 ? make_cplx(re / size, -im / size) : make_cplx(1, 0);
        for (unsigned i = lane; active && i < coils; i += team) v[i * stride] = mul(v[i * stride], turn);
        __syncwarp();
    }
    __syncthreads();
    for (unsigned t = threadIdx.x; t < coils * tile; t += THREADS) {
        unsigned voxel = t % tile, coil = t / tile;
        if (voxel >= held) continue;
        unsigned long long at = begin + voxel;
        maps[coil * voxels + first_voxel + at / inner * plane_voxels + at % inner] = vectors[coil * stride + voxel];
    }
}

// Adds each block's share of Σ m_i conj(m_j) over all voxels to partial[block][pair]. Shared memory: a tile
// of all coils.
extern "C" __global__ void __launch_bounds__(THREADS)
whole(const cplx* __restrict__ images, unsigned coils, unsigned long long voxels, double2* __restrict__ partial) {
    extern __shared__ cplx tile[];
    unsigned pairs = coils * (coils + 1) / 2;
    double2* own = partial + (unsigned long long)blockIdx.x * pairs;
    for (unsigned long long begin = (unsigned long long)blockIdx.x * TILE; begin < voxels;
         begin += (unsigned long long)gridDim.x * TILE) {
        for (unsigned t = threadIdx.x; t < coils * TILE; t += THREADS) {
            unsigned voxel = t % TILE, coil = t / TILE;
            tile[coil * (TILE + 1) + voxel] =
                begin + voxel < voxels ? images[coil * voxels + begin + voxel] : make_cplx(0, 0);
        }
        __syncthreads();
        for (unsigned pair = threadIdx.x; pair < pairs; pair += THREADS) {
            unsigned i = first_of(pair), j = pair - i * (i + 1) / 2;
            cplx sum = make_cplx(0, 0);
            for (unsigned voxel = 0; voxel < TILE; voxel++)
                sum = sum + mul_conj(tile[j * (TILE + 1) + voxel], tile[i * (TILE + 1) + voxel]);
            double2 before = own[pair];
            own[pair] = make_double2(before.x + sum.x, before.y + sum.y);
        }
        __syncthreads();
    }
}

// The dominant eigenvector of the whole image's covariance, by one block. Shared memory: the covariance and
// two vectors.
extern "C" __global__ void __launch_bounds__(THREADS)
principal(const double2* __restrict__ partial, unsigned blocks, unsigned coils, cplx* __restrict__ reference) {
    extern __shared__ cplx shared[];
    unsigned pairs = coils * (coils + 1) / 2;
    cplx* vector = shared + pairs;
    for (unsigned pair = threadIdx.x; pair < pairs; pair += THREADS) {
        double2 sum = make_double2(0.0, 0.0);
        for (unsigned block = 0; block < blocks; block++) {
            double2 part = partial[(unsigned long long)block * pairs + pair];
            sum.x += part.x;
            sum.y += part.y;
        }
        shared[pair] = make_cplx((real)sum.x, (real)sum.y);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        dominant(shared, 1, coils, vector, vector + coils, threadIdx.x, 32, true);
        for (unsigned i = threadIdx.x; i < coils; i += 32) reference[i] = vector[i];
    }
}
