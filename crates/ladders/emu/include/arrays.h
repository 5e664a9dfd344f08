// CUDA arrays and texture objects of whole programs: see runtime.h and texture.h.

enum cudaChannelFormatKind {
    cudaChannelFormatKindSigned = 0,
    cudaChannelFormatKindUnsigned = 1,
    cudaChannelFormatKindFloat = 2,
    cudaChannelFormatKindNone = 3,
};
struct cudaChannelFormatDesc {
    int x, y, z, w;
    cudaChannelFormatKind f;
};
static inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) {
    return cudaChannelFormatDesc{x, y, z, w, f};
}
namespace emu {
// The numbers of a texel: their type, their bytes and how many there are.
template <class T>
struct Format {
    static constexpr int count = 0;
};
#define EMU_FORMAT(T, N, BASE)                                                                                         \
    template <>                                                                                                        \
    struct Format<T> {                                                                                                 \
        typedef BASE base;                                                                                             \
        static constexpr int count = N;                                                                                \
    };
#define EMU_FORMATS(BASE, NAME)                                                                                        \
    EMU_FORMAT(BASE, 1, BASE) EMU_FORMAT(NAME##1, 1, BASE) EMU_FORMAT(NAME##2, 2, BASE) EMU_FORMAT(NAME##4, 4, BASE)
EMU_FORMATS(float, float)
EMU_FORMATS(signed char, char)
EMU_FORMATS(unsigned char, uchar)
EMU_FORMATS(short, short)
EMU_FORMATS(unsigned short, ushort)
EMU_FORMATS(int, int)
EMU_FORMATS(unsigned, uint)
EMU_FORMAT(char, 1, signed char)
#undef EMU_FORMATS
#undef EMU_FORMAT
}  // namespace emu
template <class T>
static inline cudaChannelFormatDesc cudaCreateChannelDesc() {
    typedef emu::Format<T> F;
    static_assert(F::count > 0, "textures have texels of 1, 2 or 4 numbers of 8, 16 or 32 bits");
    typedef typename F::base B;
    int bits = 8 * (int)sizeof(B), n = F::count;
    cudaChannelFormatKind kind = std::is_same_v<B, float>   ? cudaChannelFormatKindFloat
                                 : std::is_signed_v<B>      ? cudaChannelFormatKindSigned
                                                            : cudaChannelFormatKindUnsigned;
    return cudaChannelFormatDesc{bits, n > 1 ? bits : 0, n > 2 ? bits : 0, n > 3 ? bits : 0, kind};
}

struct cudaExtent {
    size_t width, height, depth;
};
struct cudaPos {
    size_t x, y, z;
};
struct cudaPitchedPtr {
    void* ptr;
    size_t pitch, xsize, ysize;
};
static inline cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) { return cudaExtent{width, height, depth}; }
static inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return cudaPos{x, y, z}; }
static inline cudaPitchedPtr make_cudaPitchedPtr(void* at, size_t pitch, size_t width, size_t rows) {
    return cudaPitchedPtr{at, pitch, width, rows};
}
#define cudaArrayDefault 0
#define cudaArrayLayered 1
#define cudaArraySurfaceLoadStore 2
#define cudaArrayTextureGather 8

// Texels in rows without gaps, x fastest; axes that are missing have 0.
struct cudaArray {
    void* texels;
    cudaExtent size;
    cudaChannelFormatDesc format;
    unsigned flags;
};
typedef cudaArray* cudaArray_t;
typedef const cudaArray* cudaArray_const_t;

namespace emu {
static inline size_t texel_bytes(const cudaChannelFormatDesc& f) { return (size_t)(f.x + f.y + f.z + f.w) / 8; }
static inline size_t at_least_1(size_t n) { return n ? n : 1; }
// The kind of texels as texture.h has it, or -1.
static inline int kind_of(const cudaChannelFormatDesc& f, bool normalized) {
    int count = f.w ? 4 : f.z ? 3 : f.y ? 2 : 1;
    if (count == 3 || (f.y && f.y != f.x) || (f.z && f.z != f.x) || (f.w && f.w != f.x)) return -1;
    int type = f.f == cudaChannelFormatKindFloat && f.x == 32 ? 0
               : f.f == cudaChannelFormatKindSigned           ? (f.x == 8 ? 1 : f.x == 16 ? 3 : f.x == 32 ? 5 : -1)
               : f.f == cudaChannelFormatKindUnsigned         ? (f.x == 8 ? 2 : f.x == 16 ? 4 : f.x == 32 ? 6 : -1)
                                                              : -1;
    if (type < 0 || (normalized && (type == 0 || type > 4))) return -1;
    return GENERAL | (normalized ? SCALED : 0) | type << 4 | (count - 1);
}
static cudaError_t take_array(cudaArray_t* to, const cudaChannelFormatDesc* format, cudaExtent size, unsigned flags, int line) {
    if (!to || !format || size.width == 0 || kind_of(*format, false) < 0) return cudaErrorInvalidValue;
    size_t bytes = texel_bytes(*format) * size.width * at_least_1(size.height) * at_least_1(size.depth);
    cudaArray own{nullptr, size, *format, flags};
    if (cudaError_t error = take(&own.texels, bytes, Home::DEVICE, line)) return error;
    *to = new cudaArray(own);
    return cudaSuccess;
}
}  // namespace emu

static inline cudaError_t cudaMallocArray(cudaArray_t* to, const cudaChannelFormatDesc* format, size_t width, size_t height = 0,
                                          unsigned flags = 0, EMU_LINE) {
    return EMU_FAILS(emu::take_array(to, format, cudaExtent{width, height, 0}, flags, line));
}
static inline cudaError_t cudaMalloc3DArray(cudaArray_t* to, const cudaChannelFormatDesc* format, cudaExtent size,
                                            unsigned flags = 0, EMU_LINE) {
    return EMU_FAILS(emu::take_array(to, format, size, flags, line));
}
static inline cudaError_t cudaFreeArray(cudaArray_t array, EMU_LINE) {
    if (!array) return cudaSuccess;
    cudaError_t error = emu::give_back(array->texels, false);
    delete array;
    return EMU_FAILS(error);
}
static inline cudaError_t cudaMalloc3D(cudaPitchedPtr* to, cudaExtent size, EMU_LINE) {
    if (!to) return EMU_FAILS(cudaErrorInvalidValue);
    to->pitch = (size.width + 511) / 512 * 512;
    to->xsize = size.width;
    to->ysize = size.height;
    return EMU_FAILS(emu::take(&to->ptr, to->pitch * size.height * size.depth, emu::Home::DEVICE, line));
}
static inline cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width,
                                              size_t rows, cudaMemcpyKind kind, EMU_LINE) {
    if (!to) return EMU_FAILS(cudaErrorInvalidResourceHandle);
    size_t row = to->size.width * emu::texel_bytes(to->format);
    if (x + width > row || y + rows > emu::at_least_1(to->size.height)) return EMU_FAILS(cudaErrorInvalidValue);
    return EMU_FAILS(emu::copy_rows((char*)to->texels + y * row + x, row, from, pitch, width, rows, kind));
}
static inline cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
                                                size_t rows, cudaMemcpyKind kind, EMU_LINE) {
    if (!from) return EMU_FAILS(cudaErrorInvalidResourceHandle);
    size_t row = from->size.width * emu::texel_bytes(from->format);
    if (x + width > row || y + rows > emu::at_least_1(from->size.height)) return EMU_FAILS(cudaErrorInvalidValue);
    return EMU_FAILS(emu::copy_rows(to, pitch, (const char*)from->texels + y * row + x, row, width, rows, kind));
}
static inline cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t bytes,
                                            cudaMemcpyKind kind, EMU_LINE) {
    if (!to) return EMU_FAILS(cudaErrorInvalidResourceHandle);
    size_t row = to->size.width * emu::texel_bytes(to->format), offset = y * row + x;
    if (offset + bytes > row * emu::at_least_1(to->size.height)) return EMU_FAILS(cudaErrorInvalidValue);
    return EMU_FAILS(emu::copy_rows((char*)to->texels + offset, bytes, from, bytes, bytes, 1, kind));
}

struct cudaMemcpy3DParms {
    cudaArray_t srcArray;
    cudaPos srcPos;
    cudaPitchedPtr srcPtr;
    cudaArray_t dstArray;
    cudaPos dstPos;
    cudaPitchedPtr dstPtr;
    cudaExtent extent;
    cudaMemcpyKind kind;
};
static inline cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p, EMU_LINE) {
    if (!p || !p->srcArray == !p->srcPtr.ptr || !p->dstArray == !p->dstPtr.ptr) return EMU_FAILS(cudaErrorInvalidValue);
    // Widths are in texels where an array takes part.
    cudaArray_t any = p->srcArray ? p->srcArray : p->dstArray;
    size_t unit = any ? emu::texel_bytes(any->format) : 1, width = p->extent.width * unit;
    struct End {
        char* at;
        size_t pitch, rows;
    };
    auto end = [&](cudaArray_t array, const cudaPitchedPtr& plain, cudaPos pos) {
        End e;
        e.pitch = array ? array->size.width * unit : plain.pitch;
        e.rows = array ? emu::at_least_1(array->size.height) : plain.ysize;
        e.at = (char*)(array ? array->texels : plain.ptr) + (pos.z * e.rows + pos.y) * e.pitch + pos.x * (array ? unit : 1);
        return e;
    };
    End from = end(p->srcArray, p->srcPtr, p->srcPos), to = end(p->dstArray, p->dstPtr, p->dstPos);
    for (size_t z = 0; z < p->extent.depth; z++) {
        cudaError_t error = emu::copy_rows(to.at + z * to.rows * to.pitch, to.pitch, from.at + z * from.rows * from.pitch,
                                           from.pitch, width, p->extent.height, p->kind);
        if (error) return EMU_FAILS(error);
    }
    return cudaSuccess;
}
static inline cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t = 0, EMU_LINE) {
    return cudaMemcpy3D(p, line);
}

enum cudaResourceType {
    cudaResourceTypeArray = 0,
    cudaResourceTypeMipmappedArray = 1,
    cudaResourceTypeLinear = 2,
    cudaResourceTypePitch2D = 3,
};
struct cudaResourceDesc {
    cudaResourceType resType;
    union {
        struct {
            cudaArray_t array;
        } array;
        struct {
            void* devPtr;
            cudaChannelFormatDesc desc;
            size_t sizeInBytes;
        } linear;
        struct {
            void* devPtr;
            cudaChannelFormatDesc desc;
            size_t width, height, pitchInBytes;
        } pitch2D;
    } res;
};
enum cudaTextureAddressMode {
    cudaAddressModeWrap = 0,
    cudaAddressModeClamp = 1,
    cudaAddressModeMirror = 2,
    cudaAddressModeBorder = 3,
};
enum cudaTextureFilterMode { cudaFilterModePoint = 0, cudaFilterModeLinear = 1 };
enum cudaTextureReadMode { cudaReadModeElementType = 0, cudaReadModeNormalizedFloat = 1 };
struct cudaTextureDesc {
    cudaTextureAddressMode addressMode[3];
    cudaTextureFilterMode filterMode;
    cudaTextureReadMode readMode;
    int sRGB;
    float borderColor[4];
    int normalizedCoords;
    unsigned maxAnisotropy;
    cudaTextureFilterMode mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    int disableTrilinearOptimization, seamlessCubemap;
};
struct cudaResourceViewDesc {};
static inline cudaError_t cudaCreateTextureObject(cudaTextureObject_t* to, const cudaResourceDesc* from, const cudaTextureDesc* how,
                                                  const cudaResourceViewDesc* view, EMU_LINE) {
    if (!to || !from || !how) return EMU_FAILS(cudaErrorInvalidValue);
    cudaChannelFormatDesc format{};
    emu::Texture t{};
    size_t pitch = 0;
    switch (from->resType) {
        case cudaResourceTypeArray: {
            cudaArray_t array = from->res.array.array;
            if (!array) return EMU_FAILS(cudaErrorInvalidResourceHandle);
            format = array->format;
            t.texels = array->texels;
            t.size[0] = (uint32_t)array->size.width;
            t.size[1] = (uint32_t)emu::at_least_1(array->size.height);
            t.size[2] = (uint32_t)emu::at_least_1(array->size.depth);
            t.layered = array->flags & cudaArrayLayered ? 1 : 0;
            break;
        }
        case cudaResourceTypeLinear:
            format = from->res.linear.desc;
            t.texels = from->res.linear.devPtr;
            t.size[0] = (uint32_t)(from->res.linear.sizeInBytes / (emu::texel_bytes(format) ? emu::texel_bytes(format) : 1));
            t.size[1] = t.size[2] = 1;
            if (!emu::holder(t.texels, from->res.linear.sizeInBytes)) return EMU_FAILS(cudaErrorInvalidValue);
            break;
        case cudaResourceTypePitch2D:
            format = from->res.pitch2D.desc;
            t.texels = from->res.pitch2D.devPtr;
            t.size[0] = (uint32_t)from->res.pitch2D.width;
            t.size[1] = (uint32_t)from->res.pitch2D.height;
            t.size[2] = 1;
            pitch = from->res.pitch2D.pitchInBytes;
            if (!t.size[0] || !t.size[1] || pitch % 32 || !emu::holder(t.texels, pitch * (t.size[1] - 1)))
                return EMU_FAILS(cudaErrorInvalidValue);
            break;
        default: return EMU_FAILS(cudaErrorNotSupported);
    }
    int kind = emu::kind_of(format, how->readMode == cudaReadModeNormalizedFloat);
    if (kind < 0) return EMU_FAILS(cudaErrorInvalidChannelDescriptor);
    // Whole numbers are not interpolated; one mode serves all axes here; nothing but 0 lies outside.
    bool whole = how->readMode == cudaReadModeElementType && format.f != cudaChannelFormatKindFloat;
    int axes = t.size[2] > 1 && !t.layered ? 3 : t.size[1] > 1 ? 2 : 1;
    for (int a = 1; a < axes; a++)
        if (how->addressMode[a] != how->addressMode[0]) return EMU_FAILS(cudaErrorNotSupported);
    for (float color : how->borderColor)
        if (color != 0) return EMU_FAILS(cudaErrorNotSupported);
    if (view || how->sRGB || (how->filterMode == cudaFilterModeLinear && whole)) return EMU_FAILS(cudaErrorInvalidValue);
    t.kind = (uint32_t)kind;
    t.pitch = (uint32_t)pitch;
    t.linear = how->filterMode == cudaFilterModeLinear;
    t.normalized = how->normalizedCoords != 0;
    switch (how->addressMode[0]) {
        case cudaAddressModeClamp: t.outside = emu::CLAMP; break;
        case cudaAddressModeBorder: t.outside = emu::BORDER; break;
        // Without normalised coordinates the hardware repeats nothing.
        case cudaAddressModeWrap: t.outside = t.normalized ? emu::WRAP : emu::CLAMP; break;
        case cudaAddressModeMirror: t.outside = t.normalized ? emu::MIRROR : emu::CLAMP; break;
    }
    *to = (cudaTextureObject_t) new emu::Texture(t);
    return cudaSuccess;
}
static inline cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
    delete (emu::Texture*)object;
    return cudaSuccess;
}
