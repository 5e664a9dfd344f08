// Textures, for programs that read some: texel i lies at i + 1/2. Weights of linear interpolation have 8 bits
// behind the point, as in the hardware.
typedef unsigned long long cudaTextureObject_t;
namespace emu {
// As in texture.rs.
struct Texture {
    const void* texels;
    uint32_t size[3], kind, linear, outside, normalized, layered;
};
enum Outside { CLAMP, BORDER, WRAP, MIRROR };

template <class T>
struct Channels;
template <>
struct Channels<float> {
    static constexpr int COUNT = 1;
    static float of(const double* v) { return (float)v[0]; }
};
template <>
struct Channels<float2> {
    static constexpr int COUNT = 2;
    static float2 of(const double* v) { return float2{(float)v[0], (float)v[1]}; }
};

// The texel that counts for index i of n, or -1.
static inline EMU_PLUMBING long long texel_of(long long i, long long n, uint32_t outside) {
    if (i >= 0 && i < n) return i;
    switch (outside) {
        case CLAMP: return i < 0 ? 0 : n - 1;
        case BORDER: return -1;
        case WRAP: return (i % n + n) % n;
        default: i = (i % (2 * n) + 2 * n) % (2 * n); return i < n ? i : 2 * n - 1 - i;
    }
}

static inline EMU_PLUMBING double texel(const Texture& t, const long long* at, int channel) {
    unsigned long long place = ((unsigned long long)at[2] * t.size[1] + at[1]) * t.size[0] + at[0];
    switch (t.kind) {
        case 0: return ((const float*)t.texels)[place];
        case 1: return ((const float*)t.texels)[2 * place + channel];
        default: return (float)(((const unsigned char*)t.texels)[place] / 255.0);
    }
}

static inline EMU_PLUMBING const void* texel_place(const Texture& t, const long long* at) {
    unsigned long long place = ((unsigned long long)at[2] * t.size[1] + at[1]) * t.size[0] + at[0];
    return (const char*)t.texels + place * (t.kind == 2 ? 1 : t.kind == 1 ? 8 : 4);
}

// `axes` coordinates; `layer` where there are layers.
template <class T>
static EMU_CALLED T sample(cudaTextureObject_t object, int axes, const float* where, int layer) {
    const Texture& t = *(const Texture*)object;
    if ((t.layered != 0) != (layer >= 0)) fail("a texture with layers is read without, or the other way");
    if (Channels<T>::COUNT == 2 && t.kind != 1) fail("float2 of a texture of single numbers");
    long long first[3] = {0, 0, 0};
    double part[3] = {0, 0, 0};
    for (int a = 0; a < axes; a++) {
        double x = t.normalized ? (double)where[a] * t.size[a] : (double)where[a];
        double far = 1e9;
        x = x != x ? 0 : x > far ? far : x < -far ? -far : x;
        if (t.linear) {
            double steps = __builtin_floor((x - 0.5) * 256 + 0.5), whole = __builtin_floor(steps / 256);
            first[a] = (long long)whole;
            part[a] = steps / 256 - whole;
        } else {
            first[a] = (long long)__builtin_floor(x);
        }
    }
    double sum[2] = {0, 0};
    for (int corner = 0; corner < (t.linear ? 1 << axes : 1); corner++) {
        long long at[3] = {0, 0, 0};
        double weight = 1;
        bool inside = true;
        for (int a = 0; a < axes; a++) {
            int next = corner >> a & 1;
            weight *= t.linear ? (next ? part[a] : 1 - part[a]) : 1;
            at[a] = texel_of(first[a] + next, t.size[a], t.outside);
            inside = inside && at[a] >= 0;
        }
        if (layer >= 0) at[2] = texel_of(layer, t.size[2], CLAMP);
        if (!inside || weight == 0) continue;
        EMU_TELL(emu_count_texel(EMU_HERE, texel_place(t, at), t.kind == 2 ? 1 : t.kind == 1 ? 8 : 4));
        for (int c = 0; c < Channels<T>::COUNT; c++) sum[c] += weight * texel(t, at, c);
    }
    return Channels<T>::of(sum);
}
}  // namespace emu
template <class T>
static inline T tex1D(cudaTextureObject_t object, float x) { return emu::sample<T>(object, 1, &x, -1); }
template <class T>
static inline T tex2D(cudaTextureObject_t object, float x, float y) {
    float where[2] = {x, y};
    return emu::sample<T>(object, 2, where, -1);
}
template <class T>
static inline T tex3D(cudaTextureObject_t object, float x, float y, float z) {
    float where[3] = {x, y, z};
    return emu::sample<T>(object, 3, where, -1);
}
template <class T>
static inline T tex2DLayered(cudaTextureObject_t object, float x, float y, int layer) {
    float where[2] = {x, y};
    return emu::sample<T>(object, 2, where, layer < 0 ? 0 : layer);
}
