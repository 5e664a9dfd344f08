// Textures, for programs that read some: texel i lies at i + 1/2. Weights of linear interpolation have 8 bits
// behind the point, as in the hardware.
typedef unsigned long long cudaTextureObject_t;
namespace emu {
// As in texture.rs.
struct Texture {
    const void* texels;
    uint32_t size[3], kind, linear, outside, normalized, layered, pitch;
};
// Texels of whole programs: `GENERAL | type << 4 | (numbers - 1)`, whose types are float, then signed and unsigned of
// 8, 16 and 32 bits; `SCALED` where whole numbers are read as parts of the largest. Their rows may be `pitch` bytes long.
enum Texels : uint32_t { GENERAL = 256, SCALED = 512 };
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
#define EMU_CHANNELS(T, NAME)                                                                                         \
    template <>                                                                                                       \
    struct Channels<T> {                                                                                              \
        static constexpr int COUNT = 1;                                                                               \
        static T of(const double* v) { return (T)v[0]; }                                                              \
    };                                                                                                                \
    template <>                                                                                                       \
    struct Channels<NAME##2> {                                                                                        \
        static constexpr int COUNT = 2;                                                                               \
        static NAME##2 of(const double* v) { return NAME##2{(T)v[0], (T)v[1]}; }                                      \
    };                                                                                                                \
    template <>                                                                                                       \
    struct Channels<NAME##4> {                                                                                        \
        static constexpr int COUNT = 4;                                                                               \
        static NAME##4 of(const double* v) { return NAME##4{(T)v[0], (T)v[1], (T)v[2], (T)v[3]}; }                    \
    };
EMU_CHANNELS(signed char, char)
EMU_CHANNELS(unsigned char, uchar)
EMU_CHANNELS(short, short)
EMU_CHANNELS(unsigned short, ushort)
EMU_CHANNELS(int, int)
EMU_CHANNELS(unsigned, uint)
#undef EMU_CHANNELS
template <>
struct Channels<float4> {
    static constexpr int COUNT = 4;
    static float4 of(const double* v) { return float4{(float)v[0], (float)v[1], (float)v[2], (float)v[3]}; }
};
template <>
struct Channels<char> {
    static constexpr int COUNT = 1;
    static char of(const double* v) { return (char)v[0]; }
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

static inline EMU_PLUMBING int texel_numbers(const Texture& t) {
    return t.kind & GENERAL ? (int)(t.kind & 3) + 1 : t.kind == 1 ? 2 : 1;
}
static inline EMU_PLUMBING unsigned texel_size(const Texture& t) {
    const unsigned sizes[] = {4, 1, 1, 2, 2, 4, 4};
    if (t.kind & GENERAL) return sizes[t.kind >> 4 & 7] * (unsigned)texel_numbers(t);
    return t.kind == 2 ? 1 : t.kind == 1 ? 8 : 4;
}

static inline EMU_PLUMBING const void* texel_place(const Texture& t, const long long* at) {
    unsigned size = texel_size(t);
    unsigned long long row = t.pitch ? t.pitch : (unsigned long long)t.size[0] * size;
    return (const char*)t.texels + ((unsigned long long)at[2] * t.size[1] + at[1]) * row + at[0] * size;
}

static inline EMU_PLUMBING double texel(const Texture& t, const long long* at, int channel) {
    const void* place = texel_place(t, at);
    switch (t.kind) {
        case 0: return ((const float*)place)[0];
        case 1: return ((const float*)place)[channel];
        case 2: return (float)(*(const unsigned char*)place / 255.0);
    }
    bool scaled = t.kind & SCALED;
    // The least number means −1, as the next one does.
    auto part = [&](double v, double most) { return scaled ? (double)(float)(v < -most ? -1 : v / most) : v; };
    switch (t.kind >> 4 & 7) {
        case 0: return ((const float*)place)[channel];
        case 1: return part(((const signed char*)place)[channel], 127);
        case 2: return part(((const unsigned char*)place)[channel], 255);
        case 3: return part(((const short*)place)[channel], 32767);
        case 4: return part(((const unsigned short*)place)[channel], 65535);
        case 5: return ((const int*)place)[channel];
        default: return ((const unsigned*)place)[channel];
    }
}

// `axes` coordinates; `layer` where there are layers.
template <class T>
static EMU_CALLED T sample(cudaTextureObject_t object, int axes, const float* where, int layer) {
    const Texture& t = *(const Texture*)object;
    if ((t.layered != 0) != (layer >= 0)) fail("a texture with layers is read without, or the other way");
    if (Channels<T>::COUNT > texel_numbers(t)) fail("a vector is read of a texture whose texels have fewer numbers");
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
    double sum[4] = {0, 0, 0, 0};
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
        EMU_TELL(emu_count_texel(EMU_HERE, texel_place(t, at), texel_size(t)));
        for (int c = 0; c < Channels<T>::COUNT; c++) sum[c] += weight * texel(t, at, c);
    }
    return Channels<T>::of(sum);
}
}  // namespace emu
template <class T>
static inline T tex1Dfetch(cudaTextureObject_t object, int x) {
    const emu::Texture& t = *(const emu::Texture*)object;
    double sum[4] = {0, 0, 0, 0};
    // Beyond the end there is 0.
    if (x >= 0 && (unsigned)x < t.size[0]) {
        const long long at[3] = {x, 0, 0};
        EMU_TELL(emu_count_texel(EMU_HERE, emu::texel_place(t, at), emu::texel_size(t)));
        for (int c = 0; c < emu::Channels<T>::COUNT && c < emu::texel_numbers(t); c++) sum[c] = emu::texel(t, at, c);
    }
    return emu::Channels<T>::of(sum);
}
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
