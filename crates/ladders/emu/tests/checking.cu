// Kernels with one fault each, and the same without it.
extern "C" {

__global__ void count_global(const unsigned* values, unsigned* counts, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) counts[values[i]] += 1;  // race
}

__global__ void count_atomic(const unsigned* values, unsigned* counts, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&counts[values[i]], 1u);
}

__global__ void count_shared(const unsigned* values, unsigned* counts, int n) {
    __shared__ unsigned own[64];
    for (int b = threadIdx.x; b < 64; b += blockDim.x) own[b] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) own[values[i]] += 1;  // race in shared memory
    __syncthreads();
    for (int b = threadIdx.x; b < 64; b += blockDim.x) atomicAdd(&counts[b], own[b]);
}

// A histogram without one of its barriers: which, `skip` says.
__global__ void three_barriers(const unsigned* values, unsigned* counts, int n, int skip) {
    __shared__ unsigned own[64];
    for (int b = threadIdx.x; b < 64; b += blockDim.x) own[b] = 0;  // clears
    if (skip != 1) __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&own[values[i]], 1u);  // adds
    if (skip != 2) __syncthreads();
    unsigned mine = own[(threadIdx.x * 7 + 5) % 64];  // reads what others counted
    if (skip != 3) __syncthreads();
    if (threadIdx.x < 64) own[threadIdx.x] = mine;  // writes again
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}

__global__ void swap(const float* in, float* out, int barrier) {
    __shared__ float tile[256];
    int t = threadIdx.x;
    tile[t] = in[t];  // written
    if (barrier) __syncthreads();
    out[t] = tile[blockDim.x - 1 - t];  // read
}

__global__ void warp_sum(const float* in, float* out, int sync) {
    __shared__ float part[32];
    int t = threadIdx.x;
    part[t] = in[t];
    for (int by = 16; by > 0; by /= 2) {
        __syncwarp();
        float other = t < by ? part[t + by] : 0;  // reads a neighbour's
        if (sync) __syncwarp();
        part[t] += other;  // writes its own
    }
    __syncwarp();
    if (t == 0) out[0] = part[0];
}

__global__ void shuffled(const float* in, float* out) {
    float v = in[threadIdx.x];
    for (int by = 16; by > 0; by /= 2) v += __shfl_down_sync(0xffffffffu, v, by);
    if (threadIdx.x == 0) out[0] = v;
}

// The last block adds up. Without the first fence nothing orders the parts.
__global__ void last_block(const float* in, float* parts, unsigned* ticket, float* out, int fence) {
    __shared__ bool last;
    int t = threadIdx.x;
    if (t == 0) {
        parts[blockIdx.x] = in[blockIdx.x];  // a part
        if (fence) __threadfence();
        last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    float sum = 0;
    for (int b = t; b < gridDim.x; b += blockDim.x) sum += parts[b];  // all parts
    for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffffu, sum, by);
    if (t == 0) out[0] = sum, *ticket = 0;
}

// Each block waits for a flag of the one before.
__global__ void flags(float* values, int* flags, int volatile_flags) {
    if (threadIdx.x != 0) return;
    int b = blockIdx.x;
    float before = 0;
    if (b > 0) {
        while (*(volatile int*)&flags[b - 1] == 0) {}
        __threadfence();
        before = values[b - 1];
    }
    values[b] = before + 1;
    __threadfence();
    if (volatile_flags) {
        *(volatile int*)&flags[b] = 1;
    } else {
        flags[b] = 1;  // a plain flag
    }
}

__global__ void same_flag(const float* in, int* found, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && in[i] > 0) *found = 1;  // the same value
}

__global__ void past_end(const float* in, float* out, int n) {
    int i = threadIdx.x;
    out[i] = in[i + n];  // reads past the end
}

__global__ void before_begin(const float* in, float* out) {
    int i = threadIdx.x;
    out[i - 1] = in[i];  // writes before the beginning
}

__global__ void wild(float* out, long long far) {
    out[far + threadIdx.x] = 1;  // far away
}

__global__ void elsewhere(unsigned long long at, int writes, float* out) {
    float* there = (float*)at;
    if (writes)
        there[threadIdx.x] = 1;  // writes at an address
    else
        out[threadIdx.x] = there[threadIdx.x];  // reads at an address
}

__global__ void shared_end(float* out) {
    __shared__ float own[32];
    int t = threadIdx.x;
    own[t + 1] = 1;  // past a shared array
    __syncthreads();
    out[t] = own[t];
}

__global__ void unwritten(float* scratch, float* out, int which) {
    __shared__ float own[64];
    int t = threadIdx.x;
    if (which != 1 || t < 16) own[t] = 1;
    __syncthreads();
    float v = own[t ^ 16];  // not all were written
    if (which == 2) v += scratch[t];  // nobody wrote it
    out[t] = v;
}

__global__ void bytes(const unsigned char* in, unsigned char* out, int n) {
    __shared__ unsigned char own[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    own[t] = i < n ? in[i] : 0;
    __syncthreads();
    if (i < n) out[i] = own[t ^ 1];
    unsigned short* two = (unsigned short*)own;
    __syncthreads();
    if (t < 128) two[t] = 3;
    __syncthreads();
    if (t < 64) ((unsigned*)own)[t] += 1;
}

__global__ void half_barrier(float* out) {
    if (threadIdx.x < 16) {
        __syncthreads();  // some
    } else {
        __syncthreads();  // others
    }
    out[threadIdx.x] = 1;
}

// Threads behind the last number return before the barrier.
__global__ void left_early(const float* in, float* out, int count) {
    __shared__ float kept[64];
    const int i = threadIdx.x;
    if (i >= count) return;
    kept[i] = in[i];
    __syncthreads();  // without those who left
    out[i] = kept[count - 1 - i];
}

__global__ void spin_lock(int* lock, float* sum) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        __threadfence();
        *sum += 1;
        __threadfence();
        atomicExch(lock, 0);
    }
}

__global__ void two_launches(const float* in, float* out) {
    out[threadIdx.x] = in[31 - threadIdx.x];
}
// As kernels were written when the lanes of a warp went together.
__global__ void old_warp(const float* in, float* out) {
    __shared__ volatile float part[64];
    int t = threadIdx.x;
    part[t] = in[t];
    __syncthreads();
    if (t < 16) part[t] += part[t + 16];  // lanes together
    if (t < 8) part[t] += part[t + 8];
    if (t == 0) out[0] = part[0];
}

__global__ void tested(const unsigned* values, unsigned* counts, int n) {
    __shared__ unsigned own[64];
    if (threadIdx.x < 64) own[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && *(volatile unsigned*)&own[values[i]] < 3) atomicAdd(&own[values[i]], 1u);
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}
// Which of several pairs, `which` says.
__device__ int total;

__global__ void pairs(const float* in, float* out, int* count, int which) {
    extern __shared__ float own[];
    int t = threadIdx.x, b = blockIdx.x;
    if (which == 0) {
        atomicAdd(count, 1);
        out[b * blockDim.x + t] = *count;  // reads beside an atomic operation
    } else if (which == 1) {
        own[t] = in[t];
        out[b * blockDim.x + t] = own[t ^ 1];  // dynamic shared memory
    } else if (which == 2) {
        total = t;  // a variable
    } else if (which == 3) {
        own[t] = in[t];
        if (t < 16) {
            __syncwarp(0x0000ffffu);
            out[t] = own[t + 16];  // of the other half
        }
    } else if (which == 4) {
        if (t == 0) out[b] = 1;
        if (t == 0 && b > 0) out[gridDim.x + b] = out[b - 1];  // of another block
    } else if (which == 5) {
        out[0] = own[t];  // nobody wrote, and all write
    }
}

// Orders that are right.
__global__ void right(const float* in, float* out, int* count, int n) {
    __shared__ float own[64];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (t >= 48) return;
    own[t] = in[t];
    __syncthreads();
    float v = own[47 - t];
    __syncthreads();
    own[t] = v;
    unsigned half = t < 16 ? 0x0000ffffu : 0xffff0000u;
    if (t < 32) {
        __syncwarp(half);
        v += own[t ^ 15];
        __syncwarp();
        own[t] = v + own[t];
    }
    __syncthreads();
    if (own[t] > 0) atomicAdd(count, 1);
    if (i < n) out[i] = own[(t + 1) % 48];
}

__global__ void last_of_block(const float* in, float* parts, unsigned* ticket, float* out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = in[blockIdx.x];
        __threadfence_block();
        last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence_block();
    if (threadIdx.x < gridDim.x) out[threadIdx.x] = parts[threadIdx.x];  // a fence of the block alone
}

// Two pairs of warps, each with a barrier of its own; or one barrier for a pair only.
__global__ void numbered_pairs(const float* in, float* out, int which) {
    __shared__ float tile[128];
    int t = threadIdx.x, pair = t / 64;
    tile[t] = in[t];  // one of a pair writes
    if (which == 0) asm volatile("bar.sync %0, %1;" ::"r"(1 + pair), "n"(64) : "memory");
    if (which == 1) asm volatile("bar.sync %0, 32;" ::"r"(1 + t / 32) : "memory");
    out[t] = tile[pair * 64 + 63 - t % 64];  // the other of a pair reads
}

// Warps 0 and 1 make numbers for warps 2 and 3, which say when the place is free again.
__global__ void hand_over(float* out, int turns, int await) {
    __shared__ float place[64];
    int t = threadIdx.x;
    for (int turn = 0; turn < turns; turn++) {
        if (t < 64) {
            if (turn > 0 && await) asm volatile("bar.sync 2, 128;" ::: "memory");
            place[t] = turn * 64 + t;  // makes
            asm volatile("bar.arrive 1, 128;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 128;" ::: "memory");
            out[turn * 64 + t - 64] = place[127 - t];  // takes
            if (turn + 1 < turns && await) asm volatile("bar.arrive 2, 128;" ::: "memory");
        }
    }
}

__global__ void numbered_wrongly(float* out, int which) {
    if (which == 0) asm volatile("bar.sync 16, 64;");
    if (which == 1) asm volatile("bar.sync 1, 48;");
    if (which == 2) asm volatile("bar.sync 1, %0;" ::"r"(threadIdx.x < 32 ? 64 : 32));
    if (which == 3 && threadIdx.x < 32) asm volatile("bar.sync 1, 64;");  // one warp alone
    out[threadIdx.x] = 1;
}
}
