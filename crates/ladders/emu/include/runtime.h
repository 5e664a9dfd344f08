// The part of CUDA's runtime that whole programs call, for programs that run in the emulator: memory, copies,
// launches, errors, streams, events and properties. arrays.h has textures.
//
// Memory of the device lies in pages of its own. The host may touch them only during launches and copies: at all
// other times they are protected, and whoever touches them is told. Each call is done when it returns.

namespace emu {
struct Stream {};
struct Event {
    std::chrono::steady_clock::time_point time;
    bool recorded = false;
};
}  // namespace emu
typedef emu::Stream* cudaStream_t;
typedef emu::Event* cudaEvent_t;

#define EMU_ERRORS(X)                                                                                                  \
    X(cudaSuccess, 0, "no error")                                                                                      \
    X(cudaErrorInvalidValue, 1, "invalid argument")                                                                    \
    X(cudaErrorMemoryAllocation, 2, "out of memory")                                                                   \
    X(cudaErrorInitializationError, 3, "initialization error")                                                         \
    X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                                              \
    X(cudaErrorInvalidPitchValue, 12, "invalid pitch argument")                                                        \
    X(cudaErrorInvalidSymbol, 13, "invalid device symbol")                                                             \
    X(cudaErrorInvalidDevicePointer, 17, "invalid device pointer")                                                     \
    X(cudaErrorInvalidTexture, 18, "invalid texture reference")                                                        \
    X(cudaErrorInvalidChannelDescriptor, 20, "invalid channel descriptor")                                             \
    X(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                                        \
    X(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                                                   \
    X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                                                    \
    X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                                           \
    X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                                                  \
    X(cudaErrorNotReady, 600, "device not ready")                                                                      \
    X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")                                        \
    X(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch")                                   \
    X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                                                       \
    X(cudaErrorNotSupported, 801, "operation not supported")                                                           \
    X(cudaErrorUnknown, 999, "unknown error")
#define EMU_ERROR(NAME, NUMBER, TEXT) NAME = NUMBER,
enum cudaError { EMU_ERRORS(EMU_ERROR) };
#undef EMU_ERROR
typedef cudaError cudaError_t;
#define EMU_ERROR(NAME, NUMBER, TEXT) case NUMBER: return TEXT;
static inline const char* cudaGetErrorString(cudaError_t error) {
    switch ((int)error) { EMU_ERRORS(EMU_ERROR) }
    return "unrecognized error code";
}
#undef EMU_ERROR
#define EMU_ERROR(NAME, NUMBER, TEXT) case NUMBER: return #NAME;
static inline const char* cudaGetErrorName(cudaError_t error) {
    switch ((int)error) { EMU_ERRORS(EMU_ERROR) }
    return "unrecognized error code";
}
#undef EMU_ERROR
#undef EMU_ERRORS

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4,
};
#define CUDART_VERSION 12000
#define cudaHostAllocDefault 0
#define cudaHostAllocPortable 1
#define cudaHostAllocMapped 2
#define cudaHostAllocWriteCombined 4
#define cudaMemAttachGlobal 1
#define cudaMemAttachHost 2
#define cudaStreamDefault 0
#define cudaStreamNonBlocking 1
#define cudaEventDefault 0
#define cudaEventBlockingSync 1
#define cudaEventDisableTiming 2
#define cudaDeviceScheduleAuto 0
#define cudaDeviceScheduleSpin 1
#define cudaDeviceScheduleBlockingSync 4
#define cudaDeviceMapHost 8
#define cudaCpuDeviceId (-1)

namespace emu {
enum : size_t { PAGE = 4096, APART = 1 << 20, ALIGNED = 256, MOST_FREED = 4096, SHARED_UNASKED = 48 << 10 };
enum class Home : uint8_t { DEVICE, PINNED, MANAGED };

// Memory that a call gave: `map` begins the pages, which have `APART` bytes without access before and behind them.
struct Piece {
    unsigned char *map, *begin;
    size_t pages, bytes;
    int line;
    Home home;
    bool freed;
    // Which bytes hold values, where this is looked at.
    std::vector<uint8_t> written;
};
struct Symbol {
    const char* name;
    const void* begin;
    size_t bytes;
};

// Failures that a program is told of at its end.
enum : size_t { MOST_UNSEEN = 8 };

struct Runtime {
    // By the first byte of the pages.
    std::map<uintptr_t, Piece> pieces;
    std::vector<uintptr_t> freed;
    std::vector<Symbol> symbols;
    std::map<const void*, size_t> asked;  // dynamic shared memory by kernel
    std::vector<Workspace*> idle;
    std::recursive_mutex lock;
    size_t used = 0, memory = (size_t)8 << 30;
    cudaError_t last = cudaSuccess;
    // What failed and was not asked for.
    std::vector<std::string> unseen;
    unsigned threads = 1, opened = 0;
    int report = -1;
};
// Never destroyed: programs call it until they end.
static EMU_PLUMBING Runtime& runtime() {
    static Runtime* one = new Runtime;
    return *one;
}
// The launch that this thread of the host works on.
static thread_local const char* launched;
static thread_local int launched_line;

// Writes a line for the program that started this one, which replaces {array LINE} and {place CODES}.
static EMU_PLUMBING void tell(const char* kind, const char* text) {
    char line[2 * MESSAGE];
    int n = snprintf(line, sizeof line, "%s\t%s\n", kind, text);
    n = n < (int)sizeof line ? n : (int)sizeof line - 1;
    for (int i = 0; i < n - 1; i++) {
        if (line[i] == '\n') line[i] = '\x1f';
    }
    line[n - 1] = '\n';
    int to = runtime().report < 0 ? 2 : runtime().report;
    if (write(to, line, (size_t)n) < 0) return;
}
[[noreturn]] static EMU_PLUMBING void give_up(const char* text) {
    static int once;
    if (__atomic_exchange_n(&once, 1, __ATOMIC_SEQ_CST)) for (;;) pause();
    tell("failed", text);
    fflush(stdout);
    _exit(1);
}
[[noreturn]] static __attribute__((format(printf, 1, 2))) void give_up_with(const char* form, ...) {
    char text[MESSAGE + 400];
    va_list list;
    va_start(list, form);
    vsnprintf(text, sizeof text, form, list);
    va_end(list);
    give_up(text);
}

extern "C" {
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));
}
// A place in the program's own code as the parent looks it up; 0 elsewhere.
static EMU_PLUMBING unsigned code_at(const void* at) {
    return at >= (const void*)__ehdr_start && at < (const void*)_end ? (unsigned)((const char*)at - __ehdr_start) : 0;
}

// The piece whose pages, or whose gaps beside them, hold an address.
static EMU_PLUMBING Piece* near(const void* at) {
    auto& pieces = runtime().pieces;
    auto after = pieces.upper_bound((uintptr_t)at + APART);
    if (after == pieces.begin()) return nullptr;
    Piece& piece = (--after)->second;
    return (uintptr_t)at < (uintptr_t)piece.map + piece.pages + APART ? &piece : nullptr;
}
// The living piece that holds these bytes.
static EMU_PLUMBING Piece* holder(const void* at, size_t bytes) {
    Piece* piece = near(at);
    if (!piece || piece->freed || (const unsigned char*)at < piece->begin) return nullptr;
    size_t from = (size_t)((const unsigned char*)at - piece->begin);
    return from <= piece->bytes && bytes <= piece->bytes - from ? piece : nullptr;
}
static EMU_PLUMBING const Symbol* symbol_of(const void* at, size_t bytes) {
    for (const Symbol& s : runtime().symbols) {
        if (at >= s.begin && (const char*)at + bytes <= (const char*)s.begin + s.bytes) return &s;
    }
    return nullptr;
}
static EMU_PLUMBING bool on_device(const void* at) {
    Piece* piece = near(at);
    return piece ? piece->home == Home::DEVICE : symbol_of(at, 1) != nullptr;
}

static EMU_PLUMBING void protect(int how) {
    for (auto& entry : runtime().pieces) {
        const Piece& piece = entry.second;
        if (piece.home == Home::DEVICE && !piece.freed) mprotect(piece.map, piece.pages, how);
    }
}
// Lets this thread, and those that it waits for, touch the device's memory.
struct Opened {
    std::lock_guard<std::recursive_mutex> guard;
    Opened() : guard(runtime().lock) {
        if (runtime().opened++ == 0) protect(PROT_READ | PROT_WRITE);
    }
    ~Opened() {
        if (--runtime().opened == 0) protect(PROT_NONE);
    }
};

// Bytes that no array has, before and behind it in its pages.
static constexpr unsigned char BESIDE = 0xA7;
static EMU_PLUMBING const char* damage(const Piece& piece) {
    static thread_local char text[200];
    const unsigned char *end = piece.begin + piece.bytes, *last = piece.map + piece.pages;
    for (const unsigned char* at = end; at < last; at++) {
        if (*at == BESIDE) continue;
        snprintf(text, sizeof text, "wrote past the end of {array %d} of %zu bytes (--check names the line)", piece.line,
                 piece.bytes);
        return text;
    }
    for (const unsigned char* at = piece.begin; at-- > piece.map;) {
        if (*at == BESIDE) continue;
        snprintf(text, sizeof text, "wrote %zu bytes before the beginning of {array %d} of %zu bytes",
                 (size_t)(piece.begin - at), piece.line, piece.bytes);
        return text;
    }
    return nullptr;
}

static cudaError_t failed(cudaError_t error, int line, const char* what) {
    Runtime& r = runtime();
    if (error == cudaSuccess) return error;
    r.last = error;
    char text[300];
    snprintf(text, sizeof text, "line %d: %s: %s", line, what, cudaGetErrorString(error));
    if (r.unseen.size() < MOST_UNSEEN) r.unseen.push_back(text);
    return error;
}
#define EMU_FAILS(error) emu::failed((error), line, __func__)

static cudaError_t take(void** to, size_t bytes, Home home, int line) {
    Runtime& r = runtime();
    std::lock_guard<std::recursive_mutex> guard(r.lock);
    if (!to) return cudaErrorInvalidValue;
    *to = nullptr;
    if (bytes == 0) return cudaSuccess;
    if (bytes > r.memory || (home == Home::DEVICE && r.used + bytes > r.memory)) return cudaErrorMemoryAllocation;
    size_t rounded = (bytes + ALIGNED - 1) / ALIGNED * ALIGNED, pages = (rounded + PAGE - 1) / PAGE * PAGE;
    void* map = mmap(nullptr, pages + 2 * APART, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) return cudaErrorMemoryAllocation;
    unsigned char* first = (unsigned char*)map + APART;
    if (mprotect(first, pages, PROT_READ | PROT_WRITE) != 0) {
        munmap(map, pages + 2 * APART);
        return cudaErrorMemoryAllocation;
    }
    // As near to the end of its pages as its alignment allows.
    Piece piece{first, first + pages - rounded, pages, bytes, line, home, false, {}};
    memset(first, BESIDE, (size_t)(piece.begin - first));
    // Nothing has been written: NaN as a number.
    memset(piece.begin, 0xFF, bytes);
    memset(piece.begin + bytes, BESIDE, rounded - bytes);
#ifdef EMU_CHECK
    if (home == Home::DEVICE) piece.written.assign(bytes, 0);
#endif
    if (home == Home::DEVICE) {
        r.used += bytes;
        if (r.opened == 0) mprotect(first, pages, PROT_NONE);
    }
    *to = piece.begin;
    r.pieces.emplace((uintptr_t)first, std::move(piece));
    return cudaSuccess;
}

static cudaError_t give_back(void* at, bool host) {
    Runtime& r = runtime();
    std::lock_guard<std::recursive_mutex> guard(r.lock);
    if (!at) return cudaSuccess;
    Piece* piece = near(at);
    if (!piece || piece->freed || piece->begin != at || (piece->home == Home::PINNED) != host) return cudaErrorInvalidValue;
    if (piece->home == Home::DEVICE) r.used -= piece->bytes;
    piece->freed = true;
    piece->written = {};
    // The addresses stay taken, so that a later use is seen; the memory goes back.
    mmap(piece->map, piece->pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    r.freed.push_back((uintptr_t)piece->map);
    if (r.freed.size() > MOST_FREED) {
        Piece& oldest = r.pieces[r.freed.front()];
        munmap(oldest.map - APART, oldest.pages + 2 * APART);
        r.pieces.erase(r.freed.front());
        r.freed.erase(r.freed.begin());
    }
    return cudaSuccess;
}

// Whether bytes may stand at an end of a copy. A device's end lies in one array or variable.
static cudaError_t end_of_copy(const void* at, size_t bytes, bool device, bool any) {
    if (!at) return cudaErrorInvalidValue;
    bool is_device = on_device(at);
    Piece* piece = near(at);
    bool both = piece && piece->home != Home::DEVICE;
    if (!any && !both && is_device != device) return cudaErrorInvalidValue;
    if ((is_device || both) && !holder(at, bytes) && !symbol_of(at, bytes)) return cudaErrorInvalidValue;
    return cudaSuccess;
}
static void note_written(void* at, size_t bytes) {
#ifdef EMU_CHECK
    Piece* piece = holder(at, bytes);
    if (piece && !piece->written.empty()) memset(&piece->written[(unsigned char*)at - piece->begin], 1, bytes);
#endif
}
static void note_copied(void* to, const void* from, size_t bytes) {
    note_written(to, bytes);
#ifdef EMU_CHECK
    Piece *a = holder(from, bytes), *b = holder(to, bytes);
    if (!a || !b || a->written.empty() || b->written.empty()) return;
    memcpy(&b->written[(unsigned char*)to - b->begin], &a->written[(unsigned char*)from - a->begin], bytes);
#endif
}
// Rows of `width` bytes; the distances of rows may be longer.
static cudaError_t copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t rows,
                             cudaMemcpyKind kind) {
    if (width == 0 || rows == 0) return cudaSuccess;
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
    if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
    Opened opened;
    bool any = kind == cudaMemcpyDefault;
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    cudaError_t wrong = end_of_copy(to, (rows - 1) * to_pitch + width, to_device, any);
    if (!wrong) wrong = end_of_copy(from, (rows - 1) * from_pitch + width, from_device, any);
    if (wrong) return wrong;
    for (size_t row = 0; row < rows; row++) {
        char* to_row = (char*)to + row * to_pitch;
        const char* from_row = (const char*)from + row * from_pitch;
        memmove(to_row, from_row, width);
        note_copied(to_row, from_row, width);
    }
    return cudaSuccess;
}
static cudaError_t set_rows(void* at, size_t pitch, int value, size_t width, size_t rows) {
    if (width == 0 || rows == 0) return cudaSuccess;
    Opened opened;
    if (width > pitch || end_of_copy(at, (rows - 1) * pitch + width, true, true) || (!near(at) && !symbol_of(at, 1)))
        return cudaErrorInvalidValue;
    for (size_t row = 0; row < rows; row++) {
        memset((char*)at + row * pitch, value, width);
        note_written((char*)at + row * pitch, width);
    }
    return cudaSuccess;
}

// A variable of the device.
struct Registered {
    Registered(const char* name, const void* at, size_t bytes) { runtime().symbols.push_back(Symbol{name, at, bytes}); }
};

// What stands between <<< and >>>.
struct Configuration {
    dim3 grid, block;
    size_t shared;
};
static inline Configuration configured(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t = nullptr) {
    return Configuration{grid, block, shared};
}
struct Site {
    int line;
    const char* kernel;
    Configuration configuration;
};
// An argument that is a pointer to memory.
template <class T>
static EMU_PLUMBING const void* pointer_of(const T& value) {
    if constexpr (std::is_pointer_v<T>) {
        if constexpr (!std::is_function_v<std::remove_pointer_t<T>>) return (const void*)value;
    }
    return nullptr;
}

// Set by the program's own table: pointers to dynamic shared memory that stand outside functions.
static void (*outer_dynamic)(Workspace*);

#ifdef EMU_CHECK
struct Range {
    uint64_t begin, end;
    uint8_t* written;
};
struct Finding {
    uint32_t fault, array;
    uint64_t at, begin, end;
    const char* name;
    uint32_t size, code, other_code, block, other_block;
    uint16_t thread, other_thread;
    uint8_t kind, other_kind, pad[2];
};
// As in checking.cc.
struct Checking {
    void (*begin)(const Range*, uint32_t);
    const Finding* (*end)(uint32_t*, uint32_t*);
};
extern "C" const Checking emu_checking;
// Nothing but kernels tells of accesses in between.
static EMU_PLUMBING const Finding* run_checked(const Range* ranges, uint32_t count, Workspace* w, void (*call)(void**),
                                               void** arguments, const Launch* launch, char* message, uint32_t* found,
                                               uint32_t* large) {
    uint64_t next = 0;
    int stop = 0;
    emu_checking.begin(ranges, count);
    run_blocks(w, call, nullptr, arguments, launch, &next, &stop, message);
    return emu_checking.end(found, large);
}
#endif

// Whether a launch is possible at all.
static cudaError_t possible(const Site& site, const void* kernel, char* why, size_t room) {
    const dim3 &g = site.configuration.grid, &b = site.configuration.block;
    uint64_t threads = (uint64_t)b.x * b.y * b.z;
    if (b.x > 1024 || b.y > 1024 || b.z > 64 || threads > 1024 || threads == 0) {
        snprintf(why, room, "a block of %u x %u x %u threads: 1 to 1024 are possible, 64 along z", b.x, b.y, b.z);
        return cudaErrorInvalidConfiguration;
    }
    if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > 0x7fffffff || g.y > 65535 || g.z > 65535) {
        snprintf(why, room, "a grid of %u x %u x %u blocks: 1 to 2147483647 x 65535 x 65535 are possible", g.x, g.y, g.z);
        return cudaErrorInvalidConfiguration;
    }
    size_t shared = site.configuration.shared, most = SHARED_UNASKED;
    for (const auto& asked : runtime().asked) {
        // Which form of a template its arguments choose is not known here.
        if ((!kernel || asked.first == kernel) && asked.second > most) most = asked.second;
    }
    if (shared > most) {
        snprintf(why, room,
                 "%zu bytes of dynamic shared memory: at most %zu, or as cudaFuncSetAttribute with "
                 "cudaFuncAttributeMaxDynamicSharedMemorySize asked for",
                 shared, most);
        return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

static void run(const Site& site, const void* kernel, void (*call)(void**), void** arguments, const void* const* given,
                unsigned count) {
    Runtime& r = runtime();
    char why[300];
    if (cudaError_t error = possible(site, kernel, why, sizeof why)) {
        char what[420];
        snprintf(what, sizeof what, "kernel %s with %s", site.kernel, why);
        failed(error, site.line, what);
        return;
    }
    Opened opened;
    for (unsigned i = 0; i < count; i++) {
        const void* at = given[i];
        if (!at) continue;
        Piece* piece = near(at);
        if (piece && piece->freed)
            give_up_with("line %d: kernel %s: argument %u points to {array %d}, which was freed", site.line, site.kernel, i + 1,
                         piece->line);
        if (!piece && !symbol_of(at, 0))
            give_up_with("line %d: kernel %s: argument %u points to memory of the host, which a GPU does not reach: "
                         "cudaMalloc gives memory of the GPU, and cudaMemcpy copies to it",
                         site.line, site.kernel, i + 1);
    }
    const dim3 &g = site.configuration.grid, &b = site.configuration.block;
    uint64_t blocks = (uint64_t)g.x * g.y * g.z;
    const Launch launch{{g.x, g.y, g.z}, {b.x, b.y, b.z}, (uint32_t)site.configuration.shared, 0, blocks};
    char message[MESSAGE] = "";
    auto begin = [&](Workspace* w) {
        launched = site.kernel;
        launched_line = site.line;
        if (outer_dynamic) outer_dynamic(w);
    };
    auto end = [&](Workspace* w) {
        if (w->shared_used > SHARED_UNASKED + site.configuration.shared)
            give_up_with("line %d: kernel %s: %zu bytes of shared arrays, at most %zu: a GPU's compiler refuses this",
                         site.line, site.kernel, w->shared_used - site.configuration.shared, (size_t)SHARED_UNASKED);
        launched = nullptr;
    };
    unsigned workers = r.threads < blocks ? r.threads : (unsigned)blocks;
    while (r.idle.size() < workers) {
        Workspace* w = new_workspace();
        if (!w) give_up("no memory for the emulator's threads");
        r.idle.push_back(w);
    }
#ifdef EMU_CHECK
    std::vector<Range> ranges;
    for (auto& entry : r.pieces) {
        Piece& p = entry.second;
        if (p.freed) continue;
        ranges.push_back(Range{(uint64_t)p.begin, (uint64_t)p.begin + p.bytes, p.written.empty() ? nullptr : p.written.data()});
    }
    for (const Symbol& s : r.symbols) ranges.push_back(Range{(uint64_t)s.begin, (uint64_t)s.begin + s.bytes, nullptr});
    qsort(ranges.data(), ranges.size(), sizeof(Range), [](const void* a, const void* b) {
        uint64_t first = ((const Range*)a)->begin, second = ((const Range*)b)->begin;
        return first < second ? -1 : first > second;
    });
    begin(r.idle[0]);
    uint32_t found = 0, large = 0;
    const Finding* findings = run_checked(ranges.data(), (uint32_t)ranges.size(), r.idle[0], call, arguments, &launch,
                                          message, &found, &large);
    end(r.idle[0]);
    bool outside = false;
    for (uint32_t i = 0; i < found; i++) {
        const Finding& f = findings[i];
        outside |= f.fault == 3;
        Piece* piece = f.array < ranges.size() ? near((const void*)ranges[f.array].begin) : nullptr;
        const Symbol* symbol = f.array < ranges.size() ? symbol_of((const void*)ranges[f.array].begin, 0) : nullptr;
        char line[500];
        snprintf(line, sizeof line,
                 "%s\t%u %u %u\t%u %u %u\t%d\t%s\t%u %llu %llu %llu %u %u %u %u %u %u %u %u %u", site.kernel, g.x, g.y, g.z,
                 b.x, b.y, b.z, piece ? piece->line : 0, f.name ? f.name : symbol ? symbol->name : "", f.fault,
                 (unsigned long long)f.at, (unsigned long long)f.begin, (unsigned long long)f.end, f.size, f.code,
                 f.other_code, f.block, f.other_block, f.thread, f.other_thread, f.kind, f.other_kind);
        tell("finding", line);
    }
    if (large) {
        char line[300];
        snprintf(line, sizeof line, "line %d: kernel %s: an array is too large for races to be looked for", site.line,
                 site.kernel);
        tell("note", line);
    }
    if (outside) {
        fflush(stdout);
        _exit(1);
    }
#else
    uint64_t next = 0;
    int stop = 0;
    std::mutex first;
    auto part = [&](Workspace* w) {
        begin(w);
        char own[MESSAGE] = "";
        if (run_blocks(w, call, nullptr, arguments, &launch, &next, &stop, own)) {
            std::lock_guard<std::mutex> guard(first);
            if (!message[0]) memcpy(message, own, MESSAGE);
        }
        end(w);
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < workers; i++) {
        threads.emplace_back([&, i] {
            static thread_local char stack[1 << 16];
            stack_t alternate{};
            alternate.ss_sp = stack;
            alternate.ss_size = sizeof stack;
            sigaltstack(&alternate, nullptr);
            part(r.idle[i]);
        });
    }
    part(r.idle[0]);
    for (std::thread& thread : threads) thread.join();
#endif
    if (message[0]) give_up_with("line %d: kernel %s: %s", site.line, site.kernel, message);
    for (auto& entry : r.pieces) {
        const Piece& piece = entry.second;
        const char* text = piece.freed ? nullptr : damage(piece);
        if (text) give_up_with("line %d: kernel %s %s", site.line, site.kernel, text);
    }
}

// A launch of a kernel whose arguments come next.
template <class... A>
struct Plain {
    Site site;
    void (*kernel)(A...);
    static EMU_PLUMBING void call(void** p) { call_kernel((void (*)(A...))p[sizeof...(A)], p); }
    void operator()(A... a) const {
        void* arguments[] = {(void*)&a..., (void*)kernel};
        const void* given[] = {pointer_of(a)..., nullptr};
        run(site, (const void*)kernel, call, arguments, given, sizeof...(A));
    }
};
template <class... A>
static inline Plain<A...> launch_of(int line, const char* name, Configuration c, void (*kernel)(A...)) {
    return Plain<A...>{Site{line, name, c}, kernel};
}
template <class... A, unsigned... I>
static inline void unpack(const Plain<A...>& plain, void** p, Numbers<I...>) { plain(*(A*)p[I]...); }
// The same of a template, whose arguments choose the kernel.
template <class F>
struct Chosen {
    Site site;
    F kernel;
    template <class... A, unsigned... I>
    static EMU_PLUMBING void call_numbered(void** p, Numbers<I...>) {
        (*(const F*)p[sizeof...(A)])(*(A*)p[I]...);
    }
    template <class... A>
    static EMU_PLUMBING void call(void** p) {
        call_numbered<A...>(p, typename Count<sizeof...(A)>::type());
    }
    template <class... A>
    void operator()(A... a) const {
        void* arguments[] = {(void*)&a..., (void*)&kernel};
        const void* given[] = {pointer_of(a)..., nullptr};
        run(site, nullptr, call<A...>, arguments, given, sizeof...(A));
    }
};
template <class F>
static inline Chosen<F> launch_by(int line, const char* name, Configuration c, F kernel) {
    return Chosen<F>{Site{line, name, c}, kernel};
}
}  // namespace emu
