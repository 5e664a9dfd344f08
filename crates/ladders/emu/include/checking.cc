// Takes what an instrumented program calls at each memory access, and finds races, accesses outside arrays, and
// reads of what nobody wrote. It is compiled without instrumentation and linked beside the program, as counting.cc.
//
// Two accesses race if one of them writes, not both are atomic or volatile, and nothing orders them. What orders
// them: the program of one thread; a barrier of the block; a barrier or an exchange of a warp for its lanes; a fence
// and an atomic or volatile write, then an atomic or volatile read of the same address and a fence or a barrier.
//
// Each thread has a clock, which goes on where something may order it before others. Each place in memory keeps the
// last accesses, at most two of a kind, with block, thread and clock.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <unordered_map>
#include <vector>

namespace {

// A strong access is atomic or volatile; an atomic one changes what it reads. Volatile accesses to shared memory do not
// order the lanes of a warp, though old programs rely on that: these are `LOCAL`.
enum Kind : uint8_t {
    READS = 0,
    WRITES = 1,
    STRONG = 2,
    THERE = 4,
    CHANGES = 8,
    LOCAL = 16,
    ATOMIC = WRITES | STRONG | CHANGES,
};

// As in Rust: memory that a kernel may use. `written` has a byte for each byte, 0 where nobody wrote; or is null.
struct Range {
    uint64_t begin, end;
    uint8_t* written;
};

// As in Rust.
enum Fault : uint32_t { RACE = 1, SAME_VALUES = 2, OUTSIDE = 3, UNWRITTEN = 4, ENDED = 5 };
enum : uint32_t { SHARED_ARRAY = 0x80000000, NO_ARRAY = 0xffffffff };
struct Finding {
    uint32_t fault, array;
    uint64_t at, begin, end;
    const char* name;
    uint32_t size, code, other_code, block, other_block;
    uint16_t thread, other_thread;
    uint8_t kind, other_kind, pad[2];
};

struct Slot {
    uint32_t block, clock, code;
    uint16_t thread;
    uint8_t kind, pad;
};
enum : unsigned { THREADS = 1024, LANES = 32, ARRAYS = 34, SLOTS = 4, MOST = 64, NEAR = 1 << 26, STACK = 128 << 10 };
enum : uint64_t { MOST_CELLS = 1ull << 25 };
struct Cell {
    Slot slots[SLOTS];
};

// An array with its cells, which are made at the first access.
struct Array {
    uint64_t begin, end;
    uint8_t* written;
    Cell* cells;
    const char* name;
    uint32_t number;
    // A cell is for 1 << shift bytes.
    uint8_t shift;
    bool shared, large;
};

// The releases of an address in order, and how far a thread knows of them.
struct Known {
    uint32_t object, count;
};
typedef std::vector<Known> Set;

// What a thread knew at a fence: of its block all before `base`, of its warp `seen`, of each thread `all`.
struct Snapshot {
    uint32_t clock, base;
    uint32_t seen[LANES];
    const std::vector<uint32_t>* all;
    const Set* others;
    // Whether it is a fence for other blocks too.
    bool wide;
};
struct Release {
    Snapshot snapshot;
    uint32_t block, own;
    uint16_t thread;
};
struct Object {
    std::vector<Release> releases;
    std::unordered_map<uint32_t, std::vector<uint32_t>> of_block;
    // What those who released knew of other addresses.
    const Set* others = nullptr;
};

struct Thread {
    uint32_t clock;
    uint32_t seen[LANES];
    // What is known of releases, and what has been read of them without a fence since.
    const Set *others, *pending;
    bool fenced;
    Snapshot fence;
};

// A barrier with a number: what those told who have come.
struct Meeting {
    std::vector<uint32_t>* clocks;
    const Set* others;
    uint16_t last;
};

}  // namespace

extern "C" {
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));
static const int nobody = 0;
__attribute__((visibility("hidden"))) const int* emu_count_running = &nobody;
// Ends the running thread's block.
__attribute__((visibility("hidden"))) void (*emu_check_fail)(const char*);
// The stack of the running thread.
__attribute__((visibility("hidden"))) const void* emu_check_stack;
}

static bool on;
static std::vector<Array> ranges;
static Array shared_arrays[ARRAYS];
// Those of the present block.
static uint32_t shared_count;
static uint64_t arena, arena_end;
static std::vector<Range> others;
static Thread threads[THREADS];
static uint32_t block, thread_count, base;
static Meeting meetings[16];
static std::vector<Object> objects;
static std::unordered_map<uint64_t, uint32_t> object_of;
static std::vector<Set*> sets;
static std::vector<std::vector<uint32_t>*> vectors;
static Finding findings[MOST];
static uint32_t found;
static uint32_t cached[256];

// A write beside another whose values may be the same: looked at when the write is done.
static struct {
    bool there;
    Finding finding;
    uint8_t before[16];
} doubtful;

static inline uint32_t code_of(const void* at) { return (uint32_t)((uint64_t)at - (uint64_t)__ehdr_start); }

static void keep(const Finding& finding) {
    for (uint32_t i = 0; i < found; i++) {
        Finding& f = findings[i];
        if (f.code != finding.code || f.other_code != finding.other_code) continue;
        if (f.fault == finding.fault) return;
        // A race once is a race.
        if (f.fault == RACE && finding.fault == SAME_VALUES) return;
        if (f.fault == SAME_VALUES && finding.fault == RACE) {
            f = finding;
            return;
        }
    }
    if (found < MOST) findings[found++] = finding;
}

static void look_again() {
    doubtful.there = false;
    Finding& f = doubtful.finding;
    f.fault = memcmp((const void*)f.at, doubtful.before, f.size) == 0 ? SAME_VALUES : RACE;
    keep(f);
}
static inline void settle() {
    if (doubtful.there) look_again();
}

static bool knows(const Set* set, const Slot& slot) {
    if (!set) return false;
    for (const Known& known : *set) {
        const Object& object = objects[known.object];
        auto of = object.of_block.find(slot.block);
        if (of == object.of_block.end()) continue;
        for (auto at = of->second.rbegin(); at != of->second.rend(); ++at) {
            if (*at >= known.count) continue;
            const Release& r = object.releases[*at];
            const Snapshot& s = r.snapshot;
            if (!s.wide && slot.block != block) continue;
            if (slot.clock < s.base) return true;
            if (slot.thread == r.thread && (slot.clock <= s.clock || slot.clock == r.own)) return true;
            if (slot.thread / LANES == r.thread / LANES && slot.clock <= s.seen[slot.thread % LANES]) return true;
            if (s.all && slot.clock <= (*s.all)[slot.thread]) return true;
        }
    }
    return false;
}

static inline bool before(const Thread& t, uint32_t thread, const Slot& slot) {
    if (slot.block == block) {
        if (slot.thread == thread || slot.clock < base) return true;
        if (slot.thread / LANES == thread / LANES && slot.clock <= t.seen[slot.thread % LANES]) return true;
    }
    return knows(t.others, slot);
}

// Both, where one of them is new to the other.
static const Set* joined(const Set* a, const Set* b) {
    if (!b || a == b) return a;
    if (!a) return b;
    Set* both = nullptr;
    for (const Known& known : *b) {
        bool has = false;
        for (const Known& own : both ? *both : *a) has |= own.object == known.object && own.count >= known.count;
        if (has) continue;
        if (!both) sets.push_back(both = new Set(*a));
        bool raised = false;
        for (Known& own : *both) {
            if (own.object == known.object) own.count = known.count, raised = true;
        }
        if (!raised) both->push_back(known);
    }
    return both ? both : a;
}

static void outside(const void* code, uint64_t at, uint32_t bytes, uint8_t kind) {
    Finding f = {};
    f.fault = OUTSIDE;
    f.array = NO_ARRAY;
    f.at = at, f.size = bytes, f.code = code_of(code), f.kind = kind;
    f.block = block, f.thread = (uint16_t)*emu_count_running;
    uint64_t nearest = NEAR;
    auto look = [&](const Array& a) {
        uint64_t far = at < a.begin ? a.begin - at : at + bytes - a.end;
        if (far >= nearest) return;
        nearest = far;
        f.array = a.number, f.begin = a.begin, f.end = a.end, f.name = a.name;
    };
    if (at - arena < arena_end - arena) {
        for (uint32_t i = 0; i < shared_count; i++) look(shared_arrays[i]);
    } else {
        for (const Array& a : ranges) look(a);
    }
    keep(f);
    on = false;
    emu_check_fail("outside");
}

static Array* array_of(uint64_t at, uint32_t code) {
    if (at - arena < arena_end - arena) {
        for (uint32_t i = 0; i < shared_count; i++) {
            if (at >= shared_arrays[i].begin && at < shared_arrays[i].end) return &shared_arrays[i];
        }
        return nullptr;
    }
    uint32_t& last = cached[(code >> 2) % 256];
    if (last < ranges.size() && at >= ranges[last].begin && at < ranges[last].end) return &ranges[last];
    size_t from = 0, until = ranges.size();
    while (from < until) {
        size_t middle = (from + until) / 2;
        if (at >= ranges[middle].end) {
            from = middle + 1;
        } else {
            until = middle;
        }
    }
    if (from < ranges.size() && at >= ranges[from].begin) return &ranges[last = (uint32_t)from];
    return nullptr;
}

// Makes cells that are fine enough for this access; false where they would be too many.
static bool refine(Array& a, uint64_t offset, uint32_t bytes) {
    uint8_t shift = a.cells ? a.shift : 2;
    while (shift && ((offset | bytes) & ((1u << shift) - 1))) shift--;
    if (a.cells && shift == a.shift) return true;
    uint64_t count = ((a.end - a.begin) >> shift) + 1;
    Cell* cells = count <= MOST_CELLS ? (Cell*)calloc(count, sizeof(Cell)) : nullptr;
    if (!cells) {
        free(a.cells);
        a.cells = nullptr;
        a.large = true;
        return false;
    }
    if (a.cells) {
        uint64_t old = ((a.end - a.begin) >> a.shift) + 1;
        unsigned parts = 1u << (a.shift - shift);
        for (uint64_t i = 0; i < old; i++) {
            if (!a.cells[i].slots[0].kind) continue;
            for (unsigned k = 0; k < parts && i * parts + k < count; k++) cells[i * parts + k] = a.cells[i];
        }
        free(a.cells);
    }
    a.cells = cells;
    a.shift = shift;
    return true;
}

static void conflict(const Array& a, const Slot& mine, const Slot& other, uint64_t at, uint32_t bytes) {
    Finding f = {};
    f.fault = RACE, f.array = a.number, f.at = at, f.begin = a.begin, f.end = a.end, f.name = a.name;
    f.size = bytes, f.code = mine.code, f.other_code = other.code, f.block = mine.block, f.other_block = other.block;
    f.thread = mine.thread, f.other_thread = other.thread, f.kind = mine.kind, f.other_kind = other.kind;
    bool plain = !((mine.kind | other.kind) & STRONG);
    if (plain && (mine.kind & other.kind & WRITES) && bytes <= sizeof doubtful.before) {
        doubtful.there = true;
        doubtful.finding = f;
        memcpy(doubtful.before, (const void*)at, bytes);
        return;
    }
    keep(f);
}

static inline bool one_warp(const Slot& a, const Slot& b) {
    return a.block == b.block && a.thread / LANES == b.thread / LANES;
}

static inline void note(Array& a, Cell& cell, const Thread& t, const Slot& mine, uint64_t at, uint32_t bytes) {
    Slot *own = nullptr, *free = nullptr, *old = nullptr, *alike[2] = {};
    unsigned count = 0;
    for (Slot& slot : cell.slots) {
        if (!slot.kind || (a.shared && slot.block != block)) {
            free = &slot;
        } else if (slot.block == block && slot.thread == mine.thread) {
            // A write stands for a read before it, and an access for an earlier one of the same kind.
            if (slot.kind != mine.kind && mine.kind != (WRITES | THERE)) continue;
            if (own) own->kind = 0;
            own = &slot;
        } else if (before(t, mine.thread, slot)) {
            // A read does not stand for a write: others may still race with that.
            bool gone = a.shared && slot.clock < base;
            if (gone || mine.kind & WRITES || !(slot.kind & WRITES)) old = &slot;
        } else {
            bool strong = slot.kind & mine.kind & STRONG;
            if (slot.kind & mine.kind & LOCAL && one_warp(slot, mine)) strong = false;
            if ((slot.kind | mine.kind) & WRITES && !strong) conflict(a, mine, slot, at, bytes);
            if (slot.kind == mine.kind && count < 2) alike[count++] = &slot;
        }
    }
    Slot* place = own ? own : free ? free : old;
    if (!place && count == 2 && one_warp(*alike[0], *alike[1]) && !one_warp(*alike[0], mine)) place = alike[1];
    if (!place && count < 2) place = &cell.slots[SLOTS - 1];
    if (place) *place = mine;
}

static inline bool all_written(const uint8_t* written, uint32_t bytes) {
    uint32_t four;
    if (bytes == 4) {
        memcpy(&four, written, 4);
        return four == 0x01010101;
    }
    bool all = true;
    for (uint32_t i = 0; i < bytes; i++) all &= written[i] != 0;
    return all;
}

// Whether a read of what two other blocks have read, and nobody wrote, has nothing to add.
static inline bool known_read(const Cell& cell, const Thread& t, const Slot& mine) {
    const Slot *a = &cell.slots[0], *b = &cell.slots[1];
    return mine.kind == (READS | THERE) && !t.others && a->kind == mine.kind && b->kind == mine.kind &&
           a->block != mine.block && b->block != mine.block && !one_warp(*a, *b) &&
           !((cell.slots[2].kind | cell.slots[3].kind) & WRITES);
}

static inline void check(const void* pc, const void* where, uint32_t bytes, uint8_t kind) {
    if (!on) return;
    settle();
    uint64_t at = (uint64_t)where;
    if (at - (uint64_t)emu_check_stack < STACK) return;
    uint32_t code = code_of(pc);
    Array* a = array_of(at, code);
    if (!a || at + bytes > a->end) {
        if (!a) {
            if (at >= (uint64_t)__ehdr_start && at < (uint64_t)_end) return;
            for (const Range& other : others) {
                if (at >= other.begin && at < other.end) return;
            }
        }
        outside(pc, at, bytes, kind | THERE);
        return;
    }
    uint32_t thread = (uint32_t)*emu_count_running;
    uint64_t offset = at - a->begin;
    if (a->written) {
        uint8_t* written = a->written + offset;
        if (!(kind & WRITES) || kind & CHANGES) {
            if (!all_written(written, bytes)) {
                Finding f = {};
                f.fault = UNWRITTEN, f.array = a->number, f.at = at, f.begin = a->begin, f.end = a->end;
                f.name = a->name, f.size = bytes, f.code = code, f.block = block, f.thread = (uint16_t)thread;
                f.kind = kind | THERE;
                keep(f);
            }
        }
        if (kind & WRITES) memset(written, 1, bytes);
    }
    if (a->large) return;
    if (!a->cells || ((offset | bytes) & ((1u << a->shift) - 1))) {
        if (!refine(*a, offset, bytes)) return;
    }
    const Thread& t = threads[thread];
    Slot mine = {block, t.clock, code, (uint16_t)thread, (uint8_t)(kind | THERE), 0};
    uint64_t first = offset >> a->shift, last = (offset + bytes - 1) >> a->shift;
    for (uint64_t i = first; i <= last; i++) {
        Cell& cell = a->cells[i];
        Slot& s = cell.slots[0];
        // Once more the same, as in a loop.
        if (s.kind == mine.kind && s.block == block && s.thread == mine.thread && s.clock == mine.clock &&
            !cell.slots[1].kind) {
            s.code = code;
            continue;
        }
        if (a->shared || !known_read(cell, t, mine)) note(*a, cell, t, mine, at, bytes);
    }
}

static inline bool in_arena(const void* at) { return (uint64_t)at - arena < arena_end - arena; }

// Shared memory of another block is other memory.
static inline uint64_t key(uint64_t at) { return in_arena((const void*)at) ? at + block * 0x9E3779B97F4A7C15 : at; }

static void acquire(uint64_t at) {
    if (object_of.empty()) return;
    auto object = object_of.find(key(at));
    if (object == object_of.end()) return;
    Thread& t = threads[*emu_count_running];
    Known known = {object->second, (uint32_t)objects[object->second].releases.size()};
    for (const Set* set : {t.others, t.pending}) {
        if (!set) continue;
        for (const Known& own : *set) {
            if (own.object == known.object && own.count >= known.count) return;
        }
    }
    Set* one = new Set{known};
    sets.push_back(one);
    t.pending = joined(joined(t.pending, one), objects[known.object].others);
}

static void release(uint64_t at) {
    uint32_t thread = (uint32_t)*emu_count_running;
    Thread& t = threads[thread];
    if (!t.fenced) return;
    auto made = object_of.emplace(key(at), (uint32_t)objects.size());
    if (made.second) objects.emplace_back();
    Object& object = objects[made.first->second];
    object.of_block[block].push_back((uint32_t)object.releases.size());
    object.others = joined(object.others, t.fence.others);
    object.releases.push_back(Release{t.fence, block, t.clock, (uint16_t)thread});
}

static inline void strong(const void* pc, const void* at, uint32_t bytes, uint8_t kind) {
    if (!on) return;
    if (!(kind & CHANGES) && in_arena(at)) kind |= LOCAL;
    Thread& t = threads[*emu_count_running];
    // The operation itself goes along with what it tells.
    if (t.fenced && (kind & WRITES)) t.clock++;
    check(pc, at, bytes, kind);
    acquire((uint64_t)at);
    if (kind & WRITES) {
        release((uint64_t)at);
        if (t.fenced) t.clock++;
    }
}

#define HERE __builtin_return_address(0)
#define HIDDEN __attribute__((visibility("hidden")))

extern "C" {
#define ACCESS(N)                                                                                              \
    HIDDEN void __tsan_read##N(void* at) { check(HERE, at, N, READS); }                                        \
    HIDDEN void __tsan_write##N(void* at) { check(HERE, at, N, WRITES); }                                      \
    HIDDEN void __tsan_unaligned_read##N(void* at) { check(HERE, at, N, READS); }                              \
    HIDDEN void __tsan_unaligned_write##N(void* at) { check(HERE, at, N, WRITES); }                            \
    HIDDEN void __tsan_volatile_read##N(void* at) { strong(HERE, at, N, READS | STRONG); }                     \
    HIDDEN void __tsan_volatile_write##N(void* at) { strong(HERE, at, N, WRITES | STRONG); }                   \
    HIDDEN void __tsan_unaligned_volatile_read##N(void* at) { strong(HERE, at, N, READS | STRONG); }           \
    HIDDEN void __tsan_unaligned_volatile_write##N(void* at) { strong(HERE, at, N, WRITES | STRONG); }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
HIDDEN void __tsan_read_range(void* at, unsigned long bytes) { check(HERE, at, (uint32_t)bytes, READS); }
HIDDEN void __tsan_write_range(void* at, unsigned long bytes) { check(HERE, at, (uint32_t)bytes, WRITES); }
HIDDEN void __tsan_vptr_update(void**, void*) {}
HIDDEN void __tsan_init() {}
HIDDEN void __tsan_func_entry(void*) {}
HIDDEN void __tsan_func_exit() {}

HIDDEN void emu_count_atomic(const void* code, const void* at, unsigned size) { strong(code, at, size, ATOMIC); }
HIDDEN void emu_count_texel(const void* code, const void* at, unsigned size) { check(code, at, size, READS); }
HIDDEN void emu_count_sync(const void*, unsigned) {
    if (on) settle();
}

HIDDEN void emu_count_shared(const void* begin, size_t bytes, const char* name) {
    if (!on || shared_count == ARRAYS) return;
    Array& a = shared_arrays[shared_count];
    uint64_t at = (uint64_t)begin;
    if (a.begin != at || a.end != at + bytes) {
        free(a.cells);
        free(a.written);
        a = Array{at, at + bytes, (uint8_t*)malloc(bytes + 1), nullptr, name, SHARED_ARRAY + shared_count, 2, true, false};
    }
    a.name = name;
    if (a.written) memset(a.written, 0, bytes);
    shared_count++;
}

// What stands for pointers to shared memory, and other things of the program beside its arrays.
HIDDEN void emu_check_other(const void* begin, size_t bytes) {
    others.push_back(Range{(uint64_t)begin, (uint64_t)begin + bytes, nullptr});
}

HIDDEN void emu_check_arena(const void* begin, size_t bytes) {
    arena = (uint64_t)begin;
    arena_end = arena + bytes;
}

HIDDEN void emu_check_block(uint64_t number, unsigned count) {
    if (!on) return;
    settle();
    block = (uint32_t)number;
    thread_count = count;
    shared_count = 0;
    base = 1;
    memset(threads, 0, count * sizeof(Thread));
    memset(meetings, 0, sizeof meetings);
    for (unsigned i = 0; i < count; i++) threads[i].clock = 1;
}

// All threads that have not ended came to the barrier at `code`; `ended` is one that has, or negative.
HIDDEN void emu_check_barrier(const void* code, int ended) {
    if (!on) return;
    settle();
    if (ended >= 0) {
        Finding f = {};
        f.fault = ENDED, f.array = NO_ARRAY, f.code = code_of(code), f.block = block, f.thread = (uint16_t)ended;
        keep(f);
    }
    const Set* known = nullptr;
    bool fenced = false;
    for (uint32_t i = 0; i < thread_count; i++) {
        Thread& t = threads[i];
        known = joined(joined(known, t.others), t.pending);
        fenced |= t.fenced;
    }
    if (fenced) {
        // What any thread had made known before is known with what all tell from now on.
        Snapshot all = {};
        std::vector<uint32_t>* of = new std::vector<uint32_t>(thread_count);
        vectors.push_back(of);
        const std::vector<uint32_t>* last = nullptr;
        for (uint32_t i = 0; i < thread_count; i++) {
            Thread& t = threads[i];
            if (!t.fenced) continue;
            const Snapshot& s = t.fence;
            if (s.base > all.base) all.base = s.base;
            if (s.clock > (*of)[i]) (*of)[i] = s.clock;
            uint32_t first = i / LANES * LANES;
            for (uint32_t l = 0; l < LANES && first + l < thread_count; l++) {
                if (s.seen[l] > (*of)[first + l]) (*of)[first + l] = s.seen[l];
            }
            if (s.all && s.all != last) {
                last = s.all;
                for (uint32_t k = 0; k < thread_count; k++) {
                    if ((*last)[k] > (*of)[k]) (*of)[k] = (*last)[k];
                }
            }
            all.others = joined(all.others, s.others);
            all.wide |= s.wide;
        }
        all.all = of;
        for (uint32_t i = 0; i < thread_count; i++) {
            Thread& t = threads[i];
            t.fence = all;
            t.fence.clock = (*of)[i];
            t.fenced = true;
        }
    }
    uint32_t most = 0;
    for (uint32_t i = 0; i < thread_count; i++) most = threads[i].clock > most ? threads[i].clock : most;
    base = most + 1;
    for (uint32_t i = 0; i < thread_count; i++) {
        threads[i].clock = base;
        threads[i].others = known;
        threads[i].pending = nullptr;
    }
}

// These lanes of the warp that begins with thread `first` came to an exchange.
HIDDEN void emu_check_warp(unsigned first, uint32_t lanes) {
    if (!on) return;
    settle();
    uint32_t seen[LANES] = {};
    const Set *known = nullptr, *pending = nullptr;
    bool fenced = false;
    Snapshot fence = {};
    for (unsigned l = 0; l < LANES; l++) {
        if (!(lanes >> l & 1)) continue;
        const Thread& t = threads[first + l];
        for (unsigned k = 0; k < LANES; k++) seen[k] = t.seen[k] > seen[k] ? t.seen[k] : seen[k];
        known = joined(known, t.others);
        pending = joined(pending, t.pending);
        if (!t.fenced) continue;
        fenced = true;
        for (unsigned k = 0; k < LANES; k++) fence.seen[k] = t.fence.seen[k] > fence.seen[k] ? t.fence.seen[k] : fence.seen[k];
        if (t.fence.clock > fence.seen[l]) fence.seen[l] = t.fence.clock;
        if (t.fence.base > fence.base) fence.base = t.fence.base;
        if (t.fence.all) fence.all = t.fence.all;
        fence.others = joined(fence.others, t.fence.others);
        fence.wide |= t.fence.wide;
    }
    for (unsigned l = 0; l < LANES; l++) {
        if (lanes >> l & 1 && threads[first + l].clock > seen[l]) seen[l] = threads[first + l].clock;
    }
    for (unsigned l = 0; l < LANES; l++) {
        if (!(lanes >> l & 1)) continue;
        Thread& t = threads[first + l];
        memcpy(t.seen, seen, sizeof seen);
        t.clock++;
        t.others = known;
        t.pending = pending;
        if (fenced) {
            fence.clock = t.fenced ? t.fence.clock : 0;
            t.fence = fence;
            t.fenced = true;
        }
    }
}

// The running thread comes to a barrier with a number. What it did before is known to those who wait there.
HIDDEN void emu_check_comes(unsigned number) {
    if (!on) return;
    settle();
    uint32_t thread = (uint32_t)*emu_count_running;
    Thread& t = threads[thread];
    Meeting& m = meetings[number];
    if (!m.clocks) vectors.push_back(m.clocks = new std::vector<uint32_t>(thread_count));
    t.others = joined(t.others, t.pending);
    t.pending = nullptr;
    m.others = joined(m.others, t.others);
    uint32_t first = thread / LANES * LANES;
    for (uint32_t l = 0; l < LANES && first + l < thread_count; l++) {
        if (t.seen[l] > (*m.clocks)[first + l]) (*m.clocks)[first + l] = t.seen[l];
    }
    (*m.clocks)[thread] = t.clock++;
    m.last = (uint16_t)thread;
}

// All have come to it. The barrier is an address that no array has, and what its threads tell is one release.
HIDDEN void emu_check_numbered(unsigned number, const uint8_t* came, uint8_t waits) {
    if (!on) return;
    settle();
    Meeting& m = meetings[number];
    auto made = object_of.emplace(~(uint64_t)0 - block * (uint64_t)THREADS - number, (uint32_t)objects.size());
    if (made.second) objects.emplace_back();
    Object& object = objects[made.first->second];
    Snapshot all = {};
    all.clock = (*m.clocks)[m.last];
    all.base = base;
    all.all = m.clocks;
    object.of_block[block].push_back((uint32_t)object.releases.size());
    object.releases.push_back(Release{all, block, all.clock, m.last});
    Set* known = new Set{Known{made.first->second, (uint32_t)object.releases.size()}};
    sets.push_back(known);
    const Set* others = joined(m.others, known);
    for (uint32_t i = 0; i < thread_count; i++) {
        if (came[i] == waits) threads[i].others = joined(threads[i].others, others);
    }
    m = Meeting{};
}

HIDDEN void emu_check_fence(bool wide) {
    if (!on) return;
    settle();
    Thread& t = threads[*emu_count_running];
    t.others = joined(t.others, t.pending);
    t.pending = nullptr;
    t.fence.clock = t.clock;
    t.fence.base = base;
    memcpy(t.fence.seen, t.seen, sizeof t.seen);
    t.fence.others = t.others;
    t.fence.wide |= wide;
    t.fenced = true;
    t.clock++;
}
HIDDEN void __tsan_atomic_thread_fence(int) { emu_check_fence(true); }

// Atomic operations of the standard library, which whole programs use.
#define ATOMICS(N, T)                                                                                                  \
    HIDDEN T __tsan_atomic##N##_load(const T* at, int) {                                                               \
        strong(HERE, at, sizeof(T), READS | STRONG);                                                                   \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                                  \
    }                                                                                                                  \
    HIDDEN void __tsan_atomic##N##_store(T* at, T v, int) {                                                            \
        strong(HERE, at, sizeof(T), WRITES | STRONG);                                                                  \
        __atomic_store_n(at, v, __ATOMIC_SEQ_CST);                                                                     \
    }                                                                                                                  \
    HIDDEN bool __tsan_atomic##N##_compare_exchange_strong(T* at, T* seen, T next, int, int) {                         \
        strong(HERE, at, sizeof(T), ATOMIC);                                                                           \
        return __atomic_compare_exchange_n(at, seen, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                 \
    }                                                                                                                  \
    HIDDEN bool __tsan_atomic##N##_compare_exchange_weak(T* at, T* seen, T next, int, int) {                           \
        strong(HERE, at, sizeof(T), ATOMIC);                                                                           \
        return __atomic_compare_exchange_n(at, seen, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                 \
    }                                                                                                                  \
    CHANGE(N, T, exchange, __atomic_exchange_n)                                                                        \
    CHANGE(N, T, fetch_add, __atomic_fetch_add)                                                                        \
    CHANGE(N, T, fetch_sub, __atomic_fetch_sub)                                                                        \
    CHANGE(N, T, fetch_and, __atomic_fetch_and)                                                                        \
    CHANGE(N, T, fetch_or, __atomic_fetch_or)                                                                          \
    CHANGE(N, T, fetch_xor, __atomic_fetch_xor)
#define CHANGE(N, T, NAME, OPERATION)                                                                                  \
    HIDDEN T __tsan_atomic##N##_##NAME(T* at, T v, int) {                                                              \
        strong(HERE, at, sizeof(T), ATOMIC);                                                                           \
        return OPERATION(at, v, __ATOMIC_SEQ_CST);                                                                     \
    }
ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)
#undef CHANGE
#undef ATOMICS
}  // extern "C"

static void clear() {
    for (Array& a : ranges) free(a.cells);
    for (Array& a : shared_arrays) {
        free(a.cells);
        free(a.written);
        a = Array{};
    }
    ranges.clear();
    others.clear();
    for (Set* set : sets) delete set;
    for (std::vector<uint32_t>* one : vectors) delete one;
    sets.clear();
    vectors.clear();
    objects.clear();
    object_of.clear();
}

// From now on blocks are checked. The ranges are sorted, and apart.
static void begin(const Range* all, uint32_t count) {
    clear();
    found = 0;
    doubtful.there = false;
    for (uint32_t i = 0; i < count; i++) {
        ranges.push_back(Array{all[i].begin, all[i].end, all[i].written, nullptr, nullptr, i, 2, false, false});
    }
    memset(cached, 0, sizeof cached);
    on = true;
}

// Returns what was found, and how many arrays are too large for races to be looked for.
static const Finding* end(uint32_t* count, uint32_t* large) {
    settle();
    on = false;
    *large = 0;
    for (const Array& a : ranges) *large += a.large;
    clear();
    *count = found;
    return findings;
}

// As in Rust.
struct Checking {
    void (*begin)(const Range*, uint32_t);
    const Finding* (*end)(uint32_t*, uint32_t*);
};
extern "C" __attribute__((visibility("default"))) const Checking emu_checking = {begin, end};
