// Five images of one simulated scan: true, gridded, and least squares in double precision, in single
// precision, and in single precision with the special-function units. Prints their errors, and writes them
// side by side.
//
//   nvcc -O3 -std=c++17 -arch=native mri-4-sfu.cu -o sfu && ./sfu 128        on a GPU
//   rayspin-ladder run mri-4-sfu.cu                                          without one: its __sinf is exact
//
// The scan: n/2 spokes of 2n samples through the centre of k-space, of an object of ellipses whose transform
// is known in closed form. Least squares solves (Q/(n^2 m) + lambda) rho = F^H d / m by conjugate gradients,
// with Q by direct sums over the doubled grid, as the chapters MRI 2 to MRI 4 describe.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                   \
    do {                                                                                              \
        cudaError_t error = (call);                                                                   \
        if (error != cudaSuccess) { printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)); exit(1); } \
    } while (0)

enum Sine { LIBRARY, SPECIAL };

// e^{i 2 pi turns}.
template <Sine SINE, class T>
__device__ void wave(T turns, T* re, T* im) {
    if (SINE == SPECIAL) {
        float angle = 6.28318531f * (float)(turns - rint(turns));
        *re = __cosf(angle);
        *im = __sinf(angle);
    } else if (sizeof(T) == 8) {
        *re = cospi(2 * (double)turns);
        *im = sinpi(2 * (double)turns);
    } else {
        *re = cospif(2 * (float)turns);
        *im = sinpif(2 * (float)turns);
    }
}

// out(x) = sum over m of (re, im)_m e^{i 2 pi k_m x}, of side * side places that are 1/n apart, 0 in the
// middle.
template <Sine SINE, class T>
__global__ void sums(const T* kx, const T* ky, const T* re, const T* im, int m, T* out, int side, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= side * side) return;
    T x = (T)(i % side - side / 2) / n, y = (T)(i / side - side / 2) / n, a = 0, b = 0;
    for (int s = 0; s < m; s++) {
        T c, d;
        wave<SINE, T>(kx[s] * x + ky[s] * y, &c, &d);
        a += re[s] * c - im[s] * d;
        b += re[s] * d + im[s] * c;
    }
    out[2 * i] = a;
    out[2 * i + 1] = b;
}

// out = Q convolved with x, over n^2 m, plus lambda x.
template <class T>
__global__ void normal(const T* q, const T* x, T* out, int n, T scale, T lambda) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * n) return;
    int px = i % n, py = i / n, side = 2 * n;
    T a = 0, b = 0;
    for (int j = 0; j < n * n; j++) {
        int at = 2 * ((py - j / n + n) * side + px - j % n + n);
        a += q[at] * x[2 * j] - q[at + 1] * x[2 * j + 1];
        b += q[at] * x[2 * j + 1] + q[at + 1] * x[2 * j];
    }
    out[2 * i] = scale * a + lambda * x[2 * i];
    out[2 * i + 1] = scale * b + lambda * x[2 * i + 1];
}

template <class T>
T* upload(const std::vector<double>& values) {
    std::vector<T> own(values.begin(), values.end());
    T* on;
    CHECK(cudaMalloc(&on, own.size() * sizeof(T)));
    CHECK(cudaMemcpy(on, own.data(), own.size() * sizeof(T), cudaMemcpyHostToDevice));
    return on;
}

template <class T>
std::vector<T> download(const T* on, size_t count) {
    std::vector<T> own(count);
    CHECK(cudaMemcpy(own.data(), on, count * sizeof(T), cudaMemcpyDeviceToHost));
    return own;
}

struct Scan {
    int n, m;
    std::vector<double> kx, ky, re, im, one, zero;
};

template <Sine SINE, class T>
std::vector<T> summed(const Scan& scan, const std::vector<double>& re, const std::vector<double>& im, int side) {
    T *kx = upload<T>(scan.kx), *ky = upload<T>(scan.ky), *a = upload<T>(re), *b = upload<T>(im), *out;
    CHECK(cudaMalloc(&out, 2 * sizeof(T) * side * side));
    sums<SINE, T><<<(side * side + 127) / 128, 128>>>(kx, ky, a, b, scan.m, out, side, scan.n);
    CHECK(cudaGetLastError());
    std::vector<T> values = download(out, (size_t)2 * side * side);
    for (T* array : {kx, ky, a, b, out}) cudaFree(array);
    return values;
}

template <Sine SINE, class T>
std::vector<double> solve(const Scan& scan, int iterations, double lambda) {
    int n = scan.n, count = 2 * n * n;
    std::vector<T> q = summed<SINE, T>(scan, scan.one, scan.zero, 2 * n);
    std::vector<T> rhs = summed<SINE, T>(scan, scan.re, scan.im, n);
    T *on_q = upload<T>(std::vector<double>(q.begin(), q.end())), *on_p, *on_ap;
    CHECK(cudaMalloc(&on_p, count * sizeof(T)));
    CHECK(cudaMalloc(&on_ap, count * sizeof(T)));
    std::vector<T> x(count, 0), r(count), p(count);
    for (int i = 0; i < count; i++) p[i] = r[i] = rhs[i] / scan.m;
    auto dot = [&](const std::vector<T>& a, const std::vector<T>& b) {
        double sum = 0;
        for (int i = 0; i < count; i++) sum += (double)a[i] * b[i];
        return sum;
    };
    double rr = dot(r, r);
    for (int step = 0; step < iterations; step++) {
        CHECK(cudaMemcpy(on_p, p.data(), count * sizeof(T), cudaMemcpyHostToDevice));
        normal<T><<<(n * n + 127) / 128, 128>>>(on_q, on_p, on_ap, n, (T)(1.0 / n / n / scan.m), (T)lambda);
        CHECK(cudaGetLastError());
        std::vector<T> ap = download(on_ap, (size_t)count);
        T alpha = (T)(rr / dot(p, ap));
        for (int i = 0; i < count; i++) x[i] += alpha * p[i], r[i] -= alpha * ap[i];
        double next = dot(r, r);
        T beta = (T)(next / rr);
        for (int i = 0; i < count; i++) p[i] = r[i] + beta * p[i];
        rr = next;
    }
    cudaFree(on_q), cudaFree(on_p), cudaFree(on_ap);
    return std::vector<double>(x.begin(), x.end());
}

// Density, half axes, middle, turn; in fields of view and radians.
const double ELLIPSES[][6] = {
    {1.0, 0.42, 0.46, 0.0, 0.0, 0.0},      {-0.6, 0.37, 0.41, 0.0, 0.0, 0.0},    {0.3, 0.08, 0.18, -0.14, 0.05, 0.3},
    {0.25, 0.06, 0.16, 0.13, 0.03, -0.35}, {-0.2, 0.1, 0.06, 0.02, -0.22, 0.1},  {0.4, 0.025, 0.025, 0.0, 0.24, 0.0},
    {0.3, 0.015, 0.03, 0.06, 0.25, 0.6},   {0.5, 0.008, 0.008, -0.05, 0.2, 0.0},
};

int main(int argc, char** argv) {
    const double PI = 3.14159265358979323846;
    int n = argc > 1 ? atoi(argv[1]) : 24;
    if (n < 8 || n > 512 || n % 2) { printf("expected an even side from 8 to 512\n"); return 2; }
    Scan scan{n, n * n, {}, {}, {}, {}, {}, {}};
    std::vector<double> weighed_re, weighed_im;
    for (int spoke = 0; spoke < n / 2; spoke++) {
        for (int s = 0; s < 2 * n; s++) {
            double k = 0.5 * (s - n), angle = PI * spoke / (n / 2), kx = k * cos(angle), ky = k * sin(angle), re = 0, im = 0;
            for (auto& e : ELLIPSES) {
                double u = e[1] * (kx * cos(e[5]) + ky * sin(e[5])), v = e[2] * (ky * cos(e[5]) - kx * sin(e[5]));
                double q = sqrt(u * u + v * v), turns = kx * e[3] + ky * e[4];
                double value = e[0] * e[1] * e[2] * (q < 1e-9 ? PI : j1(2 * PI * q) / q);
                re += value * cos(2 * PI * turns);
                im -= value * sin(2 * PI * turns);
            }
            double weight = (k == 0 ? 0.125 : fabs(k)) * 0.5 * PI / (n / 2);
            scan.kx.push_back(kx), scan.ky.push_back(ky), scan.re.push_back(re), scan.im.push_back(im);
            scan.one.push_back(1), scan.zero.push_back(0);
            weighed_re.push_back(weight * re), weighed_im.push_back(weight * im);
        }
    }
    std::vector<double> truth(2 * n * n, 0);
    for (int i = 0; i < n * n; i++) {
        for (int part = 0; part < 64; part++) {
            double x = (i % n - n / 2 + (part % 8 - 3.5) / 8) / n, y = (i / n - n / 2 + (part / 8 - 3.5) / 8) / n;
            for (auto& e : ELLIPSES) {
                double u = ((x - e[3]) * cos(e[5]) + (y - e[4]) * sin(e[5])) / e[1];
                double v = ((y - e[4]) * cos(e[5]) - (x - e[3]) * sin(e[5])) / e[2];
                truth[2 * i] += u * u + v * v <= 1 ? e[0] / 64 : 0;
            }
        }
    }
    auto apart = [&](const std::vector<double>& a, const std::vector<double>& b) {
        double off = 0, whole = 0;
        for (size_t i = 0; i < a.size(); i++) off += (a[i] - b[i]) * (a[i] - b[i]), whole += b[i] * b[i];
        return sqrt(off / whole);
    };
    std::vector<double> q = summed<LIBRARY, double>(scan, scan.one, scan.zero, 2 * n);
    auto of_q = [&](const std::vector<float>& other) { return apart(std::vector<double>(other.begin(), other.end()), q); };
    printf("%d x %d voxels, %d samples\n", n, n, scan.m);
    printf("error of Q: single %.1e, with special functions %.1e\n", of_q(summed<LIBRARY, float>(scan, scan.one, scan.zero, 2 * n)),
           of_q(summed<SPECIAL, float>(scan, scan.one, scan.zero, 2 * n)));
    std::vector<double> gridded = summed<LIBRARY, double>(scan, weighed_re, weighed_im, n);
    const double lambda = 1e-5;
    printf("gridded: %.2f %% off the truth\n", 100 * apart(gridded, truth));
    std::vector<std::vector<double>> images = {truth, gridded};
    for (int iterations : {10, 30}) {
        std::vector<double> twice = solve<LIBRARY, double>(scan, iterations, lambda);
        std::vector<double> once = solve<LIBRARY, float>(scan, iterations, lambda);
        std::vector<double> special = solve<SPECIAL, float>(scan, iterations, lambda);
        printf("%d iterations, off the truth: double %.4f %%, single %.4f %%, special functions %.4f %%\n", iterations,
               100 * apart(twice, truth), 100 * apart(once, truth), 100 * apart(special, truth));
        printf("%d iterations, off the image in double precision: single %.1e, special functions %.1e\n", iterations,
               apart(once, twice), apart(special, twice));
        if (iterations == 30) images.insert(images.end(), {twice, once, special});
    }
    FILE* file = fopen("mri-4-sfu.pgm", "wb");
    if (!file) { printf("mri-4-sfu.pgm cannot be written\n"); return 1; }
    fprintf(file, "P5 %d %d 255\n", 5 * n, n);
    for (int y = n - 1; y >= 0; y--) {
        for (auto& image : images) {
            for (int x = 0; x < n; x++) {
                double size = hypot(image[2 * (y * n + x)], image[2 * (y * n + x) + 1]);
                fputc((int)fmin(255, 255 * size), file);
            }
        }
    }
    fclose(file);
    printf("mri-4-sfu.pgm: true, gridded, double, single, special functions\n");
}
