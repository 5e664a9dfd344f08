// Two kernels a step. `product` makes the new direction d = r + beta · d where it reads d for A d. A thread
// goes up a column of nodes and keeps the 3 x 3 nodes of two planes in registers, so it reads each plane
// once. `change` does the rest.

struct Plane {
    float at[9];
};

static __device__ __forceinline__ Plane plane(const Mesh& m, const float* r, const float* d, float beta, int x, int y, int z) {
    Plane p;
#pragma unroll
    for (int i = 0; i < 9; i++) {
        const long long n = m.node(x + i % 3 - 1, y + i / 3 - 1, z);
        p.at[i] = r[n] + beta * d[n];
    }
    return p;
}

// What the four elements between two planes add at the middle node of `near`.
static __device__ __forceinline__ float between(const Plane& near, const Plane& far, const float* k) {
    float sum = 0;
#pragma unroll
    for (int c = 0; c < 4; c++) {
        const int x = 4 + (c & 1 ? 1 : -1), y = 4 + (c & 2 ? 3 : -3), both = x + y - 4;
        sum += k[c] * (4 * near.at[4] - (near.at[both] + far.at[x] + far.at[y] + far.at[both]));
    }
    return sum;
}

static __device__ __forceinline__ void layer(const Mesh& m, const float* kappa, int x, int y, int z, float* k) {
#pragma unroll
    for (int c = 0; c < 4; c++) k[c] = kappa[m.element(x - 1 + (c & 1), y - 1 + (c >> 1), z)];
}

extern "C" __global__ void __launch_bounds__(256)
product(const float* __restrict__ kappa, const float* __restrict__ r, const float* __restrict__ d, float* __restrict__ next,
        float* __restrict__ q, const double* now, const double* before, int squares, int first, double* curvature, int nx, int ny,
        int nz, int planes) {
    const Mesh m{nx, ny, nz};
    // The first direction is r; `before` holds nothing yet.
    const float beta = first ? 0 : over(total(now, squares), total(before, squares));
    const int x = blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    const int z0 = blockIdx.z * planes + 1, z1 = min(z0 + planes, nz);
    float sum = 0;
    if (x < nx && y < ny && z0 < z1) {
        float k[4];
        Plane here = plane(m, r, d, beta, x, y, z0);
        layer(m, kappa, x, y, z0 - 1, k);
        float below = between(here, plane(m, r, d, beta, x, y, z0 - 1), k);
        for (int z = z0; z < z1; z++) {
            const Plane above = plane(m, r, d, beta, x, y, z + 1);
            layer(m, kappa, x, y, z, k);
            const float all = (below + between(here, above, k)) / 12;
            const long long n = m.node(x, y, z);
            next[n] = here.at[4];
            q[n] = all;
            sum += here.at[4] * all;
            below = between(above, here, k);
            here = above;
        }
    }
    leave(curvature, sum);
}

// u += alpha d, r -= alpha q, and r·r.
extern "C" __global__ void __launch_bounds__(256)
change(float* __restrict__ u, float* __restrict__ r, const float* __restrict__ d, const float* __restrict__ q, const double* now,
       int squares, const double* curvature, int curvatures, double* next, int nx, int ny, int nz) {
    const Mesh m{nx, ny, nz};
    const float alpha = over(total(now, squares), total(curvature, curvatures));
    float sum = 0;
    EACH(i, m.node(0, 0, nz + 1)) {
        if (!m.inner(i)) continue;
        u[i] += alpha * d[i];
        const float left = r[i] - alpha * q[i];
        r[i] = left;
        sum += left * left;
    }
    leave(next, sum);
}
