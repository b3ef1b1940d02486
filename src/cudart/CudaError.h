// CudaError: an error that has a number of CUDA's own.
#pragma once

#include "kiln/base/error.h"

namespace kiln::cudart {

class CudaError : public UserError {
public:
  CudaError(int code, std::string message)
      : UserError(std::move(message)), code_(code) {}
  int code() const { return code_; }

private:
  int code_;
};

/// Those that are thrown where CUDA's names of them are not known.
enum CudaCode : int {
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kNotPermitted = 800,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureMerge = 902,
  kCaptureUnmatched = 903,
  kCaptureUnjoined = 904,
  kCaptureIsolation = 905,
  kCaptureImplicit = 906,
  kCapturedEvent = 907,
  kCaptureWrongThread = 908,
};

} // namespace kiln::cudart
