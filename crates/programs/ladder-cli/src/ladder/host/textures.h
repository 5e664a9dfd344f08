namespace host {

// An array of texels: axes that are missing are 0.
template <class T>
cudaArray_t array(size_t x, size_t y, size_t z, unsigned flags) {
    cudaArray_t result = nullptr;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
    CHECK(cudaMalloc3DArray(&result, &format, make_cudaExtent(x, y, z), flags));
    return result;
}

template <class T>
void fill_array(cudaArray_t to, size_t x, size_t y, size_t z, const void* from, cudaMemcpyKind kind) {
    size_t rows = y ? y : 1;
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr((void*)from, x * sizeof(T), x, rows);
    copy.dstArray = to;
    copy.extent = make_cudaExtent(x, rows, z ? z : 1);
    copy.kind = kind;
    CHECK(cudaMemcpy3D(&copy));
}

inline cudaTextureObject_t texture(cudaArray_t array, cudaTextureAddressMode outside, cudaTextureFilterMode filter,
                                   cudaTextureReadMode read, int normalized) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc how = {};
    how.addressMode[0] = how.addressMode[1] = how.addressMode[2] = outside;
    how.filterMode = filter;
    how.readMode = read;
    how.normalizedCoords = normalized;
    cudaTextureObject_t object = 0;
    CHECK(cudaCreateTextureObject(&object, &resource, &how, nullptr));
    return object;
}

}  // namespace host
