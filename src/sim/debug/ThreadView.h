// ThreadView: what one thread can see: its registers by the names of the PTX,
// its memory, its variables. It looks, and changes nothing.
#pragma once

#include "sim/debug/Expression.h"
#include "sim/machine/Machine.h"

namespace kiln::sim {

/// Bytes of some space, where they are.
struct SeenBytes {
  const std::uint8_t *data = nullptr;
  const ValidBits *valid = nullptr; ///< null: all of them are written
  std::size_t offset = 0;           ///< of the first, in `valid`
  std::string what = {};            ///< "shared address 1024 (byte 0 of tile)"

  bool isWritten(std::size_t at, std::size_t bytes) const {
    return !valid || valid->all(offset + at, bytes);
  }
};

class ThreadView final : public ExpressionScope {
public:
  ThreadView(Warp &warp, int lane) : warp_(warp), lane_(lane) {}

  DebugValue registerValue(const std::string &name,
                           std::optional<Type> type) override;
  DebugValue memory(const std::string &space, std::uint64_t address,
                    Type type) override;
  DebugValue symbol(const std::string &name, bool isParameter) override;

  /// shared, global, local, param or generic. Throws UserError.
  SeenBytes see(const std::string &space, std::uint64_t address,
                std::size_t bytes);
  /// Of a name or an expression, in that space.
  std::uint64_t addressOf(const std::string &text, const std::string &space);

  /// The group that the lane is in; null: it has left the kernel.
  const Group *group() const;
  /// The function that it is in.
  const FunctionCode &function() const;

private:
  std::optional<std::uint64_t> parameter(const std::string &name) const;
  SeenBytes seeShared(std::uint64_t address, std::size_t bytes);
  SeenBytes seeGlobal(std::uint64_t address, std::size_t bytes);

  Warp &warp_;
  int lane_;
};

/// The type in which a register is shown where nobody names one.
Type shownType(ptx::ScalarType type);

} // namespace kiln::sim
