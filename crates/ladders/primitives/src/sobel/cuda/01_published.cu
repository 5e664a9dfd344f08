// The published variants: reads of global memory, of textures, of a shared tile.

// Twelve reads, each corner twice, in floating point.
extern "C" __global__ void twelve_reads(const unsigned char* __restrict__ image, unsigned char* __restrict__ out, int rows,
                                        int columns, float scale) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= columns || y >= rows) return;
    // Volatile, or the compiler reads corners once.
    const volatile unsigned char* a = image + (size_t)held(y - 1, rows) * columns;
    const volatile unsigned char* b = image + (size_t)y * columns;
    const volatile unsigned char* c = image + (size_t)held(y + 1, rows) * columns;
    const int left = held(x - 1, columns), right = held(x + 1, columns);
    const float across = (float)a[right] + 2.0f * (float)b[right] + (float)c[right] - (float)a[left] -
                         2.0f * (float)b[left] - (float)c[left];
    const float down = (float)c[left] + 2.0f * (float)c[x] + (float)c[right] - (float)a[left] - 2.0f * (float)a[x] -
                       (float)a[right];
    const float sum = __fmul_rn(fabsf(across) + fabsf(down), scale);
    out[(size_t)y * columns + x] = (unsigned char)(int)fminf(sum, 255.0f);
}

// Eight reads, in integers.
extern "C" __global__ void eight_reads(const unsigned char* __restrict__ image, unsigned char* __restrict__ out, int rows,
                                       int columns, float scale) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= columns || y >= rows) return;
    const unsigned char* a = image + (size_t)held(y - 1, rows) * columns;
    const unsigned char* b = image + (size_t)y * columns;
    const unsigned char* c = image + (size_t)held(y + 1, rows) * columns;
    const int left = held(x - 1, columns), right = held(x + 1, columns);
    const int sum = gradients(a[left], a[x], a[right], b[left], b[right], c[left], c[x], c[right]);
    out[(size_t)y * columns + x] = (unsigned char)scaled(sum, scale);
}

// A block a row, neighbours through the texture unit, which holds coordinates to the image.
extern "C" __global__ void texture_rows(cudaTextureObject_t image, unsigned char* __restrict__ out, int rows, int columns,
                                        float scale) {
    const int y = blockIdx.x;
    for (int x = threadIdx.x; x < columns; x += blockDim.x) {
        int near[3][3];
        for (int j = 0; j < 3; j++)
            for (int i = 0; i < 3; i++)
                near[j][i] = __float2int_rn(255.0f * tex2D<float>(image, (float)(x + i) - 0.5f, (float)(y + j) - 0.5f));
        const int sum = gradients(near[0][0], near[0][1], near[0][2], near[1][0], near[1][2], near[2][0], near[2][1],
                                  near[2][2]);
        out[(size_t)y * columns + x] = (unsigned char)scaled(sum, scale);
    }
}

// A tile with an apron of one pixel in shared memory. A thread has four pixels side by side: nine reads for
// the first, three for each of the next, and several rows.
extern "C" __global__ void shared_tile(const unsigned char* __restrict__ image, unsigned char* __restrict__ out, int rows,
                                       int columns, int each, float scale) {
    extern __shared__ unsigned char tile[];
    const int width = 4 * blockDim.x, height = each * blockDim.y, pitch = width + 4;
    const int x0 = blockIdx.x * width, y0 = blockIdx.y * height;
    for (int j = threadIdx.y; j < height + 2; j += blockDim.y) {
        const unsigned char* row = image + (size_t)held(y0 + j - 1, rows) * columns;
        for (int i = threadIdx.x; i < width + 2; i += blockDim.x) tile[j * pitch + i] = row[held(x0 + i - 1, columns)];
    }
    __syncthreads();
    const int x = x0 + 4 * threadIdx.x;
    if (x >= columns) return;
    for (int j = threadIdx.y; j < height && y0 + j < rows; j += blockDim.y) {
        const unsigned char* p = tile + j * pitch + 4 * threadIdx.x;
        int a0 = p[0], a1 = p[1], b0 = p[pitch], b1 = p[pitch + 1], c0 = p[2 * pitch], c1 = p[2 * pitch + 1];
        int sums[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int a2 = p[i + 2], b2 = p[pitch + i + 2], c2 = p[2 * pitch + i + 2];
            sums[i] = scaled(gradients(a0, a1, a2, b0, b2, c0, c1, c2), scale);
            a0 = a1, a1 = a2, b0 = b1, b1 = b2, c0 = c1, c1 = c2;
        }
        unsigned char* to = out + (size_t)(y0 + j) * columns + x;
        if (columns % 4 == 0) {
            *(uchar4*)to = make_uchar4(sums[0], sums[1], sums[2], sums[3]);
        } else {
            for (int i = 0; i < 4 && x + i < columns; i++) to[i] = (unsigned char)sums[i];
        }
    }
}
