// How often a multiprocessor's clock ticks in a time: both registers are read where the timer ticks, which it
// does every 32 ns to 1 µs.

#ifdef RAYSPIN_EMULATED

// A processor that is emulated has no clock of its own.
extern "C" __global__ void clock_rate(unsigned long long* out, unsigned long long nanoseconds) {
    out[0] = 0 * nanoseconds;
    out[1] = 0;
}

#else

static __device__ __forceinline__ unsigned long long timer() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// The next tick of the timer: its time, and how often the clock has ticked.
static __device__ __forceinline__ void tick(unsigned long long& time, long long& cycles) {
    const unsigned long long before = timer();
    do {
        time = timer();
        cycles = clock64();
    } while (time == before);
}

// out: ticks of the clock and nanoseconds.
extern "C" __global__ void clock_rate(unsigned long long* out, unsigned long long nanoseconds) {
    unsigned long long from, to;
    long long first, last;
    tick(from, first);
    while (timer() - from < nanoseconds) {
    }
    tick(to, last);
    out[0] = (unsigned long long)(last - first);
    out[1] = to - from;
}

#endif
