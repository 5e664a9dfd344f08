// Threads of a block as fibres of one thread of the host: how barriers and the exchanges of a warp are
// honoured.
//
// A fibre runs one thread of the block after another. Where a thread has to wait, its fibre waits with it and
// another takes the next thread; a kernel in which nobody waits is therefore a loop on a single fibre.

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__x86_64__)
// Keeps what a call must keep on the old stack, and takes it back from the new one.
asm(R"(
    .text
    .p2align 4
    .type emu_switch_stack, @function
emu_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size emu_switch_stack, . - emu_switch_stack
)");
#define EMU_SAVED 6
#define EMU_RETURN 6
#define EMU_FRAME 8
#elif defined(__aarch64__)
asm(R"(
    .text
    .p2align 4
    .type emu_switch_stack, %function
emu_switch_stack:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size emu_switch_stack, . - emu_switch_stack
)");
#define EMU_RETURN 11
#define EMU_FRAME 20
#else
#include <ucontext.h>
#define EMU_UCONTEXT 1
#endif

// A program whose accesses are counted (counting.cc) tells of them; what serves to run it does not.
#ifdef EMU_COUNT
#define EMU_PLUMBING __attribute__((no_sanitize_thread, no_sanitize_coverage))
#define EMU_CALLED __attribute__((noinline)) EMU_PLUMBING
#define EMU_TELL(call) call
extern "C" {
__attribute__((visibility("hidden"))) void emu_count_atomic(const void* code, const void* at, unsigned size);
__attribute__((visibility("hidden"))) void emu_count_texel(const void* code, const void* at, unsigned size);
__attribute__((visibility("hidden"))) void emu_count_sync(const void* code, unsigned kind);
__attribute__((visibility("hidden"))) void emu_count_shared(const void* begin, size_t bytes, const char* name);
extern __attribute__((visibility("hidden"))) const int* emu_count_running;
}
#else
#define EMU_PLUMBING
#define EMU_CALLED
#define EMU_TELL(call) ((void)0)
#endif
#define EMU_HERE __builtin_return_address(0)

// A program that is checked (checking.cc) tells what orders its threads as well.
#ifdef EMU_CHECK
#define EMU_ORDER(call) call
extern "C" {
extern __attribute__((visibility("hidden"))) void (*emu_check_fail)(const char*);
extern __attribute__((visibility("hidden"))) const void* emu_check_stack;
__attribute__((visibility("hidden"))) void emu_check_arena(const void* begin, size_t bytes);
__attribute__((visibility("hidden"))) void emu_check_other(const void* begin, size_t bytes);
__attribute__((visibility("hidden"))) void emu_check_block(uint64_t number, unsigned count);
__attribute__((visibility("hidden"))) void emu_check_barrier(const void* code, int ended);
__attribute__((visibility("hidden"))) void emu_check_warp(unsigned first, uint32_t lanes);
__attribute__((visibility("hidden"))) void emu_check_comes(unsigned barrier);
__attribute__((visibility("hidden"))) void emu_check_numbered(unsigned barrier, const uint8_t* came, uint8_t waits);
__attribute__((visibility("hidden"))) void emu_check_fence(bool wide);
}
#else
#define EMU_ORDER(call) ((void)0)
#endif

namespace emu {

// As in counting.cc.
enum Told : unsigned { TOLD_BARRIER = 5, TOLD_WARP = 6, TOLD_MATCH = 7 };

struct Index {
    unsigned x, y, z;
};

// As in Rust.
struct Launch {
    uint32_t blocks[3], threads[3], shared;
    // 1: of every second block the first begins with its last thread; 0: the second does.
    uint32_t turned;
    // The number behind the last block to run.
    uint64_t until;
};

enum : unsigned {
    MOST_THREADS = 1024,
    MOST_ARRAYS = 32,
    STACK = 128 << 10,
    FENCE = 128,
    SHARED = 232448,
    ARENA = SHARED + (MOST_ARRAYS + 2) * (FENCE + 128),
    MESSAGE = 600,
    KEPT = 64 << 20,
    // Barriers with numbers that a block has.
    NUMBERS = 16,
};
// A NaN as a number of either precision, and none that programs write.
constexpr uint32_t FENCE_MARK = 0xfffff1a5;
constexpr uint64_t STACK_MARK = 0x5afe57ac4b077043;

enum State : uint8_t { NEW, RUNNING, AT_BARRIER, AT_NUMBER, IN_WARP, READY, DONE };

struct Fibre {
    // Null where it is to be begun anew.
    void* pointer;
    unsigned char* stack;
    int thread;
#ifdef EMU_UCONTEXT
    ucontext_t context;
#endif
};

struct Thread {
    Index index;
    Fibre* fibre;
    State state;
    uint8_t kind;
    int line;
    uint32_t mask;
    uint32_t source;
    uint64_t operand, result;
};

struct Array {
    unsigned char* begin;
    size_t bytes;
    const char* name;
};

enum Barrier : uint8_t { PLAIN, COUNT, AND, OR };
enum Exchange : uint8_t { SYNC, LANE, BALLOT, MATCH, ADD, MIN, MAX, MIN_SIGNED, MAX_SIGNED, BIT_AND, BIT_OR, BIT_XOR };

// How a thread came to a barrier with a number: it waits there, or only counts.
enum Came : uint8_t { AWAY, WAITS, COUNTS };
struct Numbered {
    unsigned expected, arrived;
    uint8_t came[MOST_THREADS];
};

// What one thread of the host needs to run blocks; kept from launch to launch.
struct Workspace {
    unsigned char* arena;
    Fibre fibres[MOST_THREADS];
    unsigned made;
    Thread threads[MOST_THREADS];
    uint16_t idle[MOST_THREADS];
    unsigned idle_count;
    uint16_t ready[MOST_THREADS];
    unsigned ready_head, ready_count;
    Array arrays[MOST_ARRAYS];
    unsigned array_count;
    size_t arena_used, shared_used;
    uint64_t serial;

    Launch launch;
    Index block, grid_dim, block_dim;
    unsigned count, begun, alive;
    bool backwards, failed;
    unsigned at_barrier;
    int barrier_line;
    // Where one of those who wait called it.
    const void* barrier_code;
    Barrier barrier_kind;
    Numbered numbered[NUMBERS];
    int running;
    void* scheduler;
#ifdef EMU_UCONTEXT
    ucontext_t scheduler_context;
#endif
    void (*call)(void**);
    // All threads of a block, where they need nothing of each other.
    void (*whole)(void**);
    void** arguments;
    // What threads of a split kernel keep across barriers.
    unsigned char* kept;
    size_t kept_used;
    char message[MESSAGE];
};

// Where a thread is.
struct Place {
    Index thread, block, block_dim, grid_dim;
};

static thread_local Workspace* self;

// Which thread a fibre runs changes under the compiler's eyes only here.
#ifdef EMU_UCONTEXT
static EMU_PLUMBING void to_scheduler(Fibre* fibre) { swapcontext(&fibre->context, &self->scheduler_context); }
static EMU_PLUMBING void run_fibre();
static EMU_PLUMBING void to_fibre(Fibre* fibre) {
    if (!fibre->pointer) {
        getcontext(&fibre->context);
        fibre->context.uc_stack.ss_sp = fibre->stack + 16;
        fibre->context.uc_stack.ss_size = STACK - 16;
        fibre->context.uc_link = nullptr;
        makecontext(&fibre->context, run_fibre, 0);
        fibre->pointer = fibre;
    }
    swapcontext(&self->scheduler_context, &fibre->context);
}
#else
extern "C" __attribute__((visibility("hidden"))) void switch_stack(void** from, void* to) asm("emu_switch_stack");
static EMU_PLUMBING void run_fibre();
static EMU_PLUMBING void to_scheduler(Fibre* fibre) { switch_stack(&fibre->pointer, self->scheduler); }
static EMU_PLUMBING void to_fibre(Fibre* fibre) {
    if (!fibre->pointer) {
        // As if run_fibre had been called: on x86-64 the return address lies just below a multiple of 16.
        void** top = (void**)(((uintptr_t)fibre->stack + STACK - 64) & ~(uintptr_t)15);
        void** frame = top - EMU_FRAME;
        for (int i = 0; i < EMU_FRAME; i++) frame[i] = nullptr;
        frame[EMU_RETURN] = (void*)run_fibre;
        fibre->pointer = frame;
    }
    switch_stack(&self->scheduler, fibre->pointer);
}
#endif

static EMU_PLUMBING unsigned lane_of(unsigned thread) { return thread % 32; }

static EMU_PLUMBING void write_message(Workspace* w, const char* text, int thread) {
    Index b = w->block;
    int n = snprintf(w->message, MESSAGE, "block (%u, %u, %u)", b.x, b.y, b.z);
    if (thread >= 0 && n < (int)MESSAGE) {
        Index t = w->threads[thread].index;
        n += snprintf(w->message + n, MESSAGE - n, ", thread (%u, %u, %u)", t.x, t.y, t.z);
    }
    if (n < (int)MESSAGE) snprintf(w->message + n, MESSAGE - n, ": %s", text);
    w->failed = true;
}

// Ends the block: its fibres are left where they are.
[[noreturn]] static __attribute__((noinline)) EMU_PLUMBING void fail(const char* text) {
    Workspace* w = self;
    if (!w->failed) write_message(w, text, w->running);
    to_scheduler(w->threads[w->running].fibre);
    __builtin_unreachable();
}

static EMU_PLUMBING void make_ready(Workspace* w, unsigned thread) {
    w->threads[thread].state = READY;
    w->ready[(w->ready_head + w->ready_count++) % MOST_THREADS] = (uint16_t)thread;
}

// Waits until another makes this thread ready.
static EMU_PLUMBING void wait(Workspace* w, State state) {
    Thread* t = &w->threads[w->running];
    t->state = state;
    to_scheduler(t->fibre);
}

// Lets all who wait at the barrier go on, except `but`.
static EMU_PLUMBING void release_barrier(Workspace* w, int but) {
    uint64_t sum = 0;
    unsigned seen = 0;
    int ended = -1;
    for (unsigned i = 0; i < w->count; i++) {
        if (ended < 0 && w->threads[i].state == DONE) ended = (int)i;
        if ((int)i == but || w->threads[i].state == AT_BARRIER) {
            sum += w->threads[i].operand != 0;
            seen++;
        }
    }
    (void)ended;
    EMU_ORDER(emu_check_barrier(w->barrier_code, ended));
    uint64_t result = w->barrier_kind == AND ? sum == seen : w->barrier_kind == OR ? sum != 0 : sum;
    for (unsigned k = 0; k < w->count; k++) {
        unsigned i = w->backwards ? w->count - 1 - k : k;
        Thread* t = &w->threads[i];
        if ((int)i == but || t->state == AT_BARRIER) t->result = result;
        if (t->state == AT_BARRIER) make_ready(w, i);
    }
    w->at_barrier = 0;
}

static __attribute__((noinline)) EMU_PLUMBING int barrier(Barrier kind, int line, bool value) {
    EMU_TELL(emu_count_sync(EMU_HERE, TOLD_BARRIER));
    Workspace* w = self;
    Thread* t = &w->threads[w->running];
    if (w->at_barrier == 0) {
        w->barrier_line = line;
        w->barrier_kind = kind;
        w->barrier_code = EMU_HERE;
    } else if (w->barrier_line != line || w->barrier_kind != kind) {
        char text[200];
        snprintf(text, sizeof text,
                 "reached the barrier of line %d while other threads of the block wait at the one of line %d", line,
                 w->barrier_line);
        fail(text);
    }
    t->operand = value;
    t->line = line;
    w->at_barrier++;
    if (w->at_barrier == w->alive) {
        release_barrier(w, w->running);
    } else {
        wait(w, AT_BARRIER);
    }
    return (int)t->result;
}

// A barrier with a number, for `count` threads; 0 means the whole block. As hardware has it, a warp comes as a whole.
static __attribute__((noinline)) EMU_PLUMBING void numbered_barrier(unsigned barrier, unsigned count, bool waits,
                                                                    int line) {
    EMU_TELL(emu_count_sync(EMU_HERE, TOLD_BARRIER));
    Workspace* w = self;
    unsigned thread = (unsigned)w->running;
    unsigned most = (w->count + 31) / 32 * 32;
    char text[200];
    if (barrier >= NUMBERS) {
        snprintf(text, sizeof text, "line %d: barrier %u: expected a number below %u", line, barrier, NUMBERS);
        fail(text);
    }
    if (count % 32 != 0 || count > most) {
        snprintf(text, sizeof text, "line %d: barrier %u: expected a multiple of 32 threads up to the block's %u, found %u",
                 line, barrier, most, count);
        fail(text);
    }
    Numbered& b = w->numbered[barrier];
    unsigned expected = count ? count : most;
    if (b.arrived > 0 && b.expected != expected) {
        snprintf(text, sizeof text, "line %d: barrier %u for %u threads, where others wait for %u", line, barrier, expected,
                 b.expected);
        fail(text);
    }
    if (b.came[thread]) {
        snprintf(text, sizeof text, "line %d: comes to barrier %u again before %u threads have come", line, barrier,
                 b.expected);
        fail(text);
    }
    EMU_ORDER(emu_check_comes(barrier));
    b.expected = expected;
    b.came[thread] = waits ? WAITS : COUNTS;
    b.arrived++;
    w->threads[thread].line = line;
    w->threads[thread].source = barrier;
    // The lanes that the last warp lacks count as well.
    unsigned lacking = w->count % 32 && thread / 32 == w->count / 32 ? 32 - w->count % 32 : 0;
    if (lacking) {
        unsigned first = w->count / 32 * 32, here = 0;
        for (unsigned i = first; i < w->count; i++) here += b.came[i] != AWAY;
        if (here == w->count - first) b.arrived += lacking;
    }
    if (b.arrived < b.expected) {
        if (waits) wait(w, AT_NUMBER);
        return;
    }
    EMU_ORDER(emu_check_numbered(barrier, b.came, WAITS));
    for (unsigned k = 0; k < w->count; k++) {
        unsigned i = w->backwards ? w->count - 1 - k : k;
        if (b.came[i] == WAITS && i != thread) make_ready(w, i);
    }
    __builtin_memset(&b, 0, sizeof b);
}

// Completes the exchange that `thread` waits in, when all its living lanes have come.
static EMU_PLUMBING bool complete_exchange(Workspace* w, unsigned thread, int but) {
    unsigned first = thread - lane_of(thread);
    Thread* lanes = w->threads + first;
    Thread* me = &w->threads[thread];
    uint32_t here = 0;
    // The lane that runs last comes first here, because it is the likeliest not to have come yet.
    for (unsigned k = 0; k < 32; k++) {
        unsigned l = w->backwards ? k : 31 - k;
        if (first + l >= w->count || !(me->mask >> l & 1) || lanes[l].state == DONE) continue;
        bool came = (lanes[l].state == IN_WARP || (int)(first + l) == but) && lanes[l].kind == me->kind &&
                    lanes[l].mask == me->mask;
        if (!came) return false;
        here |= 1u << l;
    }
    EMU_ORDER(emu_check_warp(first, here));
    uint64_t all = 0;
    uint8_t kind = me->kind;
    bool begun = false;
    for (unsigned l = 0; l < 32; l++) {
        if (!(here >> l & 1)) continue;
        uint64_t v = lanes[l].operand;
        if (kind == BALLOT) {
            all |= (uint64_t)(v != 0) << l;
        } else if (!begun) {
            all = v;
        } else {
            switch (kind) {
                case ADD: all = (uint32_t)(all + v); break;
                case MIN: all = (uint32_t)v < (uint32_t)all ? v : all; break;
                case MAX: all = (uint32_t)v > (uint32_t)all ? v : all; break;
                case MIN_SIGNED: all = (int32_t)v < (int32_t)all ? v : all; break;
                case MAX_SIGNED: all = (int32_t)v > (int32_t)all ? v : all; break;
                case BIT_AND: all &= v; break;
                case BIT_OR: all |= v; break;
                case BIT_XOR: all ^= v; break;
            }
        }
        begun = true;
    }
    for (unsigned k = 0; k < 32; k++) {
        unsigned l = w->backwards ? 31 - k : k;
        if (!(here >> l & 1)) continue;
        if (kind == LANE) {
            // What a lane that takes no part holds is not defined: all bits set, NaN as a number.
            lanes[l].result = here >> lanes[l].source & 1 ? lanes[lanes[l].source].operand : ~(uint64_t)0;
        } else if (kind == MATCH) {
            uint32_t same = 0;
            for (unsigned m = 0; m < 32; m++) {
                if (here >> m & 1 && lanes[m].operand == lanes[l].operand) same |= 1u << m;
            }
            lanes[l].result = same;
        } else {
            lanes[l].result = all;
        }
        if ((int)(first + l) != but) make_ready(w, first + l);
    }
    return true;
}

static __attribute__((noinline)) EMU_PLUMBING uint64_t exchange(Exchange kind, int line, uint32_t mask, uint64_t operand,
                                                   uint32_t source) {
    EMU_TELL(emu_count_sync(EMU_HERE, kind == MATCH ? TOLD_MATCH : TOLD_WARP));
    Workspace* w = self;
    unsigned thread = (unsigned)w->running;
    Thread* t = &w->threads[thread];
    t->kind = kind;
    t->line = line;
    t->mask = mask;
    t->operand = operand;
    t->source = source;
    if (!(mask >> lane_of(thread) & 1)) {
        char text[160];
        snprintf(text, sizeof text, "line %d: lane %u is not in the mask 0x%08x that it gives itself", line,
                 lane_of(thread), mask);
        fail(text);
    }
    if (!complete_exchange(w, thread, (int)thread)) wait(w, IN_WARP);
    return t->result;
}

// Gives the others a turn: for threads that wait for another's write.
static __attribute__((noinline)) EMU_PLUMBING void yield() {
    Workspace* w = self;
    Thread* t = &w->threads[w->running];
    make_ready(w, (unsigned)w->running);
    to_scheduler(t->fibre);
}

// A thread that has ended is no longer waited for.
static EMU_PLUMBING void end_thread(Workspace* w, unsigned thread) {
    w->threads[thread].state = DONE;
    w->alive--;
    if (w->at_barrier > 0 && w->at_barrier == w->alive) release_barrier(w, -1);
    unsigned first = thread - lane_of(thread);
    for (unsigned i = first; i < first + 32 && i < w->count; i++) {
        if (w->threads[i].state == IN_WARP) complete_exchange(w, i, -1);
    }
}

static EMU_PLUMBING void run_fibre() {
    for (;;) {
        Workspace* w = self;
        Fibre* fibre = w->threads[w->running].fibre;
        while (true) {
            w->call(w->arguments);
            w = self;
            end_thread(w, (unsigned)w->running);
            if (w->begun == w->count || w->failed) break;
            unsigned next = w->backwards ? w->count - 1 - w->begun : w->begun;
            w->begun++;
            w->running = (int)next;
            w->threads[next].fibre = fibre;
            w->threads[next].state = RUNNING;
            fibre->thread = (int)next;
        }
        w->idle[w->idle_count++] = (uint16_t)(fibre - w->fibres);
        to_scheduler(fibre);
    }
}

static EMU_PLUMBING bool make_fibre(Workspace* w) {
    Fibre* fibre = &w->fibres[w->made];
    fibre->stack = (unsigned char*)malloc(STACK);
    if (!fibre->stack) {
        write_message(w, "no memory for the stack of another thread", -1);
        return false;
    }
    ((uint64_t*)fibre->stack)[0] = ((uint64_t*)fibre->stack)[1] = STACK_MARK;
    fibre->pointer = nullptr;
    w->idle[w->idle_count++] = (uint16_t)w->made++;
    return true;
}

static EMU_PLUMBING void resume(Workspace* w, unsigned thread) {
    Thread* t = &w->threads[thread];
    t->state = RUNNING;
    w->running = (int)thread;
    Fibre* fibre = t->fibre;
    EMU_ORDER(emu_check_stack = fibre->stack);
    to_fibre(fibre);
    const uint64_t* mark = (const uint64_t*)fibre->stack;
    if (mark[0] != STACK_MARK || mark[1] != STACK_MARK) {
        // Memory beside the stack may be damaged as well.
        fprintf(stderr, "emulated kernel: a thread's local memory exceeds %u bytes\n", (unsigned)STACK);
        abort();
    }
}

// Those who can never go on, by where they wait.
static EMU_PLUMBING void report_deadlock(Workspace* w) {
    char text[MESSAGE - 100];
    int n = snprintf(text, sizeof text, "no thread can go on:");
    for (unsigned from = 0, groups = 0; from < w->count && groups < 4; from++) {
        const Thread* t = &w->threads[from];
        if (t->state == DONE) continue;
        bool told = false;
        unsigned same = 0;
        for (unsigned i = 0; i < w->count; i++) {
            const Thread* o = &w->threads[i];
            bool alike = o->state == t->state && o->line == t->line &&
                         (t->state == AT_BARRIER || (t->state == AT_NUMBER ? o->source == t->source : o->mask == t->mask));
            told = told || (alike && i < from);
            same += alike;
        }
        if (told) continue;
        if (n < (int)sizeof text && t->state == AT_NUMBER) {
            const Numbered& b = w->numbered[t->source];
            n += snprintf(text + n, sizeof text - n, "%s %u wait at barrier %u of line %d, where %u of %u have come",
                          groups ? "," : "", same, t->source, t->line, b.arrived, b.expected);
        } else if (n < (int)sizeof text) {
            n += snprintf(text + n, sizeof text - n, t->state == AT_BARRIER ? "%s %u wait at the barrier of line %d"
                                                                            : "%s %u wait in line %d for the lanes 0x%08x",
                          groups ? "," : "", same, t->line, t->mask);
        }
        groups++;
    }
    write_message(w, text, -1);
}

static EMU_PLUMBING bool intact(const unsigned char* fence) {
    for (unsigned i = 0; i < FENCE; i += 4) {
        if (__builtin_memcmp(fence + i, &FENCE_MARK, 4) != 0) return false;
    }
    return true;
}

static EMU_PLUMBING unsigned char* take_shared(Workspace* w, size_t bytes, const char* name) {
    size_t from = (w->arena_used + 127) / 128 * 128;
    w->shared_used += bytes;
    if (w->shared_used > SHARED || from + bytes + FENCE > ARENA || w->array_count == MOST_ARRAYS) return nullptr;
    unsigned char* begin = w->arena + from;
    // Nothing is written to shared memory before a kernel writes it: NaN as a number.
    __builtin_memset(begin, 0xFF, bytes);
    for (unsigned i = 0; i < FENCE; i += 4) __builtin_memcpy(begin + bytes + i, &FENCE_MARK, 4);
    w->arrays[w->array_count++] = Array{begin, bytes, name};
    EMU_TELL(emu_count_shared(begin, bytes, name));
    w->arena_used = from + bytes + FENCE;
    return begin;
}

// Where a `__shared__` array of the program lies in the present block.
struct Slot {
    uint64_t serial;
    void* at;
};

static EMU_PLUMBING void* shared_array(Slot& slot, size_t bytes, const char* name) {
    Workspace* w = self;
    if (slot.serial != w->serial) {
        slot.at = take_shared(w, bytes, name);
        if (!slot.at) fail("more shared memory than a block may have");
        slot.serial = w->serial;
    }
    return slot.at;
}

static EMU_PLUMBING void* dynamic_shared() { return self->arena; }

static EMU_PLUMBING void run_block(Workspace* w, uint64_t number) {
    const uint32_t* blocks = w->launch.blocks;
    w->block = Index{(unsigned)(number % blocks[0]), (unsigned)(number / blocks[0] % blocks[1]),
                     (unsigned)(number / blocks[0] / blocks[1])};
    // Who comes first is not defined: every second block begins with its last thread.
    w->backwards = (number ^ w->launch.turned) & 1;
    w->begun = 0;
    w->alive = w->count;
    w->at_barrier = 0;
    __builtin_memset(w->numbered, 0, sizeof w->numbered);
    w->ready_count = w->ready_head = 0;
    w->array_count = 0;
    w->arena_used = w->shared_used = w->kept_used = 0;
    for (unsigned i = 0; i < w->count; i++) {
        Thread* t = &w->threads[i];
        t->state = NEW;
        t->mask = 0;
        t->line = 0;
    }
    EMU_ORDER(emu_check_block(number, w->count));
    take_shared(w, w->launch.shared, "dynamic shared memory");
    if (w->whole) {
        w->running = 0;
        w->whole(w->arguments);
        w->alive = 0;
        w->begun = w->count;
    }
    while (!w->failed && w->alive > 0) {
        if (w->begun < w->count) {
            if (w->idle_count == 0 && !make_fibre(w)) return;
            Fibre* fibre = &w->fibres[w->idle[--w->idle_count]];
            unsigned next = w->backwards ? w->count - 1 - w->begun : w->begun;
            w->begun++;
            w->threads[next].fibre = fibre;
            resume(w, next);
        } else if (w->ready_count > 0) {
            unsigned next = w->ready[w->ready_head];
            w->ready_head = (w->ready_head + 1) % MOST_THREADS;
            w->ready_count--;
            resume(w, next);
        } else {
            report_deadlock(w);
        }
    }
    for (unsigned i = 0; i < w->array_count && !w->failed; i++) {
        const Array* a = &w->arrays[i];
        if (!intact(a->begin + a->bytes)) {
            char text[200];
            snprintf(text, sizeof text, "a write past the %zu bytes of shared array %s", a->bytes, a->name);
            write_message(w, text, -1);
        }
    }
}

// Runs blocks, whose numbers it takes from `next`, until none is left or `stop` is set. Returns 0, or 1 with
// a message.
static EMU_PLUMBING int run_blocks(Workspace* w, void (*call)(void**), void (*whole)(void**), void** arguments, const Launch* launch,
                      uint64_t* next, int* stop, char* message) {
    static uint64_t serials;
    self = w;
    EMU_TELL(emu_count_running = &w->running);
    EMU_ORDER(emu_check_fail = fail);
    EMU_ORDER(emu_check_arena(w->arena, ARENA));
    w->launch = *launch;
    w->call = call;
    w->whole = whole;
    w->arguments = arguments;
    w->failed = false;
    w->grid_dim = Index{launch->blocks[0], launch->blocks[1], launch->blocks[2]};
    w->block_dim = Index{launch->threads[0], launch->threads[1], launch->threads[2]};
    const uint32_t* t = launch->threads;
    w->count = t[0] * t[1] * t[2];
    for (unsigned i = 0; i < w->count; i++) {
        w->threads[i].index = Index{i % t[0], i / t[0] % t[1], i / t[0] / t[1]};
    }
    // Fibres of another program would go on in its code.
    w->idle_count = 0;
    for (unsigned i = 0; i < w->made; i++) {
        w->fibres[i].pointer = nullptr;
        w->idle[w->idle_count++] = (uint16_t)(w->made - 1 - i);
    }
    while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
        uint64_t number = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED);
        if (number >= launch->until) break;
        w->serial = 1 + __atomic_fetch_add(&serials, 1, __ATOMIC_RELAXED);
        run_block(w, number);
        if (w->failed) {
            __atomic_store_n(stop, 1, __ATOMIC_RELAXED);
            __builtin_memcpy(message, w->message, MESSAGE);
            return 1;
        }
    }
    return 0;
}

static EMU_PLUMBING Workspace* new_workspace() {
    Workspace* w = (Workspace*)calloc(1, sizeof(Workspace));
    if (!w) return nullptr;
    w->arena = (unsigned char*)aligned_alloc(1024, (ARENA + 1023) / 1024 * 1024);
    if (!w->arena) {
        free(w);
        return nullptr;
    }
    return w;
}

static EMU_PLUMBING void delete_workspace(Workspace* w) {
    for (unsigned i = 0; i < w->made; i++) free(w->fibres[i].stack);
    free(w->arena);
    free(w->kept);
    free(w);
}

// Split kernels: arrays over the threads of a block, until the end of a scope.
struct Kept {
    size_t used;
    Kept() : used(self->kept_used) {}
    ~Kept() { self->kept_used = used; }
};
static EMU_PLUMBING void* keep(size_t bytes) {
    Workspace* w = self;
    // Pages that are never written take no memory.
    if (!w->kept) w->kept = (unsigned char*)aligned_alloc(64, KEPT);
    bytes = (bytes + 63) / 64 * 64;
    if (!w->kept || w->kept_used + bytes > KEPT) {
        write_message(w, "no memory for what the threads of a block keep across barriers", -1);
        return nullptr;
    }
    w->kept_used += bytes;
    return w->kept + (w->kept_used - bytes);
}
static EMU_PLUMBING bool any(const unsigned char* live, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (live[i]) return true;
    return false;
}
static EMU_PLUMBING void disagree(const char* condition) {
    char text[300];
    snprintf(text, sizeof text, "threads take different ways to a barrier: %s", condition);
    write_message(self, text, -1);
}

// A kernel from a list of pointers to its arguments.
template <unsigned... I>
struct Numbers {};
template <unsigned N, unsigned... I>
struct Count : Count<N - 1, N - 1, I...> {};
template <unsigned... I>
struct Count<0, I...> {
    typedef Numbers<I...> type;
};
template <class... A, unsigned... I>
static EMU_PLUMBING void call_numbered(void (*kernel)(A...), void** arguments, Numbers<I...>) {
    kernel(*(A*)arguments[I]...);
}
template <class... A>
static void call_kernel(void (*kernel)(A...), void** arguments) {
    call_numbered(kernel, arguments, typename Count<sizeof...(A)>::type());
}
// The same where the kernel is given its place.
static inline EMU_PLUMBING Place here() {
    Workspace* w = self;
    return Place{w->threads[w->running].index, w->block, w->block_dim, w->grid_dim};
}
template <class... A, unsigned... I>
static void call_numbered(void (*kernel)(const Place, A...), void** arguments, Numbers<I...>) {
    kernel(here(), *(A*)arguments[I]...);
}
template <class... A>
static void call_kernel(void (*kernel)(const Place, A...), void** arguments) {
    call_numbered(kernel, arguments, typename Count<sizeof...(A)>::type());
}
// Threads as a loop. What one writes another may not read without a barrier, and there is none: no iteration
// needs another.
template <auto KERNEL, class... A>
static inline __attribute__((always_inline)) void loop_places(const Place block, A... arguments) {
    const Index count = block.block_dim;
    for (unsigned z = 0; z < count.z; z++)
        for (unsigned y = 0; y < count.y; y++)
#pragma GCC ivdep
            for (unsigned x = 0; x < count.x; x++)
                KERNEL(Place{Index{x, y, z}, block.block, count, block.grid_dim}, arguments...);
}
template <auto KERNEL, class... A>
static inline __attribute__((always_inline)) void loop_alike(A... arguments) {
    for (unsigned i = 0; i < self->count; i++) KERNEL(arguments...);
}
template <auto KERNEL, class... A, unsigned... I>
static inline void loop_numbered(void (*)(const Place, A...), void** arguments, Numbers<I...>) {
    loop_places<KERNEL, A...>(here(), *(A*)arguments[I]...);
}
template <auto KERNEL, class... A>
static inline void loop_plain(void (*kernel)(const Place, A...), void** arguments) {
    loop_numbered<KERNEL>(kernel, arguments, typename Count<sizeof...(A)>::type());
}
template <auto KERNEL, class... A, unsigned... I>
static inline void loop_numbered(void (*)(A...), void** arguments, Numbers<I...>) {
    loop_alike<KERNEL, A...>(*(A*)arguments[I]...);
}
template <auto KERNEL, class... A>
static inline void loop_plain(void (*kernel)(A...), void** arguments) {
    loop_numbered<KERNEL>(kernel, arguments, typename Count<sizeof...(A)>::type());
}
// A row of threads that all have something to do runs without asking each.
template <auto BUSY, auto WHOLE, class... A>
static inline __attribute__((always_inline)) void loop_rows(void (*kernel)(const Place, A...), const Place block,
                                                            A... arguments) {
    const Index count = block.block_dim;
    for (unsigned z = 0; z < count.z; z++)
        for (unsigned y = 0; y < count.y; y++) {
            unsigned busy = 0;
            for (unsigned x = 0; x < count.x; x++)
                busy += BUSY(Place{Index{x, y, z}, block.block, count, block.grid_dim}, arguments...);
            if (busy == count.x) {
#pragma GCC ivdep
                for (unsigned x = 0; x < count.x; x++)
                    WHOLE(Place{Index{x, y, z}, block.block, count, block.grid_dim}, arguments...);
            } else {
                for (unsigned x = 0; x < count.x; x++)
                    kernel(Place{Index{x, y, z}, block.block, count, block.grid_dim}, arguments...);
            }
        }
}
template <auto BUSY, auto WHOLE, class... A, unsigned... I>
static inline void loop_busy_numbered(void (*kernel)(const Place, A...), void** arguments, Numbers<I...>) {
    loop_rows<BUSY, WHOLE, A...>(kernel, here(), *(A*)arguments[I]...);
}
template <auto BUSY, auto WHOLE, class... A>
static inline void loop_busy(void (*kernel)(const Place, A...), void** arguments) {
    loop_busy_numbered<BUSY, WHOLE>(kernel, arguments, typename Count<sizeof...(A)>::type());
}
template <class... A>
struct Sizes {
    static constexpr unsigned of[sizeof...(A) + 1] = {(unsigned)sizeof(A)..., 0};
};
template <class... A>
static constexpr const unsigned* sizes_of(void (*)(const Place, A...)) {
    return Sizes<A...>::of;
}
template <class... A>
static constexpr unsigned count_of(void (*)(const Place, A...)) {
    return sizeof...(A);
}
template <class... A>
static constexpr const unsigned* sizes_of(void (*)(A...)) {
    return Sizes<A...>::of;
}
template <class... A>
static constexpr unsigned count_of(void (*)(A...)) {
    return sizeof...(A);
}
static constexpr unsigned first_of(unsigned threads = MOST_THREADS, unsigned = 0, unsigned = 0) { return threads; }

// As in Rust.
struct Kernel {
    const char* name;
    void (*call)(void**);
    void (*whole)(void**);
    uint32_t arguments;
    const uint32_t* sizes;
    uint32_t threads;
    const uint32_t *shared_begin, *shared_end;
    // Of how many loops over threads `whole` is, or why there is none.
    uint32_t loops;
    const char* why;
};
struct Variable {
    const char* name;
    void* at;
    uint64_t bytes;
};
struct Program {
    const Kernel* kernels;
    uint32_t kernel_count;
    const Variable* variables;
    uint32_t variable_count;
    Workspace* (*make)();
    void (*destroy)(Workspace*);
    int (*run)(Workspace*, void (*)(void**), void (*)(void**), void**, const Launch*, uint64_t*, int*, char*);
};

}  // namespace emu
