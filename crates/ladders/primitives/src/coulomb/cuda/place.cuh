// Potential of point charges (x, y, z, q) at the points of a grid. A point's place is rounded to float once,
// as on the CPU.

// 1/√v to 2 units of the last place, ∞ at 0: one instruction of the special-function unit.
static __device__ __forceinline__ float inverse_root(float v) {
#ifdef RAYSPIN_EMULATED
    return rsqrtf(v);
#else
    float r;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
#endif
}

static __device__ __forceinline__ float place(float origin, float spacing, int at) {
    return fmaf((float)at, spacing, origin);
}
