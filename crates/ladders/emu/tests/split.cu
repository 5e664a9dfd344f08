// Ways through barriers that loops over threads must keep. Every kernel: out[thread] of a block from
// in[thread], with n numbers.

#define THREADS (blockDim.x * blockDim.y * blockDim.z)
#define OWN (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z))
#define EACH ((int)(blockIdx.x * THREADS + OWN))

// Threads that have ended are not waited for; some end between barriers.
extern "C" __global__ void ended(const int* __restrict__ in, int* out, int n) {
    extern __shared__ int s[];
    const int t = OWN;
    s[t] = 0;
    __syncthreads();
    if (EACH >= n) return;
    s[t] = in[EACH];
    __syncthreads();
    int sum = s[t] + s[0];
    if (sum % 3 == 0) {
        out[EACH] = -sum;
        return;
    }
    __syncthreads();
    s[t] = sum;
    __syncthreads();
    out[EACH] = s[t] + sum;
}

// Variables of all kinds live across barriers: numbers, arrays, types, changed ones and constants, arguments
// that are changed.
struct Pair {
    int a, b;
};
extern "C" __global__ void kept(const int* __restrict__ in, int* out, int n) {
    extern __shared__ int s[];
    const int t = OWN, u = (t + 1) % (int)THREADS;
    const int first = EACH < n ? in[EACH] : 1;
    int changed = first * 2, list[3] = {t, first};
    Pair pair{first, t};
    const int* from = in + (EACH < n ? EACH : 0);
    n += t;
    s[t] = first;
    __syncthreads();
    changed += s[u];
    list[2] = list[0] + s[u];
    pair.b += s[u];
    __syncthreads();
    s[t] = changed;
    __syncthreads();
    if (EACH + t < n) out[EACH] = s[u] + changed + list[0] + 3 * list[1] + 5 * list[2] + 7 * pair.a + 11 * pair.b + 13 * from[0] + n;
}

// Loops with barriers: counted by what is the same for all, by what memory says, left early, passed over in
// part.
extern "C" __global__ void loops(const int* __restrict__ in, int* out, int n) {
    extern __shared__ int s[];
    __shared__ int limit;
    const int t = OWN;
    int sum = 0, rounds = 0;
    if (t == 0) limit = 3 + blockIdx.x % 3;
    s[t] = 0;
    __syncthreads();
    for (int i = 0; i < limit; i++) {
        s[t] += EACH < n ? in[EACH] + i : i;
        __syncthreads();
        sum += s[(t + i) % (int)THREADS];
        __syncthreads();
        if (i == 4) break;
        if ((t + i) % 2) continue;
        sum += 1000;
    }
    for (unsigned step = THREADS / 2; step > 0; step /= 2) {
        if (t < (int)step) s[t] += s[t + step];
        __syncthreads();
    }
    while (rounds * rounds < limit) {
        rounds++;
        __syncthreads();
        if (rounds == 1) continue;
        s[t] += rounds;
    }
    int left = 2;
    do {
        __syncthreads();
        sum += s[(t + 1) % (int)THREADS] * left;
        left--;
        __syncthreads();
    } while (left > 0);
    if (EACH < n) out[EACH] = sum + s[0] * 7 + rounds;
}

// Functions with barriers: of a template, with a value, inside branches; names that mean other variables
// outside.
template <int TIMES, class T>
static __device__ void turned(T* s, int t) {
    for (int i = 0; i < TIMES; i++) {
        const T v = s[(t + 1) % THREADS];
        __syncthreads();
        s[t] = v + i;
        __syncthreads();
    }
}
static __device__ int total(int v) {
    __shared__ int parts[1024];
    const int t = OWN;
    parts[t] = v;
    __syncthreads();
    int sum = 0;
    for (unsigned i = 0; i < THREADS; i++) sum += parts[i] * (i == OWN ? 2 : 1);
    __syncthreads();
    return sum;
}
extern "C" __global__ void called(const int* __restrict__ in, int* out, int n) {
    extern __shared__ int s[];
    const int t = OWN;
    int v = EACH < n ? in[EACH] : 0, sum = 5;
    s[t] = v;
    __syncthreads();
    turned<2>(s, t);
    if (n % 2) {
        turned<1>(s, t);
        sum = total(s[t]);
    } else {
        turned<3>(s, t);
    }
    const int other = total(v);
    if (EACH < n) out[EACH] = s[t] + 3 * sum + 5 * other + v;
}

// Which way a barrier lies depends on memory; all threads must find the same there.
extern "C" __global__ void asked(const int* __restrict__ in, int* out, int n) {
    extern __shared__ int s[];
    const int t = OWN;
    s[t] = EACH < n ? in[EACH] : 0;
    __syncthreads();
    if (s[THREADS / 2] > 0) {
        __syncthreads();
        s[t] += 1;
    }
    __syncthreads();
    if (EACH < n) out[EACH] = s[(t + 1) % (int)THREADS];
}
extern "C" __global__ void raced(const int* __restrict__ in, int* out, int n) {
    __shared__ int turn;
    turn = 0;
    __syncthreads();
    if (turn++ > 0) __syncthreads();
    if (EACH < n) out[EACH] = in[EACH];
}

// What cannot be split runs as written.
extern "C" __global__ void by_thread(const int* __restrict__ in, int* out, int n) {
    const int t = OWN;
    int v = EACH < n ? in[EACH] : 0;
    for (int i = 0; i < (t < 4096 ? 2 : 3); i++) {
        __syncthreads();
        v += i;
    }
    if (EACH < n) out[EACH] = v;
}
extern "C" __global__ void referred(const int* __restrict__ in, int* out, int n) {
    extern __shared__ int s[];
    int& own = s[OWN];
    own = EACH < n ? in[EACH] : 0;
    __syncthreads();
    if (EACH < n) out[EACH] = own;
}
extern "C" __global__ void addressed(const int* __restrict__ in, int* out, int n) {
    int v = EACH < n ? in[EACH] : 0;
    int* at = &v;
    __syncthreads();
    *at += 1;
    __syncthreads();
    if (EACH < n) out[EACH] = v;
}
extern "C" __global__ void by_lambda(const int* __restrict__ in, int* out, int n) {
    const int v = EACH < n ? in[EACH] : 0;
    auto wait = [&](int by) { __syncthreads(); return v + by; };
    const int w = wait(3);
    if (EACH < n) out[EACH] = w;
}
extern "C" __global__ void voted(const int* __restrict__ in, int* out, int n) {
    const int v = __syncthreads_count(EACH < n && in[EACH] > 0);
    if (EACH < n) out[EACH] = v;
}
