// Cluster: ids, barrier and remote shared memory of a cluster.
#include "kiln/language/threads/cluster.h"
#include "dsl/kernel/State.h"
#include "support/Error.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace kiln {

/// Take the cluster of the options into the contract.
void KernelBuilder::State::setCluster() {
  const ClusterShape &cluster = options.cluster;
  std::int64_t ctas = std::int64_t(cluster.x) * cluster.y * cluster.z;
  if (cluster.x < 1 || cluster.y < 1 || cluster.z < 1 ||
      ctas > device.max_cluster_ctas)
    userErrorAt(where,
                "kernel {} has clusters of {}x{}x{} CTAs; {} takes 1 to {} in "
                "all, at least 1 along each axis",
                name, cluster.x, cluster.y, cluster.z, options.target,
                device.max_cluster_ctas);
  contract.cluster = {cluster.x, cluster.y, cluster.z};
}

int KernelBuilder::State::clusterCtas() const {
  return contract.cluster[0] * contract.cluster[1] * contract.cluster[2];
}

void checkCluster(const KernelBuilder::State &state) {
  static constexpr const char *kAxes[] = {"x", "y", "z"};
  for (int axis = 0; axis < 3; ++axis) {
    const Dim &grid = state.contract.grid[axis];
    int cluster = state.contract.cluster[axis];
    if (grid.is_constant() && grid.constant() % cluster != 0)
      userErrorAt(
          state.where,
          "the grid of kernel {} has {} CTAs along {}; with clusters of "
          "{} it must be a multiple of {}",
          state.name, grid.constant(), kAxes[axis], cluster, cluster);
  }
}

mlir::Value KernelBuilder::State::ctaMask(const At &mask, const Where &where_) {
  int size = clusterCtas();
  auto *literal = std::get_if<std::int64_t>(&mask.operand());
  if (literal && (*literal < 1 || *literal >> size))
    userErrorAt(where_,
                "the mask {:#x} does not name CTAs of a cluster of {}; 0x1 to "
                "{:#x} do",
                *literal, size, (1 << size) - 1);
  Value bits = cast(At(resolve(mask, Type::i32), where_), Type::i16);
  return use(bits, where_);
}

mlir::Value KernelBuilder::State::remoteAddress(mlir::Value address,
                                                const At &rank,
                                                const Where &where_) {
  auto *literal = std::get_if<std::int64_t>(&rank.operand());
  if (literal && (*literal < 0 || *literal >= clusterCtas()))
    userErrorAt(rank.where(), "there is no CTA {} in a cluster of {}", *literal,
                clusterCtas());
  return mlir::NVVM::MapaOp::create(builder, at(where_), pointer(7), address,
                                    use(rank, Type::i32));
}

/// A special register of the cluster.
template <typename Op> static Value read(const Where &where) {
  auto &state = KernelBuilder::State::current(where);
  mlir::Value value =
      Op::create(state.builder, state.at(where), state.builder.getI32Type());
  return state.wrap(value, Type::i32);
}

Value cluster_id(Axis axis, Where where) {
  switch (axis) {
  case Axis::x:
    return read<mlir::NVVM::ClusterIdXOp>(where);
  case Axis::y:
    return read<mlir::NVVM::ClusterIdYOp>(where);
  default:
    return read<mlir::NVVM::ClusterIdZOp>(where);
  }
}

Value cta_in_cluster(Axis axis, Where where) {
  switch (axis) {
  case Axis::x:
    return read<mlir::NVVM::BlockInClusterIdXOp>(where);
  case Axis::y:
    return read<mlir::NVVM::BlockInClusterIdYOp>(where);
  default:
    return read<mlir::NVVM::BlockInClusterIdZOp>(where);
  }
}

Value cluster_rank(Where where) { return read<mlir::NVVM::ClusterId>(where); }

Value cluster_size(Where where) { return read<mlir::NVVM::ClusterDim>(where); }

/// Whole warps meet at the barrier.
static KernelBuilder::State &stateOfAll(const char *what, const Where &where) {
  auto &state = KernelBuilder::State::current(where);
  if (state.isOneThread)
    userErrorAt(where,
                "{} stands inside one_thread; every thread of the cluster "
                "meets at its barrier",
                what);
  return state;
}

void cluster_arrive(Where where) {
  auto &state = stateOfAll("cluster_arrive", where);
  state.inlineAsm("barrier.cluster.arrive.release.aligned;", "~{memory}", {},
                  nullptr, where);
}

void cluster_arrive_relaxed(Where where) {
  auto &state = stateOfAll("cluster_arrive_relaxed", where);
  state.inlineAsm("barrier.cluster.arrive.relaxed.aligned;", "~{memory}", {},
                  nullptr, where);
}

void cluster_wait(Where where) {
  auto &state = stateOfAll("cluster_wait", where);
  state.inlineAsm("barrier.cluster.wait.acquire.aligned;", "~{memory}", {},
                  nullptr, where);
}

void cluster_sync(Where where) {
  cluster_arrive(where);
  cluster_wait(where);
}

RemoteTile map_shared(const SharedTile &tile, At rank, Where where) {
  auto &state = KernelBuilder::State::current(where);
  if (tile.is_transposed())
    userErrorAt(where, "map_shared takes a tile as it is stored, not its "
                       "transpose; swap the indices instead");
  mlir::Value address =
      state.remoteAddress(state.use(tile.address(where), where), rank, where);
  return Make::a<RemoteTile>(state.wrap(address, Type::u32), tile.layout());
}

Element RemoteTile::operator()(At row, At column) const {
  // The same offsets; the address carries its space with it.
  return Make::a<SharedTile>(address_, layout_)(row, column);
}

std::vector<Value> RemoteTile::load_vector(At row, At column, int count) const {
  return Make::a<SharedTile>(address_, layout_).load_vector(row, column, count);
}

} // namespace kiln
