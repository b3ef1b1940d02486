// Fingerprint: operations in their order, with all they refer to by number.
//
// What is referred to (attributes, types, locations, values, blocks) is
// numbered as it is met; the first time an attribute, type or location is met
// its text follows. So equal bytes are equal modules, whatever the process.
#include "lower/Fingerprint.h"

#include "mlir/IR/AsmState.h"

namespace kiln {

namespace {

class Writer {
public:
  explicit Writer(mlir::MLIRContext *context) : state_(context) {}

  void write(mlir::Operation &op);

  std::string bytes; ///< so far

private:
  /// Seven bits to a byte; most numbers are small.
  void number(std::uint32_t value) {
    for (; value >= 0x80; value >>= 7)
      bytes.push_back(static_cast<char>(value | 0x80));
    bytes.push_back(static_cast<char>(value));
  }
  /// The number of something that was met before, or is met now.
  void reference(const void *thing) {
    number(things_.try_emplace(thing, things_.size()).first->second);
  }
  /// An attribute or a type; a location is an attribute.
  template <typename Printed> void unique(Printed printed) {
    const void *thing = printed.getAsOpaquePointer();
    auto [found, isNew] = things_.try_emplace(thing, things_.size());
    number(found->second);
    if (isNew && printed)
      text([&](llvm::raw_ostream &stream) { printed.print(stream, state_); });
  }
  /// What `print` prints, and how long it is.
  template <typename Print> void text(const Print &print) {
    text_.clear();
    llvm::raw_svector_ostream stream(text_);
    print(stream);
    number(static_cast<std::uint32_t>(text_.size()));
    bytes.append(text_.data(), text_.size());
  }
  void properties(mlir::Operation &op);
  void write(mlir::Region &region);

  mlir::AsmState state_;
  llvm::SmallString<256> text_;
  llvm::DenseMap<const void *, std::uint32_t> things_;
  /// Operations whose properties were met first, by hash: to ask each for its
  /// properties as an attribute would take longer than all the rest.
  llvm::DenseMap<std::size_t, llvm::SmallVector<mlir::Operation *, 1>> known_;
};

} // namespace

void Writer::properties(mlir::Operation &op) {
  if (op.getPropertiesStorageSize() == 0)
    return;
  std::size_t hash = llvm::hash_combine(op.getName().getAsOpaquePointer(),
                                        op.hashProperties());
  auto &alike = known_[hash];
  for (mlir::Operation *one : alike)
    if (one->getName() == op.getName() &&
        op.getName().compareOpProperties(one->getPropertiesStorage(),
                                         op.getPropertiesStorage()))
      return reference(one);
  alike.push_back(&op);
  reference(&op);
  unique(op.getPropertiesAsAttribute());
}

void Writer::write(mlir::Operation &op) {
  unique(op.getName().getIdentifier());
  unique(mlir::LocationAttr(op.getLoc()));
  unique(op.getRawDictionaryAttrs());
  properties(op);
  number(op.getNumOperands());
  for (mlir::Value operand : op.getOperands())
    reference(operand.getAsOpaquePointer());
  number(op.getNumResults());
  for (mlir::Value result : op.getResults()) {
    reference(result.getAsOpaquePointer());
    unique(result.getType());
  }
  number(op.getNumSuccessors());
  for (mlir::Block *successor : op.getSuccessors())
    reference(successor);
  number(op.getNumRegions());
  for (mlir::Region &region : op.getRegions())
    write(region);
}

void Writer::write(mlir::Region &region) {
  number(static_cast<std::uint32_t>(region.getBlocks().size()));
  for (mlir::Block &block : region) {
    reference(&block);
    number(block.getNumArguments());
    for (mlir::BlockArgument argument : block.getArguments()) {
      reference(argument.getAsOpaquePointer());
      unique(argument.getType());
      unique(mlir::LocationAttr(argument.getLoc()));
    }
    number(static_cast<std::uint32_t>(block.getOperations().size()));
    for (mlir::Operation &op : block)
      write(op);
  }
}

std::string fingerprint(mlir::Operation *root) {
  Writer writer(root->getContext());
  writer.write(*root);
  return std::move(writer.bytes);
}

} // namespace kiln
