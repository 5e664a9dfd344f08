// The k-th smallest squared magnitude of numbers, a digit of its bits at a time.

#define THREADS 256
#define DIGITS 256

// |x|² as an integer of the same order: numbers that are not negative are ordered as their bits are. Without the sign, which a NaN
// may have, NaN is the largest.
static __device__ __forceinline__ unsigned long long key_of(scalar x) {
    return (unsigned long long)__double_as_longlong(square(x)) & 0x7fffffffffffffffull;
}

// state: the digits found so far, and how many of the numbers that begin with them are smaller than the
// wanted one. How often each digit at `shift` follows them is added to `counts`.
extern "C" __global__ void __launch_bounds__(THREADS)
count(const scalar* __restrict__ x, unsigned long long n, int shift, const unsigned long long* __restrict__ state,
      unsigned* __restrict__ counts) {
    __shared__ unsigned here[DIGITS];
    here[threadIdx.x] = 0;
    __syncthreads();
    unsigned long long found = state[0];
    for (unsigned long long i = blockIdx.x * (unsigned long long)THREADS + threadIdx.x; i < n;
         i += gridDim.x * (unsigned long long)THREADS) {
        unsigned long long key = key_of(x[i]);
        // A shift by 64 is undefined.
        if (shift == 56 || key >> (shift + 8) == found) atomicAdd(&here[key >> shift & (DIGITS - 1)], 1u);
    }
    __syncthreads();
    if (here[threadIdx.x] > 0) atomicAdd(&counts[threadIdx.x], here[threadIdx.x]);
}

// Takes the digit that the wanted number has, and clears the counts.
extern "C" __global__ void __launch_bounds__(THREADS)
choose(unsigned long long* __restrict__ state, unsigned* __restrict__ counts) {
    if (threadIdx.x == 0) {
        unsigned long long rank = state[1];
        unsigned digit = 0;
        while (digit < DIGITS - 1 && rank >= counts[digit]) {
            rank -= counts[digit];
            digit++;
        }
        state[0] = state[0] << 8 | digit;
        state[1] = rank;
    }
    __syncthreads();
    counts[threadIdx.x] = 0;
}
