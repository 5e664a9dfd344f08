// Bicubic resampling, from sizes (rows, columns) to (high, wide). `places` and `table` say for each row,
// then for each column of the output what it is made of: the pixel before it and the four weights.

static __device__ __forceinline__ int held(int i, int n) { return min(max(i, 0), n - 1); }

static __device__ __forceinline__ void put(float* to, float value) { *to = value; }
static __device__ __forceinline__ void put(unsigned char* to, float value) {
    *to = (unsigned char)(int)(fminf(fmaxf(value, 0.0f), 255.0f) + 0.5f);
}

// The pixel before coordinate `at` and the four weights: a the parameter of Keys' kernel, or a B-spline where
// a > 0.
static __device__ __forceinline__ int weights(int at, double step, float a, float* w) {
    const double x = ((double)at + 0.5) * step - 0.5;
    const int before = (int)floor(x);
    const float t = (float)(x - before), s = 1 - t;
    if (a > 0) {
        w[0] = s * s * s / 6, w[3] = t * t * t / 6;
        w[1] = 2.0f / 3 - t * t + t * t * t / 2, w[2] = 2.0f / 3 - s * s + s * s * s / 2;
    } else {
        w[0] = a * t * s * s, w[3] = a * s * t * t;
        w[1] = ((a + 2) * t - (a + 3)) * t * t + 1, w[2] = ((a + 2) * s - (a + 3)) * s * s + 1;
    }
    return before;
}

// Sixteen reads, weights anew for each pixel.
template <class P>
static __device__ void sixteen(const P* __restrict__ image, P* __restrict__ out, int rows, int columns, int high, int wide,
                               double step_y, double step_x, float a) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= wide || y >= high) return;
    float wx[4], wy[4], sum = 0;
    const int x0 = weights(x, step_x, a, wx), y0 = weights(y, step_y, a, wy);
    for (int j = 0; j < 4; j++) {
        const P* row = image + (size_t)held(y0 + j - 1, rows) * columns;
        float part = 0;
        for (int i = 0; i < 4; i++) part += wx[i] * (float)row[held(x0 + i - 1, columns)];
        sum += wy[j] * part;
    }
    put(out + (size_t)y * wide + x, sum);
}

// The same with places and weights from tables.
template <class P>
static __device__ void tabled(const P* __restrict__ image, P* __restrict__ out, int rows, int columns, int high, int wide,
                              const int* __restrict__ places, const float4* __restrict__ table) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= wide || y >= high) return;
    const float4 wy = table[y], wx = table[high + x];
    const float down[4] = {wy.x, wy.y, wy.z, wy.w};
    const int y0 = places[y], x0 = places[high + x];
    float sum = 0;
    for (int j = 0; j < 4; j++) {
        const P* row = image + (size_t)held(y0 + j - 1, rows) * columns;
        sum += down[j] * (wx.x * (float)row[held(x0 - 1, columns)] + wx.y * (float)row[held(x0, columns)] +
                          wx.z * (float)row[held(x0 + 1, columns)] + wx.w * (float)row[held(x0 + 2, columns)]);
    }
    put(out + (size_t)y * wide + x, sum);
}

// Sixteen fetches of the texture unit, which holds coordinates to the image.
template <class P>
static __device__ void points(cudaTextureObject_t image, P* __restrict__ out, int high, int wide, const int* __restrict__ places,
                              const float4* __restrict__ table, float unit) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= wide || y >= high) return;
    const float4 wy = table[y], wx = table[high + x];
    const float down[4] = {wy.x, wy.y, wy.z, wy.w};
    const float fx = (float)places[high + x] + 0.5f, fy = (float)places[y] + 0.5f;
    float sum = 0;
    for (int j = 0; j < 4; j++) {
        const float at = fy + (float)(j - 1);
        sum += down[j] * (wx.x * tex2D<float>(image, fx - 1, at) + wx.y * tex2D<float>(image, fx, at) +
                          wx.z * tex2D<float>(image, fx + 1, at) + wx.w * tex2D<float>(image, fx + 2, at));
    }
    put(out + (size_t)y * wide + x, unit * sum);
}

// Four fetches that the unit interpolates: two pixels whose weights have one sign are one fetch between them.
// All weights of a B-spline have one sign.
template <class P>
static __device__ void four(cudaTextureObject_t image, P* __restrict__ out, int high, int wide, const int* __restrict__ places,
                            const float4* __restrict__ table, float unit) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= wide || y >= high) return;
    const float4 wy = table[y], wx = table[high + x];
    const float fx = (float)places[high + x] + 0.5f, fy = (float)places[y] + 0.5f;
    const float gx = wx.x + wx.y, hx = wx.z + wx.w, gy = wy.x + wy.y, hy = wy.z + wy.w;
    const float x1 = fx - 1 + wx.y / gx, x2 = fx + 1 + wx.w / hx, y1 = fy - 1 + wy.y / gy, y2 = fy + 1 + wy.w / hy;
    const float sum = gy * (gx * tex2D<float>(image, x1, y1) + hx * tex2D<float>(image, x2, y1)) +
                      hy * (gx * tex2D<float>(image, x1, y2) + hx * tex2D<float>(image, x2, y2));
    put(out + (size_t)y * wide + x, unit * sum);
}

// A thread has one column and slides down `each` rows of the output. The last four rows of the image that it
// has filtered along x stay in registers: where the image grows, most rows of output need no new one, and a
// row is filtered once.
template <class P>
static __device__ void sliding(const P* __restrict__ image, P* __restrict__ out, int rows, int columns, int high, int wide,
                               const int* __restrict__ places, const float4* __restrict__ table, int each, int blocks) {
    const int x = (int)(blockIdx.x % blocks) * blockDim.x + threadIdx.x, first = (int)(blockIdx.x / blocks) * each;
    if (x >= wide) return;
    const float4 wx = table[high + x];
    const int x0 = places[high + x];
    const int a = held(x0 - 1, columns), b = held(x0, columns), c = held(x0 + 1, columns), d = held(x0 + 2, columns);
    float near[4] = {0, 0, 0, 0};
    int next = places[first] - 1;  // the row that is read next; near[3] holds the one before
    for (int y = first; y < min(first + each, high); y++) {
        const int wanted = places[y] - 1;
        // Rows that no output needs are passed over.
        next = max(next, wanted);
        for (; next < wanted + 4; next++) {
            const P* row = image + (size_t)held(next, rows) * columns;
            near[0] = near[1], near[1] = near[2], near[2] = near[3];
            near[3] = wx.x * (float)row[a] + wx.y * (float)row[b] + wx.z * (float)row[c] + wx.w * (float)row[d];
        }
        const float4 wy = table[y];
        put(out + (size_t)y * wide + x, wy.x * near[0] + wy.y * near[1] + wy.z * near[2] + wy.w * near[3]);
    }
}

extern "C" __global__ void sixteen_u8(const unsigned char* __restrict__ image, unsigned char* __restrict__ out, int rows, int columns, int high, int wide,
                                       double step_y, double step_x, float a) {
    sixteen<unsigned char>(image, out, rows, columns, high, wide, step_y, step_x, a);
}
extern "C" __global__ void tabled_u8(const unsigned char* __restrict__ image, unsigned char* __restrict__ out, int rows, int columns, int high, int wide,
                                      const int* __restrict__ places, const float4* __restrict__ table) {
    tabled<unsigned char>(image, out, rows, columns, high, wide, places, table);
}
extern "C" __global__ void points_u8(cudaTextureObject_t image, unsigned char* __restrict__ out, int high, int wide, const int* __restrict__ places, const float4* __restrict__ table,
                                      float unit) {
    points<unsigned char>(image, out, high, wide, places, table, unit);
}
extern "C" __global__ void four_u8(cudaTextureObject_t image, unsigned char* __restrict__ out, int high, int wide, const int* __restrict__ places, const float4* __restrict__ table,
                                    float unit) {
    four<unsigned char>(image, out, high, wide, places, table, unit);
}
extern "C" __global__ void sliding_u8(const unsigned char* __restrict__ image, unsigned char* __restrict__ out, int rows, int columns, int high, int wide,
                                       const int* __restrict__ places, const float4* __restrict__ table, int each, int blocks) {
    sliding<unsigned char>(image, out, rows, columns, high, wide, places, table, each, blocks);
}
extern "C" __global__ void sixteen_f32(const float* __restrict__ image, float* __restrict__ out, int rows, int columns, int high, int wide,
                                       double step_y, double step_x, float a) {
    sixteen<float>(image, out, rows, columns, high, wide, step_y, step_x, a);
}
extern "C" __global__ void tabled_f32(const float* __restrict__ image, float* __restrict__ out, int rows, int columns, int high, int wide,
                                      const int* __restrict__ places, const float4* __restrict__ table) {
    tabled<float>(image, out, rows, columns, high, wide, places, table);
}
extern "C" __global__ void points_f32(cudaTextureObject_t image, float* __restrict__ out, int high, int wide, const int* __restrict__ places, const float4* __restrict__ table,
                                      float unit) {
    points<float>(image, out, high, wide, places, table, unit);
}
extern "C" __global__ void four_f32(cudaTextureObject_t image, float* __restrict__ out, int high, int wide, const int* __restrict__ places, const float4* __restrict__ table,
                                    float unit) {
    four<float>(image, out, high, wide, places, table, unit);
}
extern "C" __global__ void sliding_f32(const float* __restrict__ image, float* __restrict__ out, int rows, int columns, int high, int wide,
                                       const int* __restrict__ places, const float4* __restrict__ table, int each, int blocks) {
    sliding<float>(image, out, rows, columns, high, wide, places, table, each, blocks);
}
