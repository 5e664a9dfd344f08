// Ends the program where a call of CUDA fails, with the line.
#define CHECK(call)                                                                                            \
    do {                                                                                                       \
        cudaError_t error = (call);                                                                            \
        if (error != cudaSuccess) {                                                                            \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error));          \
            exit(1);                                                                                           \
        }                                                                                                      \
    } while (0)

namespace host {

// The file with inputs and expected outputs: the one that is named, or the one here or beside the program.
class Data {
public:
    Data(const char* named, const char* program) {
        std::string beside(program), source(__FILE__);
        beside = beside.substr(0, beside.rfind('/') + 1) + HOST_DATA;
        source = source.substr(0, source.rfind('/') + 1) + HOST_DATA;
        FILE* file = nullptr;
        if (named) file = fopen(named, "rb");
        for (const std::string& path : {std::string(HOST_DATA), source, beside}) {
            if (!named && !file) file = fopen(path.c_str(), "rb");
        }
        if (!file) stop("cannot be read");
        bytes.resize(HOST_BYTES + 1);
        size_t count = fread(bytes.data(), 1, bytes.size(), file);
        fclose(file);
        if (count != HOST_BYTES || memcmp(bytes.data(), "RAYSPIN1", 8) != 0) stop("does not belong to this program");
    }
    const unsigned char* at(size_t offset) const { return bytes.data() + offset; }

private:
    [[noreturn]] static void stop(const char* why) {
        fprintf(stderr, "%s %s\n", HOST_DATA, why);
        exit(1);
    }
    std::vector<unsigned char> bytes;
};

// A place in an array, as a pointer of any type.
struct Place {
    void* at;
    template <class T>
    operator T*() const {
        return (T*)at;
    }
};
inline Place at(void* array, size_t bytes) { return Place{(char*)array + bytes}; }

// Copies an output back and compares it with the expected one: the length of the difference over the length of what
// is expected, or the share of the numbers that differ. Without `ordered` the numbers may stand in any order.
template <class T>
bool compare(const char* name, const void* on_gpu, const unsigned char* bytes, size_t count, bool ordered = true) {
    std::vector<T> found(count), expected(count);
    CHECK(cudaMemcpy(found.data(), on_gpu, count * sizeof(T), cudaMemcpyDeviceToHost));
    memcpy(expected.data(), bytes, count * sizeof(T));
    if (!ordered) {
        std::sort(found.begin(), found.end());
        std::sort(expected.begin(), expected.end());
    }
    double difference = 0, length = 0, differ = 0;
    size_t first = count;
    for (size_t i = 0; i < count; i++) {
        double f = (double)found[i], e = (double)expected[i];
        // Both are no number where nobody writes.
        bool same = found[i] == expected[i] || (f != f && e != e);
        if (!same && first == count) first = i;
        differ += !same;
        if (!same) difference += std::isfinite(f) && std::isfinite(e) ? (f - e) * (f - e) : INFINITY;
        if (std::isfinite(e)) length += e * e;
    }
    double error = difference == 0 ? 0 : sqrt(difference / length), share = count ? differ / count : 0;
    bool right = error <= HOST_TOLERANCE || (!std::is_floating_point<T>::value && share <= HOST_TOLERANCE);
    if (right) {
        printf("%s: %zu numbers, error %.2g\n", name, count, error);
    } else {
        printf("%s: %zu of %zu numbers differ, error %.2g, at most %.2g; [%zu] is %.9g, expected %.9g\n", name, (size_t)differ,
               count, error, HOST_TOLERANCE, first, (double)found[first], (double)expected[first]);
    }
    return right;
}

inline void tell(bool right, float milliseconds) {
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    printf("%s: %s, %.4f ms for one run, the first, on %s\n", HOST_NAME, right ? "right" : "WRONG", milliseconds,
           properties.name);
}

}  // namespace host
