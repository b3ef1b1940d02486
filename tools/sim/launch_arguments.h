// launch_arguments: what a launch file passes to a kernel, or puts into a
// buffer: pointers, numbers, tensor maps, and structs of them.
#pragma once

#include "launch_file.h"
#include "support/text/JsonNode.h"

#include <map>

namespace kiln::cli {

/// A type of buffers and scalars, or of maps.
Type read_type(const JsonNode &node, bool can_be_tf32 = false);
/// Refuse what is not an alignment that buffers have.
void check_align(const JsonNode &node);
/// An argument as bytes.
StructArgument to_bytes(ArgumentValue value);

/// Reads arguments that may name any buffer of the file; both lists must
/// outlive it.
class ArgumentReader {
public:
  ArgumentReader(const std::vector<BufferSpec> &buffers,
                 const std::map<std::string, std::size_t> &index)
      : buffers_(buffers), index_(index) {}

  ArgumentValue read(const JsonNode &node) const;

private:
  std::size_t find_buffer(const JsonNode &name) const;
  BufferArgument read_pointer(const JsonNode &node) const;
  TensorMapArgument read_tensor_map(const JsonNode &node) const;
  StructArgument read_struct(const JsonNode &node) const;

  const std::vector<BufferSpec> &buffers_;
  const std::map<std::string, std::size_t> &index_;
};

} // namespace kiln::cli
