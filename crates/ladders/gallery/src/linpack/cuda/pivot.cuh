// The best row of a column: the largest |number|, of equal ones the first.

struct Best {
    double size;
    int row;
};

static __device__ __forceinline__ void better(Best& best, double size, int row) {
    if (size > best.size || (size == best.size && row < best.row)) best.size = size, best.row = row;
}

// The best of all threads of a block, in thread 0. The number of threads of a block is a power of two, at
// most 256.
static __device__ Best best_of_block(Best own) {
    __shared__ double sizes[256];
    __shared__ int rows[256];
    const int t = threadIdx.x;
    sizes[t] = own.size, rows[t] = own.row;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) {
            Best best{sizes[t], rows[t]};
            better(best, sizes[t + half], rows[t + half]);
            sizes[t] = best.size, rows[t] = best.row;
        }
    }
    return Best{sizes[t], rows[t]};
}
