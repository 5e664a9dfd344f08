// Values of a texture at points (x, y, z), of one number a texel or of two.
#define EACH                                                                                                          \
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;                                                               \
    if (i >= n) return;                                                                                               \
    const float x = at[3 * i], y = at[3 * i + 1], z = at[3 * i + 2];                                                  \
    (void)x, (void)y, (void)z;

extern "C" __global__ void one1(cudaTextureObject_t texture, const float* at, float* out, unsigned n) {
    EACH
    out[i] = tex1D<float>(texture, x);
}
extern "C" __global__ void one2(cudaTextureObject_t texture, const float* at, float* out, unsigned n) {
    EACH
    const float2 v = tex1D<float2>(texture, x);
    out[2 * i] = v.x;
    out[2 * i + 1] = v.y;
}

extern "C" __global__ void two1(cudaTextureObject_t texture, const float* at, float* out, unsigned n) {
    EACH
    out[i] = tex2D<float>(texture, x, y);
}
extern "C" __global__ void two2(cudaTextureObject_t texture, const float* at, float* out, unsigned n) {
    EACH
    const float2 v = tex2D<float2>(texture, x, y);
    out[2 * i] = v.x;
    out[2 * i + 1] = v.y;
}

extern "C" __global__ void three1(cudaTextureObject_t texture, const float* at, float* out, unsigned n) {
    EACH
    out[i] = tex3D<float>(texture, x, y, z);
}
extern "C" __global__ void three2(cudaTextureObject_t texture, const float* at, float* out, unsigned n) {
    EACH
    const float2 v = tex3D<float2>(texture, x, y, z);
    out[2 * i] = v.x;
    out[2 * i + 1] = v.y;
}

extern "C" __global__ void layered1(cudaTextureObject_t texture, const float* at, float* out, unsigned n) {
    EACH
    out[i] = tex2DLayered<float>(texture, x, y, (int)z);
}
extern "C" __global__ void layered2(cudaTextureObject_t texture, const float* at, float* out, unsigned n) {
    EACH
    const float2 v = tex2DLayered<float2>(texture, x, y, (int)z);
    out[2 * i] = v.x;
    out[2 * i + 1] = v.y;
}
