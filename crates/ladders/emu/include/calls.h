// The calls of CUDA's runtime that whole programs make: see runtime.h.

#undef assert
#define assert(...) ((__VA_ARGS__) ? (void)0 : emu::assertion(#__VA_ARGS__, __FILE__, __LINE__))
#define __managed__
#define EMU_LINE int line = __builtin_LINE()

// Errors.
static inline cudaError_t cudaPeekAtLastError() {
    emu::runtime().unseen.clear();
    return emu::runtime().last;
}
static inline cudaError_t cudaGetLastError() {
    cudaError_t error = cudaPeekAtLastError();
    emu::runtime().last = cudaSuccess;
    return error;
}

// Memory.
template <class T>
static inline cudaError_t cudaMalloc(T** to, size_t bytes, EMU_LINE) {
    return EMU_FAILS(emu::take((void**)to, bytes, emu::Home::DEVICE, line));
}
static inline cudaError_t cudaFree(void* at, EMU_LINE) { return EMU_FAILS(emu::give_back(at, false)); }
template <class T>
static inline cudaError_t cudaMallocAsync(T** to, size_t bytes, cudaStream_t, EMU_LINE) {
    return EMU_FAILS(emu::take((void**)to, bytes, emu::Home::DEVICE, line));
}
static inline cudaError_t cudaFreeAsync(void* at, cudaStream_t, EMU_LINE) { return EMU_FAILS(emu::give_back(at, false)); }
template <class T>
static inline cudaError_t cudaMallocHost(T** to, size_t bytes, unsigned = 0, EMU_LINE) {
    return EMU_FAILS(emu::take((void**)to, bytes, emu::Home::PINNED, line));
}
template <class T>
static inline cudaError_t cudaHostAlloc(T** to, size_t bytes, unsigned, EMU_LINE) {
    return EMU_FAILS(emu::take((void**)to, bytes, emu::Home::PINNED, line));
}
static inline cudaError_t cudaFreeHost(void* at, EMU_LINE) { return EMU_FAILS(emu::give_back(at, true)); }
template <class T>
static inline cudaError_t cudaHostGetDevicePointer(T** to, void* at, unsigned, EMU_LINE) {
    if (!to || !emu::holder(at, 0)) return EMU_FAILS(cudaErrorInvalidValue);
    *to = (T*)at;
    return cudaSuccess;
}
template <class T>
static inline cudaError_t cudaMallocManaged(T** to, size_t bytes, unsigned = cudaMemAttachGlobal, EMU_LINE) {
    return EMU_FAILS(emu::take((void**)to, bytes, emu::Home::MANAGED, line));
}
template <class T>
static inline cudaError_t cudaMallocPitch(T** to, size_t* pitch, size_t width, size_t rows, EMU_LINE) {
    if (!pitch) return EMU_FAILS(cudaErrorInvalidValue);
    *pitch = (width + 511) / 512 * 512;
    return EMU_FAILS(emu::take((void**)to, *pitch * rows, emu::Home::DEVICE, line));
}
static inline cudaError_t cudaMemGetInfo(size_t* left, size_t* total) {
    *total = emu::runtime().memory;
    *left = *total - emu::runtime().used;
    return cudaSuccess;
}
static inline cudaError_t cudaMemset(void* at, int value, size_t bytes, EMU_LINE) {
    return EMU_FAILS(emu::set_rows(at, bytes, value, bytes, 1));
}
static inline cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t = 0, EMU_LINE) {
    return EMU_FAILS(emu::set_rows(at, bytes, value, bytes, 1));
}
static inline cudaError_t cudaMemset2D(void* at, size_t pitch, int value, size_t width, size_t rows, EMU_LINE) {
    return EMU_FAILS(emu::set_rows(at, pitch, value, width, rows));
}
static inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, EMU_LINE) {
    return EMU_FAILS(emu::copy_rows(to, bytes, from, bytes, bytes, 1, kind));
}
static inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t = 0,
                                          EMU_LINE) {
    return EMU_FAILS(emu::copy_rows(to, bytes, from, bytes, bytes, 1, kind));
}
static inline cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                       size_t rows, cudaMemcpyKind kind, EMU_LINE) {
    return EMU_FAILS(emu::copy_rows(to, to_pitch, from, from_pitch, width, rows, kind));
}
static inline cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                            size_t rows, cudaMemcpyKind kind, cudaStream_t = 0, EMU_LINE) {
    return EMU_FAILS(emu::copy_rows(to, to_pitch, from, from_pitch, width, rows, kind));
}
template <class T>
static inline cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, size_t bytes, size_t offset = 0,
                                             cudaMemcpyKind kind = cudaMemcpyHostToDevice, EMU_LINE) {
    char* at = (char*)&symbol + offset;
    if (!emu::symbol_of(&symbol, 1)) return EMU_FAILS(cudaErrorInvalidSymbol);
    return EMU_FAILS(emu::copy_rows(at, bytes, from, bytes, bytes, 1, kind));
}
template <class T>
static inline cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, size_t bytes, size_t offset,
                                                  cudaMemcpyKind kind, cudaStream_t = 0, EMU_LINE) {
    return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind, line);
}
template <class T>
static inline cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                                               cudaMemcpyKind kind = cudaMemcpyDeviceToHost, EMU_LINE) {
    if (!emu::symbol_of(&symbol, 1)) return EMU_FAILS(cudaErrorInvalidSymbol);
    return EMU_FAILS(emu::copy_rows(to, bytes, (const char*)&symbol + offset, bytes, bytes, 1, kind));
}
template <class T, class S>
static inline cudaError_t cudaGetSymbolAddress(T** to, const S& symbol, EMU_LINE) {
    if (!to || !emu::symbol_of(&symbol, 1)) return EMU_FAILS(cudaErrorInvalidSymbol);
    *to = (T*)(void*)&symbol;
    return cudaSuccess;
}
template <class S>
static inline cudaError_t cudaGetSymbolSize(size_t* bytes, const S& symbol, EMU_LINE) {
    if (!bytes || !emu::symbol_of(&symbol, 1)) return EMU_FAILS(cudaErrorInvalidSymbol);
    *bytes = sizeof symbol;
    return cudaSuccess;
}
static inline cudaError_t cudaMemPrefetchAsync(const void* at, size_t bytes, int, cudaStream_t = 0, EMU_LINE) {
    emu::Piece* piece = emu::holder(at, bytes);
    return EMU_FAILS(piece && piece->home == emu::Home::MANAGED ? cudaSuccess : cudaErrorInvalidValue);
}

// Launches.
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9,
};
enum cudaFuncCache {
    cudaFuncCachePreferNone = 0,
    cudaFuncCachePreferShared = 1,
    cudaFuncCachePreferL1 = 2,
    cudaFuncCachePreferEqual = 3,
};
template <class... A>
static inline cudaError_t cudaFuncSetAttribute(void (*kernel)(A...), cudaFuncAttribute which, int value, EMU_LINE) {
    if (which != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || value > (int)emu::SHARED) return EMU_FAILS(cudaErrorInvalidValue);
    emu::runtime().asked[(const void*)kernel] = (size_t)value;
    return cudaSuccess;
}
template <class... A>
static inline cudaError_t cudaFuncSetCacheConfig(void (*)(A...), cudaFuncCache) { return cudaSuccess; }
static inline cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
template <class... A>
static inline cudaError_t cudaLaunchKernel(void (*kernel)(A...), dim3 grid, dim3 block, void** arguments, size_t shared = 0,
                                           cudaStream_t = 0, EMU_LINE) {
    cudaError_t before = emu::runtime().last;
    emu::runtime().last = cudaSuccess;
    emu::Plain<A...> plain = emu::launch_of(line, "that cudaLaunchKernel starts", emu::configured(grid, block, shared), kernel);
    emu::unpack(plain, arguments, typename emu::Count<sizeof...(A)>::type());
    cudaError_t error = emu::runtime().last;
    if (!error) emu::runtime().last = before;
    return error;
}

// Waiting, streams and events: all work is done when its call returns.
static inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
static inline cudaError_t cudaThreadSynchronize() { return cudaSuccess; }
static inline cudaError_t cudaThreadExit() { return cudaSuccess; }
static inline cudaError_t cudaDeviceReset() { return cudaSuccess; }
static inline cudaError_t cudaProfilerStart() { return cudaSuccess; }
static inline cudaError_t cudaProfilerStop() { return cudaSuccess; }
static inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    *stream = new emu::Stream;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
static inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) { return cudaStreamCreate(stream); }
static inline cudaError_t cudaStreamDestroy(cudaStream_t stream, EMU_LINE) {
    if (!stream) return EMU_FAILS(cudaErrorInvalidResourceHandle);
    delete stream;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
static inline cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
static inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) { return cudaSuccess; }
static inline cudaError_t cudaLaunchHostFunc(cudaStream_t, void (*function)(void*), void* data) {
    function(data);
    return cudaSuccess;
}
static inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
    *event = new emu::Event;
    return cudaSuccess;
}
static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
static inline cudaError_t cudaEventDestroy(cudaEvent_t event, EMU_LINE) {
    if (!event) return EMU_FAILS(cudaErrorInvalidResourceHandle);
    delete event;
    return cudaSuccess;
}
static inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t = 0, EMU_LINE) {
    if (!event) return EMU_FAILS(cudaErrorInvalidResourceHandle);
    event->time = std::chrono::steady_clock::now();
    event->recorded = true;
    return cudaSuccess;
}
static inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
static inline cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
static inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to, EMU_LINE) {
    if (!milliseconds || !from || !to || !from->recorded || !to->recorded) return EMU_FAILS(cudaErrorInvalidResourceHandle);
    *milliseconds = std::chrono::duration<float, std::milli>(to->time - from->time).count();
    return cudaSuccess;
}

// The device: one, with the limits of an H100 except for its memory.
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlock, memPitch, totalConstMem, textureAlignment, texturePitchAlignment;
    size_t sharedMemPerMultiprocessor, sharedMemPerBlockOptin, reservedSharedMemPerBlock;
    int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate, major, minor;
    int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory, computeMode;
    int maxTexture1D, maxTexture2D[2], maxTexture3D[3], concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID;
    int tccDriver, asyncEngineCount, unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize;
    int maxThreadsPerMultiProcessor, streamPrioritiesSupported, regsPerMultiprocessor, managedMemory, isMultiGpuBoard;
    int concurrentManagedAccess, pageableMemoryAccess, cooperativeLaunch, maxBlocksPerMultiProcessor;
};
enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrClockRate = 13,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
    cudaDevAttrCooperativeLaunch = 95,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
};
static inline cudaError_t cudaGetDeviceCount(int* count) {
    *count = 1;
    return cudaSuccess;
}
static inline cudaError_t cudaSetDevice(int device, EMU_LINE) {
    return EMU_FAILS(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
static inline cudaError_t cudaGetDevice(int* device) {
    *device = 0;
    return cudaSuccess;
}
static inline cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
static inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device, EMU_LINE) {
    if (device != 0) return EMU_FAILS(cudaErrorInvalidDevice);
    *p = cudaDeviceProp{};
    snprintf(p->name, sizeof p->name, "Emulated GPU");
    p->totalGlobalMem = emu::runtime().memory;
    p->sharedMemPerBlock = emu::SHARED_UNASKED;
    p->sharedMemPerBlockOptin = emu::SHARED;
    p->sharedMemPerMultiprocessor = 228 << 10;
    p->reservedSharedMemPerBlock = 1024;
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->warpSize = 32;
    p->memPitch = 0x7fffffff;
    p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 0x7fffffff;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->clockRate = 1980000;
    p->totalConstMem = 65536;
    p->major = 9;
    p->textureAlignment = 512;
    p->texturePitchAlignment = 32;
    p->deviceOverlap = p->asyncEngineCount = p->canMapHostMemory = p->concurrentKernels = p->unifiedAddressing = 1;
    p->managedMemory = p->concurrentManagedAccess = 1;
    p->multiProcessorCount = 132;
    p->maxThreadsPerMultiProcessor = 2048;
    p->maxBlocksPerMultiProcessor = 32;
    p->l2CacheSize = 50 << 20;
    p->memoryClockRate = 2619000;
    p->memoryBusWidth = 5120;
    p->maxTexture1D = p->maxTexture2D[0] = 131072;
    p->maxTexture2D[1] = 65536;
    p->maxTexture3D[0] = p->maxTexture3D[1] = p->maxTexture3D[2] = 16384;
    return cudaSuccess;
}
static inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device, EMU_LINE) {
    cudaDeviceProp p;
    if (cudaGetDeviceProperties(&p, device, line)) return cudaErrorInvalidDevice;
    switch (which) {
        case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; return cudaSuccess;
        case cudaDevAttrMaxSharedMemoryPerBlock: *value = (int)p.sharedMemPerBlock; return cudaSuccess;
        case cudaDevAttrWarpSize: *value = p.warpSize; return cudaSuccess;
        case cudaDevAttrClockRate: *value = p.clockRate; return cudaSuccess;
        case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; return cudaSuccess;
        case cudaDevAttrMaxThreadsPerMultiProcessor: *value = p.maxThreadsPerMultiProcessor; return cudaSuccess;
        case cudaDevAttrComputeCapabilityMajor: *value = p.major; return cudaSuccess;
        case cudaDevAttrComputeCapabilityMinor: *value = p.minor; return cudaSuccess;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = (int)p.sharedMemPerMultiprocessor; return cudaSuccess;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)p.sharedMemPerBlockOptin; return cudaSuccess;
        case cudaDevAttrCooperativeLaunch: *value = 0; return cudaSuccess;
    }
    return EMU_FAILS(cudaErrorInvalidValue);
}
static inline cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}
static inline cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }
