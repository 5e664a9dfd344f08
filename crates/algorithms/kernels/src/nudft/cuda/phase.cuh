// e^{i2πk·x} of sample k (`dims` numbers, x first) at a point in fields of view: whole turns are taken off in
// f64.
static __device__ __forceinline__ double turns_at(const double* k, int dims, double x, double y, double z) {
    double turns = k[0] * x;
    if (dims > 1) turns += k[1] * y;
    if (dims > 2) turns += k[2] * z;
    return turns - rint(turns);
}
