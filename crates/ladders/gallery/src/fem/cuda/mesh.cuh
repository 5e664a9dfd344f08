// Nodes and elements of a box of cubes, and sums of blocks. Vectors are on all nodes and 0 on the boundary;
// kappa is on elements.

struct Mesh {
    int nx, ny, nz;
    __device__ __forceinline__ long long node(int x, int y, int z) const {
        return ((long long)z * (ny + 1) + y) * (nx + 1) + x;
    }
    __device__ __forceinline__ long long element(int x, int y, int z) const {
        return ((long long)z * ny + y) * nx + x;
    }
    __device__ __forceinline__ bool inner(int x, int y, int z) const {
        return x > 0 && x < nx && y > 0 && y < ny && z > 0 && z < nz;
    }
    __device__ __forceinline__ bool inner(long long at) const {
        return inner((int)(at % (nx + 1)), (int)(at / (nx + 1) % (ny + 1)), (int)(at / (nx + 1) / (ny + 1)));
    }
};

// The sum of a block's threads, a power of two of them, to all of them.
static __device__ double block_sum(double own) {
    __shared__ double sums[1024];
    const int t = threadIdx.y * blockDim.x + threadIdx.x;
    sums[t] = own;
    for (int half = blockDim.x * blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) sums[t] += sums[t + half];
    }
    __syncthreads();
    const double all = sums[0];
    __syncthreads();
    return all;
}

// The sum of what all blocks of an earlier kernel have left.
static __device__ double total(const double* parts, int count) {
    const int t = threadIdx.y * blockDim.x + threadIdx.x;
    double own = 0;
    for (int i = t; i < count; i += blockDim.x * blockDim.y) own += parts[i];
    return block_sum(own);
}

// What a block leaves.
static __device__ void leave(double* parts, double own) {
    const double all = block_sum(own);
    if (threadIdx.x + threadIdx.y == 0)
        parts[((long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = all;
}

// a / b, or 0 where nothing is left to do.
static __device__ __forceinline__ float over(double a, double b) { return b > 0 ? (float)(a / b) : 0; }

#define EACH(i, n)                                                                                     \
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; \
         i += (long long)gridDim.x * blockDim.x)
