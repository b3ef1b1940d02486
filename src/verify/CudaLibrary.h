// CudaLibrary: a library of CUDA's, found at run time.
#pragma once

#include <initializer_list>
#include <string>

namespace kiln {

/// The first of these names that the loader has, or that lies in the folder
/// CUDA_HOME names or in /usr/local/cuda; empty: none.
std::string findCudaLibrary(std::initializer_list<const char *> names);

} // namespace kiln
