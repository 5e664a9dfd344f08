// to[line, c] += Σ_s values[view, s, row] · responses[view, s, c], with line = view · rows + row. A block
// takes a line.

extern "C" __global__ void __launch_bounds__(THREADS)
add_outer(const float* __restrict__ values, const float* __restrict__ responses, float* __restrict__ to, const unsigned rows,
          const unsigned columns, const unsigned sides) {
    const unsigned view = blockIdx.x / rows, row = blockIdx.x % rows;
    const float* factors = values + (unsigned long long)view * sides * rows + row;
    const float* of_view = responses + (unsigned long long)view * sides * columns;
    float* line = to + (unsigned long long)blockIdx.x * columns;
    for (unsigned c = threadIdx.x; c < columns; c += THREADS) {
        float sum = line[c];
        for (unsigned s = 0; s < sides; s++) sum += factors[s * rows] * of_view[(unsigned long long)s * columns + c];
        line[c] = sum;
    }
}
