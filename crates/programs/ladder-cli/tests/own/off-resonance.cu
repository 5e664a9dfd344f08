// A thread a number.
extern "C" __global__ void off_resonance_modulate(const float* field, double tau, const float2* x, float2* y, int images, int voxels) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= images * voxels) return;
    double turns = field[i % voxels] * tau;
    float s, c;
    sincospif((float)(2 * (turns - rint(turns))), &s, &c);
    y[i] = make_float2(c * x[i].x - s * x[i].y, c * x[i].y + s * x[i].x);
}

extern "C" __global__ void off_resonance_weigh(const float2* by_time, const unsigned* index, const float2* x, float2* y, int coils, int samples) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= coils * samples) return;
    float2 w = by_time[index[i % samples]];
    y[i] = make_float2(w.x * x[i].x + w.y * x[i].y, w.x * x[i].y - w.y * x[i].x);
}
