// The operations of a step as kernels of their own, and what every variant begins with. Scalars stay on the
// GPU: a kernel that needs one adds up what the blocks of an earlier kernel have left.

// u = 0, r = b inside of the boundary, both directions r.
extern "C" __global__ void begin(const float* __restrict__ b, float* u, float* r, float* d, float* other, double* squares,
                                 int nx, int ny, int nz) {
    const Mesh m{nx, ny, nz};
    const long long n = m.node(0, 0, nz + 1);
    float sum = 0;
    EACH(i, n) {
        const float v = m.inner(i) ? b[i] : 0;
        u[i] = 0, r[i] = v, d[i] = v, other[i] = v;
        sum += v * v;
    }
    leave(squares, sum);
}

extern "C" __global__ void dot(const float* __restrict__ a, const float* __restrict__ b, double* parts, long long n) {
    float sum = 0;
    EACH(i, n) sum += a[i] * b[i];
    leave(parts, sum);
}

// y += sign · square / curvature · v.
extern "C" __global__ void add(float* y, const float* __restrict__ v, const double* square, int squares,
                               const double* curvature, int curvatures, float sign, long long n) {
    const float alpha = sign * over(total(square, squares), total(curvature, curvatures));
    EACH(i, n) y[i] += alpha * v[i];
}

// d = r + now / before · d.
extern "C" __global__ void turn(float* d, const float* __restrict__ r, const double* now, int nows, const double* before,
                                int befores, long long n) {
    const float beta = over(total(now, nows), total(before, befores));
    EACH(i, n) d[i] = r[i] + beta * d[i];
}
