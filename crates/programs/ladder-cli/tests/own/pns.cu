// A thread a word of runs, whose tokens lie beside those of its neighbours.
// array: unsigned tokens[2 * rows * rows * words]
// launch: simulate<<<(words + 63) / 64, 64>>>(marking, rows, words, steps, seed, tokens)
// launch: count<<<((rows + 1) * words + 63) / 64, 64>>>(tokens, rows, words, sums)
__device__ void along(unsigned* a, unsigned* b, unsigned moves) {
    unsigned both = (*a ^ *b) & moves;
    *a ^= both;
    *b ^= both;
}

__device__ void across(unsigned* upper, unsigned* lower, unsigned climbs) {
    unsigned both = (*upper & ~*lower) | (~*upper & *lower & climbs);
    *upper ^= both;
    *lower ^= both;
}

__global__ void simulate(const unsigned* marking, int rows, int words, int steps, unsigned long long seed, unsigned* tokens) {
    int word = blockIdx.x * blockDim.x + threadIdx.x, columns = 2 * rows;
    if (word >= words) return;
    for (int place = 0; place < rows * columns; place++) tokens[place * words + word] = marking[place] ? 0xffffffffu : 0;
    for (int h = 0; h < 2 * steps; h++) {
        int o = h % 2;
        for (int tile = 0; tile < rows / 2 * rows; tile++) {
            int i = tile / rows, j = tile % rows, top = (2 * i - o + rows) % rows, bottom = 2 * i - o + 1;
            int left = 2 * j + o, right = (2 * j + o + 1) % columns;
            unsigned r[4] = {(unsigned)(i * rows + j), (unsigned)h, (unsigned)word, 0}, k[2] = {(unsigned)seed, (unsigned)(seed >> 32)};
            for (int round = 0; round < 10; round++) {
                unsigned long long p = 0xD2511F53ull * r[0], q = 0xCD9E8D57ull * r[2];
                unsigned next[4] = {(unsigned)(q >> 32) ^ r[1] ^ k[0], (unsigned)q, (unsigned)(p >> 32) ^ r[3] ^ k[1], (unsigned)p};
                for (int c = 0; c < 4; c++) r[c] = next[c];
                k[0] += 0x9E3779B9;
                k[1] += 0xBB67AE85;
            }
            unsigned *a = tokens + (top * columns + left) * words + word, *b = tokens + (top * columns + right) * words + word;
            unsigned *c = tokens + (bottom * columns + left) * words + word, *d = tokens + (bottom * columns + right) * words + word;
            along(a, b, r[0]);
            along(c, d, r[1]);
            if (bottom == 0) continue;
            across(a, c, r[2]);
            across(b, d, r[3]);
        }
    }
}

__global__ void count(const unsigned* tokens, int rows, int words, unsigned long long* sums) {
    int index = blockIdx.x * blockDim.x + threadIdx.x, word = index / (rows + 1), y = index % (rows + 1), columns = 2 * rows;
    if (word >= words) return;
    int first = y < rows ? y * columns : 0, last = y < rows ? first + columns : rows * columns;
    unsigned long long sum = 0, squares = 0;
    for (int run = 0; run < 32; run++) {
        unsigned long long t = 0;
        for (int place = first; place < last; place++) t += tokens[place * words + word] >> run & 1;
        sum += t;
        squares += t * t;
    }
    sums[2 * index] = sum;
    sums[2 * index + 1] = squares;
}
