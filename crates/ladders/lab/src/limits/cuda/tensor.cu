// Products on the tensor cores. On a GPU without them, `out` becomes -1.

#if defined(RAYSPIN_EMULATED)
#define NO_TENSOR_CORES
#elif __CUDA_ARCH__ < 800
#define NO_TENSOR_CORES
#endif

// FP16 operands, f32 sums: 4096 operations a thread and round.
extern "C" __global__ void __launch_bounds__(256) tensor_f16(float* out, int rounds) {
#if defined(NO_TENSOR_CORES)
    if (blockIdx.x == 0 && threadIdx.x == 0) out[0] = -1.f;
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    // Two products of 64 x 128 x 16 by each group of four warps: the left operand in registers, the right one
    // in shared memory.
    __shared__ __align__(128) unsigned columns[1024];
    for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) columns[i] = 0;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const unsigned address = (unsigned)__cvta_generic_to_shared(columns);
    const unsigned long long where = (unsigned long long)(address >> 4 & 0x3fff) |
                                     (unsigned long long)(2048 >> 4) << 16 | (unsigned long long)(128 >> 4) << 32;
    const unsigned left = threadIdx.x;
    float c[64];
#pragma unroll
    for (int j = 0; j < 64; ++j) c[j] = 0.f;
#define C4(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define C16(i) C4(i), C4(i + 4), C4(i + 8), C4(i + 12)
    for (int i = 0; i < rounds; ++i) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < 2; ++k)
            asm volatile(
                "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
                "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, "
                "%33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, "
                "%54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %64, %64, %64}, %65, 1, 1, 1, 0;"
                : C16(0), C16(16), C16(32), C16(48)
                : "r"(left), "l"(where));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    float sum = 0.f;
#pragma unroll
    for (int j = 0; j < 64; ++j) sum += c[j];
    if (sum == 1.2345e30f) out[0] = sum;
#else
    // 32 products of 16 x 8 x 16 by each warp, in eight chains.
    const unsigned left = threadIdx.x, right = 0;
    float c[8][4] = {};
    for (int i = 0; i < rounds; ++i) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
#pragma unroll
            for (int j = 0; j < 8; ++j)
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%5, %5}, "
                             "{%0, %1, %2, %3};"
                             : "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])
                             : "r"(left), "r"(right));
        }
    }
    float sum = 0.f;
#pragma unroll
    for (int j = 0; j < 8; ++j) sum += c[j][0] + c[j][1] + c[j][2] + c[j][3];
    if (sum == 1.2345e30f) out[0] = sum;
#endif
}

// f64 throughout: 2048 operations a thread and round.
extern "C" __global__ void __launch_bounds__(256) tensor_f64(double* out, int rounds) {
#if defined(NO_TENSOR_CORES)
    if (blockIdx.x == 0 && threadIdx.x == 0) out[0] = -1.0;
#else
    const double left = (double)(int)threadIdx.x, right = 0.0;
    double c[8][4] = {};
    for (int i = 0; i < rounds; ++i) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
#pragma unroll
            for (int j = 0; j < 8; ++j) {
#if __CUDA_ARCH__ >= 900
                asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%5, %5}, "
                             "{%0, %1, %2, %3};"
                             : "+d"(c[j][0]), "+d"(c[j][1]), "+d"(c[j][2]), "+d"(c[j][3])
                             : "d"(left), "d"(right));
#else
#pragma unroll
                for (int part = 0; part < 4; ++part)
                    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                                 : "+d"(c[j][part % 2 * 2]), "+d"(c[j][part % 2 * 2 + 1])
                                 : "d"(left), "d"(right));
#endif
            }
        }
    }
    double sum = 0.0;
#pragma unroll
    for (int j = 0; j < 8; ++j) sum += c[j][0] + c[j][1] + c[j][2] + c[j][3];
    if (sum == 1.2345e30) out[0] = sum;
#endif
}
