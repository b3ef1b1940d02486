// AsyncCopy: cp.async, one instruction each.
#include "dsl/kernel/State.h"
#include "kiln/language/memory/async_copy.h"
#include "support/Error.h"

namespace kiln {

/// Refuse what one cp.async cannot copy.
static void checkCopy(const Element &to, const Element &from, int bytes,
                      const Where &where) {
  if (!to.is_shared() || from.is_shared())
    userErrorAt(where, "async_copy goes from an element of a tensor to one of "
                       "a shared tile");
  if (to.type() != from.type())
    userErrorAt(where, "async_copy from {} to {}; both have one type",
                name(from.type()), name(to.type()));
  if (bytes != 4 && bytes != 8 && bytes != 16)
    userErrorAt(where, "async_copy of {} bytes; it takes 4, 8 or 16", bytes);
}

void async_copy(const Element &to, const Element &from, int count,
                const AsyncCopyOptions &options, Where where) {
  auto &state = KernelBuilder::State::current(where);
  int size = size_bytes(from.type()), bytes = count * size;
  checkCopy(to, from, bytes, where);
  state.needAlignment(from.argument(), bytes);
  bool isPast = bytes == 16 && !options.through_l1;
  std::string text = fmt::format("cp.async.{}.shared.global [$0], [$1], {}",
                                 isPast ? "cg" : "ca", bytes);
  std::string constraints = "l,l";
  llvm::SmallVector<mlir::Value> operands = {state.use(to.address(), where),
                                             state.use(from.address(), where)};
  if (options.valid) {
    Value valid = *options.valid;
    state.use(At(valid, where), Type::i32);
    operands.push_back(state.use(valid * At(size, where), where));
    text += ", $2";
    constraints += ",r";
  }
  state.inlineAsm(text + ";", constraints + ",~{memory}", operands, nullptr,
                  where);
}

void async_copy_commit(Where where) {
  KernelBuilder::State::current(where).inlineAsm(
      "cp.async.commit_group;", "~{memory}", {}, nullptr, where);
}

void async_copy_wait(int groups, Where where) {
  auto &state = KernelBuilder::State::current(where);
  if (groups < 0)
    userErrorAt(where, "{} groups of copies cannot be in flight; 0 or more can",
                groups);
  state.inlineAsm(fmt::format("cp.async.wait_group {};", groups), "~{memory}",
                  {}, nullptr, where);
}

void async_copy_wait_all(Where where) {
  KernelBuilder::State::current(where).inlineAsm(
      "cp.async.wait_all;", "~{memory}", {}, nullptr, where);
}

} // namespace kiln
