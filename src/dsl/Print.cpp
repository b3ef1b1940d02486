// Print: printf with formats derived from the values' types.
#include "kiln/print.h"
#include "dsl/State.h"
#include "support/Error.h"

namespace kiln {

/// The value as printf takes it, and its conversion.
static std::pair<Value, const char *> prepare(const Value &value,
                                              const std::source_location &at) {
  switch (value.type()) {
  case Type::i1:
    return {cast(At(value, at), Type::u32), "%i"};
  case Type::i8:
  case Type::i16:
    return {cast(At(value, at), Type::i32), "%d"};
  case Type::i32:
    return {value, "%d"};
  case Type::i64:
    return {value, "%lld"};
  case Type::u8:
  case Type::u16:
    return {cast(At(value, at), Type::u32), "%u"};
  case Type::u32:
    return {value, "%u"};
  case Type::u64:
  case Type::index:
    return {value, "%llu"};
  case Type::f16:
  case Type::bf16:
    return {cast(At(value, at), Type::f32), "%f"};
  case Type::tf32:
  case Type::f32:
  case Type::f64:
    return {value, "%f"};
  case Type::e4m3:
  case Type::e5m2:
    break;
  }
  userErrorAt(at, "print has no format for {}; cast it to f32",
              name(value.type()));
}

void print(const std::string &format, std::initializer_list<At> values,
           std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  std::string text;
  llvm::SmallVector<mlir::Value> operands;
  auto next = values.begin();
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] == '%') {
      text += "%%";
    } else if (format.compare(i, 2, "{}") == 0) {
      if (next == values.end())
        userErrorAt(where, "print(\"{}\") has more {{}} than its {} values",
                    format, values.size());
      auto [value, conversion] = prepare(value_of(*next), where);
      text += conversion;
      operands.push_back(state.use(value, where));
      ++next, ++i;
    } else {
      text += format[i];
    }
  }
  if (next != values.end())
    userErrorAt(where, "print(\"{}\") has fewer {{}} than its {} values",
                format, values.size());
  mlir::gpu::PrintfOp::create(state.builder, state.at(where), text + "\n",
                              operands);
}

} // namespace kiln
