// Points of DIMS components in memory of their owner. A kernel's parameters name them x, y, z, start_x and so
// on.

// Component d of point j is the number start + j · stride of its array: a float where bit d of `singles` is
// set, else a double.
#define COMPONENTS                                                                                                    \
    const unsigned* numbers[3] = {x, y, z};                                                                           \
    long long start[3] = {start_x, start_y, start_z}, stride[3] = {stride_x, stride_y, stride_z};

static __device__ __forceinline__ double number(const unsigned* numbers, bool single, long long at) {
    return single ? (double)((const float*)numbers)[at] : ((const double*)numbers)[at];
}
