// Takes what an instrumented program calls at each memory access and at the beginning of each block of code,
// and keeps it for each thread of the block. It is compiled without instrumentation and linked beside the
// program. Nothing here may be called `__tsan_*` outside the library, because a sanitizer of the host would take
// its place: all is hidden.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// As in record.rs.
enum Kind : uint8_t { BLOCK, READ, WRITE, ATOMIC, TEXEL, BARRIER, WARP, MATCH };

// As in record.rs: added to the size of a volatile access.
enum : uint8_t { FIRM = 0x80 };

// As in Rust. `value` is an address; of a block its calls.
struct Event {
    uint32_t code;
    uint8_t kind, size;
    uint16_t range;
    uint64_t value;
};

// As in Rust: memory that counts.
struct Range {
    uint64_t begin, end;
};

// As in Rust: a `__shared__` array of the block.
struct Shared {
    uint64_t begin, bytes;
    const char* name;
};

// As in Rust: what the instructions of a block of code do, and its last branch, if it has one.
struct Work {
    uint64_t at, branch;
    uint16_t counts[5];
};

enum : unsigned { THREADS = 1024, LANES = 32, ARRAYS = 34, CALLS = 64, SIZES = 257, SHARED_RANGE = 0x8000, NOWHERE = 0xffff };

struct Trace {
    Event* events;
    uint64_t used, capacity;
    uint32_t context, depth;
    uint32_t contexts[CALLS], returns[CALLS];
};

extern "C" {
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const Work __start_emu_blocks[] __attribute__((weak, visibility("hidden")));
extern const Work __stop_emu_blocks[] __attribute__((weak, visibility("hidden")));
static const int nobody = 0;
__attribute__((visibility("hidden"))) const int* emu_count_running = &nobody;
}

static bool on, cut;
// The warps of the block that are kept, and whether the first of them is the next to be left out.
static uint32_t warps;
static bool first_goes;
// How structures of each size are aligned; 0 where no type has that size.
static uint8_t alignments[SIZES];
static const Range* ranges;
static uint32_t range_count, range_last;
static uint64_t left;
static Trace traces[THREADS];
static Shared shared_arrays[ARRAYS];
static uint32_t shared_count, shared_last;

static inline bool kept() { return on && (warps >> (*emu_count_running / LANES) & 1); }

static inline uint32_t range_of(uint64_t at) {
    if (shared_count) {
        const Shared& s = shared_arrays[shared_last];
        if (at - s.begin < s.bytes) return SHARED_RANGE + shared_last;
    }
    if (range_count) {
        const Range& r = ranges[range_last];
        if (at >= r.begin && at < r.end) return range_last;
    }
    for (uint32_t i = 0; i < shared_count; i++) {
        if (at - shared_arrays[i].begin < shared_arrays[i].bytes) return SHARED_RANGE + (shared_last = i);
    }
    uint32_t from = 0, until = range_count;
    while (from < until) {
        uint32_t middle = (from + until) / 2;
        if (at >= ranges[middle].end) {
            from = middle + 1;
        } else {
            until = middle;
        }
    }
    if (from < range_count && at >= ranges[from].begin) return range_last = from;
    return NOWHERE;
}

static inline uint32_t code_of(const void* at) { return (uint32_t)((uint64_t)at - (uint64_t)__ehdr_start); }

// Leaves out every second warp that is kept, from its beginning. Returns false where only one is left.
static bool leave_out() {
    if ((warps & (warps - 1)) == 0) return false;
    bool goes = first_goes;
    first_goes = !first_goes;
    for (uint32_t warp = 0; warp < THREADS / LANES; warp++) {
        if (!(warps >> warp & 1)) continue;
        if (goes) {
            warps &= ~(1u << warp);
            for (Trace* trace = traces + warp * LANES; trace < traces + (warp + 1) * LANES; trace++) {
                left += trace->used;
                free(trace->events);
                *trace = Trace{};
            }
        }
        goes = !goes;
    }
    return true;
}

static void push(Trace& trace, Event event) {
    while (left == 0 && kept()) {
        if (!leave_out()) {
            cut = true;
            on = false;
        }
    }
    if (!kept()) return;
    if (trace.used == trace.capacity) {
        uint64_t more = trace.capacity ? 2 * trace.capacity : 256;
        Event* grown = (Event*)realloc(trace.events, more * sizeof(Event));
        if (!grown) {
            cut = true;
            on = false;
            return;
        }
        trace.events = grown;
        trace.capacity = more;
    }
    left--;
    trace.events[trace.used++] = event;
}

static inline void access(const void* code, const void* at, uint8_t size, Kind kind) {
    if (!kept()) return;
    uint32_t range = range_of((uint64_t)at);
    if (range == NOWHERE) return;
    push(traces[*emu_count_running], Event{code_of(code), kind, size, (uint16_t)range, (uint64_t)at});
}

// A structure is copied by accesses as wide as its type is aligned. Of 8 and 16 bytes the compiler tells as a range
// only where the type is aligned to 4 or less.
static inline void access_range(const void* code, const char* at, uint64_t bytes, Kind kind) {
    uint64_t width = bytes < SIZES && bytes != 8 && bytes != 16 && alignments[bytes] ? alignments[bytes] : 4;
    if (width > 16) width = 16;
    while (width > 1 && (bytes % width || (uint64_t)at % width)) width /= 2;
    for (uint64_t done = 0; done < bytes; done += width) access(code, at + done, (uint8_t)width, kind);
}

// An access of 16 bytes of a type that is aligned to 8 is two.
static inline void access_wide(const void* code, const char* at, Kind kind) {
    if (alignments[16] == 8) {
        access(code, at, 8, kind);
        access(code, at + 8, 8, kind);
    } else {
        access(code, at, 16, kind);
    }
}

#define HERE __builtin_return_address(0)
#define HIDDEN __attribute__((visibility("hidden")))

extern "C" {
#define ONE(NAME, N, KIND)                                                                            \
    HIDDEN void __tsan_##NAME##N(void* at) { access(HERE, at, N, KIND); }                             \
    HIDDEN void __tsan_volatile_##NAME##N(void* at) { access(HERE, at, N | FIRM, KIND); }             \
    HIDDEN void __tsan_unaligned_##NAME##N(void* at) { access_range(HERE, (char*)at, N, KIND); }      \
    HIDDEN void __tsan_unaligned_volatile_##NAME##N(void* at) { access_range(HERE, (char*)at, N, KIND); }
#define ACCESS(N) ONE(read, N, READ) ONE(write, N, WRITE)
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
#undef ONE
#define ONE(NAME, N, KIND)                                                                            \
    HIDDEN void __tsan_##NAME##N(void* at) { access_wide(HERE, (char*)at, KIND); }                    \
    HIDDEN void __tsan_volatile_##NAME##N(void* at) { access_wide(HERE, (char*)at, KIND); }           \
    HIDDEN void __tsan_unaligned_##NAME##N(void* at) { access_range(HERE, (char*)at, N, KIND); }      \
    HIDDEN void __tsan_unaligned_volatile_##NAME##N(void* at) { access_range(HERE, (char*)at, N, KIND); }
ACCESS(16)
HIDDEN void __tsan_read_range(void* at, unsigned long bytes) { access_range(HERE, (char*)at, bytes, READ); }
HIDDEN void __tsan_write_range(void* at, unsigned long bytes) { access_range(HERE, (char*)at, bytes, WRITE); }
HIDDEN void __tsan_vptr_update(void**, void*) {}
HIDDEN void __tsan_init() {}
// Blocks run in order on one thread.
HIDDEN void __tsan_atomic_thread_fence(int) {}

HIDDEN void __sanitizer_cov_trace_pc() {
    if (!kept()) return;
    Trace& trace = traces[*emu_count_running];
    push(trace, Event{code_of(HERE), BLOCK, 0, 0, trace.context});
}

HIDDEN void __tsan_func_entry(void* from) {
    if (!kept()) return;
    Trace& trace = traces[*emu_count_running];
    if (trace.depth < CALLS) {
        trace.contexts[trace.depth] = trace.context;
        trace.returns[trace.depth] = code_of(from);
    }
    trace.depth++;
    // A kernel is called from nowhere.
    if (trace.depth > 1) trace.context = trace.context * 0x9E3779B1u + code_of(from);
}

HIDDEN void __tsan_func_exit() {
    if (!kept()) return;
    Trace& trace = traces[*emu_count_running];
    if (trace.depth == 0) return;
    trace.depth--;
    if (trace.depth >= CALLS || trace.depth == 0) return;
    trace.context = trace.contexts[trace.depth];
    // The rest of the caller is a block of its own: lanes meet there again.
    push(trace, Event{trace.returns[trace.depth], BLOCK, 0, 0, trace.context});
}

HIDDEN void emu_count_atomic(const void* code, const void* at, unsigned size) { access(code, at, (uint8_t)size, ATOMIC); }
HIDDEN void emu_count_texel(const void* code, const void* at, unsigned size) { access(code, at, (uint8_t)size, TEXEL); }
HIDDEN void emu_count_sync(const void* code, unsigned kind) {
    if (!kept()) return;
    push(traces[*emu_count_running], Event{code_of(code), (uint8_t)kind, 0, 0, 0});
}
HIDDEN void emu_count_shared(const void* begin, size_t bytes, const char* name) {
    if (shared_count < ARRAYS) shared_arrays[shared_count++] = Shared{(uint64_t)begin, bytes, name};
}
}  // extern "C"

// From now on events of these warps of a block are kept, at most `most`; where there are more, of fewer warps.
static void start(const Range* all, uint32_t count, uint64_t most, uint32_t which, const uint8_t* aligned) {
    warps = which;
    first_goes = false;
    ranges = all;
    range_count = count;
    range_last = shared_last = shared_count = 0;
    left = most;
    cut = false;
    memcpy(alignments, aligned, SIZES);
    for (Trace& trace : traces) trace.used = trace.context = trace.depth = 0;
    on = true;
}

// Returns the warps that were kept, and whether all of their events were.
static uint32_t stop(int* whole) {
    on = false;
    *whole = !cut;
    return warps;
}

static const Event* events(uint32_t thread, uint64_t* count) {
    *count = traces[thread].used;
    return traces[thread].events;
}

static const Shared* arrays(uint32_t* count) {
    *count = shared_count;
    return shared_arrays;
}

static const Work* blocks(uint64_t* count, uint64_t* base) {
    *count = __start_emu_blocks ? (uint64_t)(__stop_emu_blocks - __start_emu_blocks) : 0;
    *base = (uint64_t)__ehdr_start;
    return __start_emu_blocks;
}

// As in Rust.
struct Counting {
    void (*start)(const Range*, uint32_t, uint64_t, uint32_t, const uint8_t*);
    uint32_t (*stop)(int*);
    const Event* (*events)(uint32_t, uint64_t*);
    const Shared* (*arrays)(uint32_t*);
    const Work* (*blocks)(uint64_t*, uint64_t*);
};
extern "C" __attribute__((visibility("default"))) const Counting emu_counting = {start, stop, events, arrays, blocks};
