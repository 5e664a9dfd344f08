// Coil sensitivities: a thread a voxel, the coils in turn.

#define THREADS 256
#define EACH(i, n) \
    for (unsigned long long i = blockIdx.x * (unsigned long long)THREADS + threadIdx.x; i < (n); \
         i += gridDim.x * (unsigned long long)THREADS)

// y_j = c_j ρ
extern "C" __global__ void __launch_bounds__(THREADS)
expand(const cplx* __restrict__ maps, const cplx* __restrict__ image, cplx* __restrict__ out,
       unsigned long long voxels, unsigned coils) {
    EACH(i, voxels) {
        cplx here = image[i];
        for (unsigned j = 0; j < coils; j++) out[j * voxels + i] = mul(maps[j * voxels + i], here);
    }
}

// ρ = Σ_j conj(c_j) y_j, or that added to ρ
extern "C" __global__ void __launch_bounds__(THREADS)
combine(const cplx* __restrict__ maps, const cplx* __restrict__ images, cplx* __restrict__ out,
        unsigned long long voxels, unsigned coils, unsigned add) {
    EACH(i, voxels) {
        cplx sum = add ? out[i] : make_cplx(0, 0);
        for (unsigned j = 0; j < coils; j++)
            sum = sum + mul_conj(maps[j * voxels + i], images[j * voxels + i]);
        out[i] = sum;
    }
}

// Σ_j |y_j|², that added to what is there, or its root
extern "C" __global__ void __launch_bounds__(THREADS)
sum_of_squares(const cplx* __restrict__ images, real* __restrict__ out, unsigned long long voxels, unsigned coils,
               unsigned root, unsigned add) {
    EACH(i, voxels) {
        double sum = add ? (double)out[i] : 0.0;
        for (unsigned j = 0; j < coils; j++) {
            cplx y = images[j * voxels + i];
            sum += (double)y.x * y.x + (double)y.y * y.y;
        }
        out[i] = (real)(root ? sqrt(sum) : sum);
    }
}

// ρ ← ρ / Σ_j |c_j|², 0 where no coil sees anything
extern "C" __global__ void __launch_bounds__(THREADS)
normalise(const cplx* __restrict__ maps, cplx* __restrict__ image, unsigned long long voxels, unsigned coils) {
    EACH(i, voxels) {
        double sum = 0.0;
        for (unsigned j = 0; j < coils; j++) {
            cplx c = maps[j * voxels + i];
            sum += (double)c.x * c.x + (double)c.y * c.y;
        }
        real weight = (real)sum;
        cplx here = image[i];
        image[i] = weight > 0 ? make_cplx(here.x / weight, here.y / weight) : make_cplx(0, 0);
    }
}

// ρ ← ρ / w, 0 where no coil sees anything
extern "C" __global__ void __launch_bounds__(THREADS)
divide(const real* __restrict__ weights, cplx* __restrict__ image, unsigned long long voxels) {
    EACH(i, voxels) {
        real weight = weights[i];
        cplx here = image[i];
        image[i] = weight > 0 ? make_cplx(here.x / weight, here.y / weight) : make_cplx(0, 0);
    }
}
