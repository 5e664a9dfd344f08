// A thread a key.
__device__ unsigned turned(unsigned x, unsigned by) { return x << (by & 31) | x >> ((32 - (by & 31)) & 31); }

__device__ unsigned swapped(unsigned x) { return x << 24 | (x & 0xff00) << 8 | (x >> 8 & 0xff00) | x >> 24; }

extern "C" __global__ void rc5(unsigned upper, unsigned long long lower, unsigned keys, unsigned plain0, unsigned plain1, unsigned cipher, unsigned mask, unsigned* list, unsigned room) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= keys) return;
    unsigned long long t = lower + i;
    unsigned l[3] = {swapped(upper + (unsigned)(t >> 40)), swapped((unsigned)(t >> 8)), (unsigned)t & 255}, s[26];
    for (int j = 0; j < 26; j++) s[j] = 0xb7e15163u + 0x9e3779b9u * j;
    unsigned a = 0, b = 0;
    for (int step = 0; step < 78; step++) {
        a = s[step % 26] = turned(s[step % 26] + a + b, 3);
        b = l[step % 3] = turned(l[step % 3] + a + b, a + b);
    }
    a = plain0 + s[0];
    b = plain1 + s[1];
    for (int r = 1; r <= 12; r++) {
        a = turned(a ^ b, b) + s[2 * r];
        b = turned(b ^ a, a) + s[2 * r + 1];
    }
    if (((a ^ cipher) & mask) != 0) return;
    unsigned place = atomicAdd(list, 1) + 1;
    if (place < room) list[place] = i;
}
