// Matrix: bounds, bytes that were written, numbers.
#include "cublas/Matrix.h"
#include "kiln/check/simulation.h"
#include "support/Half.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace kiln::cublas {

std::size_t bytesOf(Element element) {
  static constexpr std::size_t kBytes[] = {2, 2, 4, 8, 1, 4};
  return kBytes[static_cast<std::size_t>(element)];
}

const char *name(Element element) {
  static constexpr const char *kNames[] = {"f16", "bf16", "f32",
                                           "f64", "i8",   "i32"};
  return kNames[static_cast<std::size_t>(element)];
}

template <typename T> static T bitsAt(const std::byte *from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

static double load(Element element, const std::byte *from) {
  switch (element) {
  case Element::f16:
    return halfToFloat(bitsAt<std::uint16_t>(from));
  case Element::bf16:
    return bfloatToFloat(bitsAt<std::uint16_t>(from));
  case Element::f32:
    return bitsAt<float>(from);
  case Element::f64:
    return bitsAt<double>(from);
  case Element::i8:
    return bitsAt<std::int8_t>(from);
  case Element::i32:
    return bitsAt<std::int32_t>(from);
  }
  return 0;
}

template <typename T> static void put(std::byte *to, T value) {
  std::memcpy(to, &value, sizeof(value));
}

static void store(Element element, std::byte *to, double value) {
  switch (element) {
  case Element::f16:
    return put(to, floatToHalf(static_cast<float>(value)));
  case Element::bf16:
    return put(to, floatToBfloat(static_cast<float>(value)));
  case Element::f32:
    return put(to, static_cast<float>(value));
  case Element::f64:
    return put(to, value);
  case Element::i8:
    return put(to, static_cast<std::int8_t>(
                       std::clamp(std::nearbyint(value), -128.0, 127.0)));
  case Element::i32: // wraps around, as the hardware's sums do
    return put(to, static_cast<std::int32_t>(
                       static_cast<std::int64_t>(std::nearbyint(value))));
  }
}

double numberAt(Element element, const void *from) {
  return load(element, static_cast<const std::byte *>(from));
}

void putNumber(Element element, void *to, double value) {
  store(element, static_cast<std::byte *>(to), value);
}

Access::Access(std::string function)
    : function_(std::move(function)),
      simulation_(*cudart::Session::get().device().simulation()) {}

void Access::report(const std::string &id, const Matrix &matrix,
                    const char *verb, std::size_t bytes, std::uint64_t address,
                    const std::string &what) const {
  cudart::Session::get().tellHost(
      {.id = id,
       .message = fmt::format(
           "{} {} {} bytes of {} ({} x {} of {}, leading dimension {}, at "
           "{:#x}) at global address {:#x}: {}",
           function_, verb, bytes, matrix.name, matrix.rows, matrix.columns,
           name(matrix.element), matrix.ld, matrix.address, address, what),
       .space = "global",
       .address = address,
       .kernel = function_});
}

std::byte *Access::at(const Matrix &matrix, std::uint64_t address,
                      std::size_t bytes, bool isWrite) const {
  const char *verb = isWrite ? "writes" : "reads";
  Simulation::Place place = simulation_.touch(address, bytes, isWrite);
  if (!place.data) {
    report(place.is_freed ? "use-after-free" : "out-of-bounds", matrix, verb,
           bytes, address, place.what);
    throw BadAccess();
  }
  if (!isWrite && place.unwritten && !std::exchange(hasTold_, true))
    report("uninitialized-store", matrix, verb, bytes, address,
           fmt::format("no thread wrote byte {} of them, and what depends on it "
                       "goes to global memory",
                       *place.unwritten));
  return place.data;
}

std::vector<double> Access::read(const Matrix &matrix) const {
  std::vector<double> values;
  std::size_t size = bytesOf(matrix.element);
  auto rows = static_cast<std::size_t>(matrix.rows);
  for (std::int64_t j = 0; j < matrix.columns && rows; ++j) {
    const std::byte *from = at(matrix, matrix.column(j), rows * size, false);
    for (std::size_t i = 0; i < rows; ++i)
      values.push_back(load(matrix.element, from + i * size));
  }
  return values;
}

void Access::write(const Matrix &matrix,
                   const std::vector<double> &values) const {
  std::size_t size = bytesOf(matrix.element), next = 0;
  auto rows = static_cast<std::size_t>(matrix.rows);
  for (std::int64_t j = 0; j < matrix.columns && rows; ++j) {
    std::byte *to = at(matrix, matrix.column(j), rows * size, true);
    for (std::size_t i = 0; i < rows; ++i)
      store(matrix.element, to + i * size, values[next++]);
  }
}

std::vector<std::uint64_t> Access::readPointers(const void *const *array,
                                                std::int64_t count) const {
  Matrix pointers{"the array of pointers",
                  reinterpret_cast<std::uint64_t>(array),
                  Element::f64,
                  count,
                  1,
                  count};
  auto bytes = static_cast<std::size_t>(count) * sizeof(std::uint64_t);
  std::vector<std::uint64_t> all(static_cast<std::size_t>(count));
  std::memcpy(all.data(), at(pointers, pointers.address, bytes, false), bytes);
  return all;
}

} // namespace kiln::cublas
