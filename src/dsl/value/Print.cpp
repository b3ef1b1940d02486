// Print: printf with formats derived from the values' types.
#include "kiln/language/value/print.h"
#include "dsl/kernel/State.h"
#include "kiln/language/value/control.h"
#include "support/Error.h"

namespace kiln {

/// The value as printf takes it, and its conversion.
static std::pair<Value, const char *> prepare(const Value &value,
                                              const Where &at) {
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
  case Type::e2m1:
  case Type::e2m3:
  case Type::e3m2:
  case Type::ue8m0:
  case Type::ue4m3:
    break;
  }
  userErrorAt(at, "print has no format for {}; cast it to f32",
              name(value.type()));
}

/// Refuse a format that has more or fewer {} than there are values.
static void checkFormat(const std::string &format, std::size_t values,
                        const Where &where) {
  std::size_t places = 0;
  for (std::size_t at = format.find("{}"); at != std::string::npos;
       at = format.find("{}", at + 2))
    ++places;
  if (places != values)
    userErrorAt(where, "print(\"{}\") has {} {{}} than its {} values", format,
                places > values ? "more" : "fewer", values);
}

void print(const std::string &format, std::initializer_list<At> values,
           Where where) {
  auto &state = KernelBuilder::State::current(where);
  checkFormat(format, values.size(), where);
  std::string text;
  llvm::SmallVector<mlir::Value> operands;
  auto next = values.begin();
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] == '%') {
      text += "%%";
    } else if (format.compare(i, 2, "{}") == 0) {
      auto [value, conversion] = prepare(value_of(*next), where);
      text += conversion;
      operands.push_back(state.use(value, where));
      ++next, ++i;
    } else {
      text += format[i];
    }
  }
  mlir::gpu::PrintfOp::create(state.builder, state.at(where), text + "\n",
                              operands);
}

void print(const std::string &format, std::initializer_list<At> values,
           const PrintOptions &options, Where where) {
  auto &state = KernelBuilder::State::current(where);
  checkFormat(format, values.size(), where);
  int threads = state.contract.block[0];
  if (options.thread < -1 || options.thread >= threads)
    userErrorAt(where,
                "print is asked of thread {} of a CTA of {}; 0 to {} "
                "are there, and -1 is all of them",
                options.thread, threads, threads - 1);
  if (options.is_debug && !options.force && !state.options.debug_print)
    return;
  std::optional<Value> condition = options.predicate;
  if (options.thread >= 0) {
    Value isThread = thread_id(Axis::x, where) == At(options.thread, where);
    condition = condition ? isThread && At(*condition, where) : isThread;
  }
  if (!condition)
    return print(format, values, where);
  if_(At(*condition, where), [&] { print(format, values, where); });
}

} // namespace kiln
