// What ends a whole program besides itself: accesses that the processor refuses, and assertions. See runtime.h.

namespace emu {
// An access that the processor refused: by a kernel, or by the host.
static EMU_PLUMBING void refused(int signal, siginfo_t* info, void* context) {
    void* frames[32];
    int count = backtrace(frames, 32);
    char places[300] = "{place";
    int n = 6;
    ucontext_t* state = (ucontext_t*)context;
#if defined(__x86_64__)
    const char* pc = (const char*)state->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    const char* pc = (const char*)state->uc_mcontext.pc;
#else
    const char* pc = nullptr;
#endif
    if (code_at(pc)) n += snprintf(places + n, sizeof places - n, " %u", code_at(pc) + 1);
    // The frames above the one that was interrupted.
    int first = 0;
    for (int i = 0; i < count; i++) first = frames[i] == pc ? i + 1 : first;
    for (int i = first ? first : 2; i < count && n < 250; i++) {
        if (code_at(frames[i])) n += snprintf(places + n, sizeof places - n, " %u", code_at(frames[i]));
    }
    snprintf(places + n, sizeof places - n, "}");
    const void* at = info->si_addr;
    Piece* piece = signal == SIGSEGV || signal == SIGBUS ? near(at) : nullptr;
    char what[300];
    if (signal == SIGFPE) {
        snprintf(what, sizeof what, "a whole number is divided by 0");
    } else if (piece && piece->freed) {
        snprintf(what, sizeof what, "an access to {array %d}, which was freed", piece->line);
    } else if (piece && (const unsigned char*)at < piece->begin) {
        snprintf(what, sizeof what, "an access %zu bytes before the beginning of {array %d} of %zu bytes",
                 (size_t)(piece->begin - (const unsigned char*)at), piece->line, piece->bytes);
    } else if (piece && (const unsigned char*)at >= piece->begin + piece->bytes) {
        snprintf(what, sizeof what, "an access %zu bytes past the end of {array %d} of %zu bytes",
                 (size_t)((const unsigned char*)at - piece->begin - piece->bytes), piece->line, piece->bytes);
    } else if (piece && !launched) {
        snprintf(what, sizeof what,
                 "the host reads or writes {array %d}, which is memory of the GPU: cudaMemcpy copies from and to it", piece->line);
    } else if ((uintptr_t)at < PAGE) {
        snprintf(what, sizeof what, "an access through a null pointer");
    } else {
        snprintf(what, sizeof what, "an access outside all arrays");
    }
    if (!launched) give_up_with("the host's code: %s\n  %s", what, places);
    Workspace* w = self;
    Index b = w->block, t = w->threads[w->running].index;
    give_up_with("line %d: kernel %s: block (%u, %u, %u), thread (%u, %u, %u): %s\n  %s", launched_line, launched, b.x, b.y, b.z,
                 t.x, t.y, t.z, what, places);
}

[[noreturn]] static EMU_PLUMBING void assertion(const char* text, const char* file, int line) {
    char words[300];
    snprintf(words, sizeof words, "line %d: assertion failed: %s", line, text);
    if (launched) fail(words);
    give_up_with("the host's code: %s:%d: assertion failed: %s", file, line, text);
}

// Before the program's own variables are made.
struct Begun {
    Begun() {
        Runtime& r = runtime();
        setvbuf(stdout, nullptr, _IOLBF, 1 << 16);
        if (const char* path = getenv("EMU_REPORT")) r.report = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (const char* threads = getenv("EMU_THREADS")) r.threads = (unsigned)atoi(threads) > 0 ? (unsigned)atoi(threads) : 1;
        size_t half = (size_t)sysconf(_SC_PHYS_PAGES) / 2 * (size_t)sysconf(_SC_PAGESIZE);
        if (half < r.memory) r.memory = half;
#ifdef EMU_CHECK
        r.threads = 1;
#endif
        // Loads what it needs, while that is still possible.
        void* frame;
        backtrace(&frame, 1);
        static char stack[1 << 16];
        stack_t alternate{};
        alternate.ss_sp = stack;
        alternate.ss_size = sizeof stack;
        sigaltstack(&alternate, nullptr);
        struct sigaction action {};
        action.sa_sigaction = refused;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        for (int signal : {SIGSEGV, SIGBUS, SIGFPE}) sigaction(signal, &action, nullptr);
        atexit([] {
            for (const std::string& text : runtime().unseen) {
                tell("note", (text + " (the program does not ask cudaGetLastError)").c_str());
            }
        });
    }
};
static Begun begun __attribute__((init_priority(101)));
}  // namespace emu
