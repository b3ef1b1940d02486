// buffer.h: what a device hands out: memory, streams and events.
#pragma once

#include <kiln/base/export.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace KILN_API kiln {

/// Device memory. Copies share it; the last one frees it, unless it is a view
/// of memory somebody else owns (Device::wrap).
class Buffer {
public:
  Buffer() = default;
  Buffer(std::uint64_t address, std::size_t bytes,
         std::shared_ptr<void> owner = nullptr)
      : address_(address), bytes_(bytes), owner_(std::move(owner)) {}

  std::uint64_t address() const { return address_; }
  std::size_t bytes() const { return bytes_; }
  /// The bytes [offset, offset + bytes) of it; keeps the whole alive.
  Buffer slice(std::size_t offset, std::size_t bytes) const;

private:
  std::uint64_t address_ = 0;
  std::size_t bytes_ = 0;
  std::shared_ptr<void> owner_;
};

/// An ordered queue of work; a default-constructed one is the default stream.
/// `native` is the driver's handle, so that a CUstream or cudaStream_t of
/// another library can be used: Stream(reinterpret_cast<void*>(theirs)).
class Stream {
public:
  Stream() = default;
  explicit Stream(void *native, std::shared_ptr<void> owner = nullptr)
      : native_(native), owner_(std::move(owner)) {}
  void *native() const { return native_; }

private:
  void *native_ = nullptr;
  std::shared_ptr<void> owner_;
};

/// A point in a stream, for timing.
class Event {
public:
  Event() = default;
  explicit Event(void *native, std::shared_ptr<void> owner = nullptr)
      : native_(native), owner_(std::move(owner)) {}
  void *native() const { return native_; }

private:
  void *native_ = nullptr;
  std::shared_ptr<void> owner_;
};

} // namespace kiln
