// TmaInstructions: bulk copies and reductions of boxes of a tensor map.
//
// A copy is work of its own (Cluster::enqueue): it reads and writes when the
// order says, and then signals its mbarrier or its group.
#include "sim/Bulk.h"
#include "sim/Swizzled.h"
#include "sim/TensorMapImage.h"
#include "support/Error.h"

#include <algorithm>
#include <cstring>

namespace kiln::sim {

namespace {
/// A decoded tensor copy.
struct TensorCopy {
  int rank = 0;
  bool isStore = false;
  AddressOperand destination, map, barrier, source;
  Reg mask; ///< not valid: no multicast
  std::optional<ReductionKind> reduction;
  std::vector<Reg> coordinates;
};

/// One box, with everything known.
struct Box {
  TensorMap map;
  std::array<std::int64_t, 5> start{};
  int elementBytes = 1;
  std::uint32_t bytes = 0; ///< copied, and counted by the mbarrier
  /// From row to row of the tile: a row as wide as the swizzle, however narrow
  /// the box.
  std::uint32_t pitch = 0;
  std::uint32_t tileBytes = 0; ///< from the first byte of the tile to its last
  std::optional<Reduction> reduction;

  std::uint32_t rowBytes() const { return map.box[0] * elementBytes; }
};
} // namespace

/// Call `row(tile offset, coordinates of its first element)` for each innermost
/// row of a box.
template <typename Row> static void forEachRow(const Box &box, Row &&row) {
  std::size_t rank = box.map.box.size();
  std::array<std::uint32_t, 5> index{};
  std::uint32_t offset = 0;
  for (;;) {
    std::array<std::int64_t, 5> at = box.start;
    for (std::size_t i = 1; i < rank; ++i)
      at[i] += std::int64_t(index[i]) * box.map.element_strides[i];
    row(offset, at);
    offset += box.pitch;
    std::size_t axis = 1;
    for (; axis < rank; ++axis) {
      if (++index[axis] < box.map.box[axis])
        break;
      index[axis] = 0;
    }
    if (axis >= rank)
      return;
  }
}

/// Whether the outer coordinates of a row lie in the tensor, and its address.
static bool isRowInside(const Box &box, const std::array<std::int64_t, 5> &at,
                        std::uint64_t &address) {
  address = box.map.address;
  for (std::size_t i = 1; i < box.map.dims.size(); ++i) {
    if (at[i] < 0 || at[i] >= static_cast<std::int64_t>(box.map.dims[i]))
      return false;
    address += static_cast<std::uint64_t>(at[i]) * box.map.strides_bytes[i - 1];
  }
  return true;
}

/// What an element outside the tensor reads as.
static void fillOutside(const Box &box, std::uint8_t *row, std::size_t bytes) {
  if (box.map.oob == OobFill::zeros) {
    std::memset(row, 0, bytes);
    return;
  }
  // The driver's "NaN, request zero FMA" pattern, per 16 bits.
  for (std::size_t i = 0; i + 1 < bytes; i += 2) {
    row[i] = 0xf7;
    row[i + 1] = 0x7f;
  }
}

/// Read one row of a box; `written` holds what was never written too.
static void gatherRow(Machine &machine, const Box &box,
                      const std::array<std::int64_t, 5> &at,
                      std::vector<std::uint8_t> &row, ValidBits &written) {
  std::uint64_t address;
  fillOutside(box, row.data(), row.size());
  written.set(0, row.size());
  if (!isRowInside(box, at, address))
    return;
  auto width = static_cast<std::int64_t>(box.map.box[0]);
  auto limit = static_cast<std::int64_t>(box.map.dims[0]);
  std::int64_t first = std::max<std::int64_t>(0, -at[0]);
  std::int64_t last = std::min(width, limit - at[0]);
  if (first >= last)
    return;
  int size = box.elementBytes;
  Region *region = machine.memory().find(address);
  std::uint64_t begin = address + (at[0] + first) * size;
  auto offset = static_cast<std::size_t>(first * size);
  copyBytes({row.data() + offset, &written, offset},
            {region->at(begin), &region->valid, begin - region->base},
            static_cast<std::size_t>((last - first) * size));
}

/// Write one row of a box to the tensor, leaving out what lies outside, or
/// reduce it into the tensor. False where some of it was never written.
static bool scatterRow(Machine &machine, const Box &box,
                       const std::array<std::int64_t, 5> &at,
                       const Place &row) {
  std::uint64_t address;
  if (!isRowInside(box, at, address))
    return true;
  bool isWritten = true;
  Region *region = machine.memory().find(address);
  for (std::uint32_t i = 0; i < box.map.box[0]; ++i) {
    std::int64_t x = at[0] + std::int64_t(i);
    if (x < 0 || x >= static_cast<std::int64_t>(box.map.dims[0]))
      continue;
    std::uint64_t begin = address + x * box.elementBytes;
    Place element = row.behind(i * box.elementBytes);
    Place to{region->at(begin), &region->valid, begin - region->base};
    isWritten &= element.isWritten(box.elementBytes);
    if (box.reduction)
      reduceGlobal(*box.reduction, to, element.data, box.elementBytes);
    else
      copyBytes(to, element, box.elementBytes);
  }
  return isWritten;
}

/// Copy a row to or from shared memory, 16 bytes at a time.
template <typename Chunk>
static void forEachChunk(std::uint32_t address, std::size_t bytes,
                         Swizzle swizzle, Chunk &&chunk) {
  for (std::size_t i = 0; i < bytes; i += 16)
    chunk(swizzled(address + static_cast<std::uint32_t>(i),
                   static_cast<std::uint32_t>(swizzle)) -
              kFirstSharedAddress,
          i, std::min<std::size_t>(16, bytes - i));
}

static void loadBox(Machine &machine, const Box &box, Cta &cta,
                    std::uint32_t destination) {
  std::vector<std::uint8_t> row(box.rowBytes());
  ValidBits written(row.size());
  forEachRow(box, [&](std::uint32_t offset,
                      const std::array<std::int64_t, 5> &at) {
    gatherRow(machine, box, at, row, written);
    forEachChunk(destination + offset, row.size(), box.map.swizzle,
                 [&](std::uint32_t to, std::size_t from, std::size_t bytes) {
                   copyBytes({cta.shared.data() + to, &cta.sharedValid, to},
                             {row.data() + from, &written, from}, bytes);
                 });
  });
}

namespace {
/// A box on its way, without the swizzle.
struct Tile {
  std::vector<std::uint8_t> data;
  ValidBits written;

  explicit Tile(std::size_t bytes) : data(bytes), written(bytes) {}
  Place at(std::size_t offset) {
    return {data.data() + offset, &written, offset};
  }
};
} // namespace

static void readTile(const Box &box, Cta &cta, std::uint32_t source,
                     Tile &tile) {
  for (std::size_t offset = 0; offset < tile.data.size(); offset += box.pitch)
    forEachChunk(source + static_cast<std::uint32_t>(offset), box.rowBytes(),
                 box.map.swizzle,
                 [&](std::uint32_t from, std::size_t to, std::size_t bytes) {
                   copyBytes(tile.at(offset + to),
                             {cta.shared.data() + from, &cta.sharedValid, from},
                             bytes);
                 });
}

/// False where bytes that nobody wrote have reached the tensor.
static bool storeBox(Machine &machine, const Box &box, Tile &tile) {
  bool isWritten = true;
  forEachRow(box,
             [&](std::uint32_t offset, const std::array<std::int64_t, 5> &at) {
               isWritten &= scatterRow(machine, box, at, tile.at(offset));
             });
  return isWritten;
}

/// What a reduction does to the elements of a map.
static Reduction reductionOf(Warp &warp, const Op &op, ReductionKind kind,
                             const TensorMap &map, int lane) {
  std::optional<ptx::ScalarType> type = reducedType(map.type);
  Reduction reduction{kind, type.value_or(ptx::ScalarType::b8)};
  if (!reduction.isKnown())
    warp.machine().fault("tensor-map", warp, op, LaneMask(1) << lane,
                         fmt::format("the operation {} is not one of tensors "
                                     "of {}",
                                     name(kind), kiln::name(map.type)));
  return reduction;
}

/// Read the map and the coordinates of one lane, with the hardware's rules.
static Box readBox(Warp &warp, const Op &op, const TensorCopy &copy, int lane) {
  LaneMask bit = LaneMask(1) << lane;
  Machine &machine = warp.machine();
  Accessor accessor(warp, op, "reading a tensor map");
  std::uint64_t address = copy.map.read(warp, op, lane);
  Place place = accessor.locate(Space::generic, address, kTensorMapBytes, 64,
                                lane, false);
  if (HappensBefore *order = warp.order())
    order->useTensorMap(warp, op, lane, address);
  std::optional<TensorMap> map = decode(place.data);
  if (!map)
    machine.fault("tensor-map", warp, op, bit,
                  "the bytes at the tensor map's address are no tensor map");
  // A box spans what it takes every n-th element of; the innermost dimension
  // has no stride, whatever the map says.
  for (std::size_t i = 1; i < map->box.size(); ++i)
    map->box[i] =
        (map->box[i] + map->element_strides[i] - 1) / map->element_strides[i];
  Box box;
  box.map = *map;
  if (static_cast<int>(map->dims.size()) != copy.rank)
    machine.fault("tensor-map", warp, op, bit,
                  fmt::format("the tensor map has {} dimensions, the "
                              "instruction {}",
                              map->dims.size(), copy.rank));
  if (copy.reduction)
    box.reduction = reductionOf(warp, op, *copy.reduction, *map, lane);
  box.elementBytes = size_bytes(map->type);
  box.bytes = static_cast<std::uint32_t>(box.elementBytes);
  for (int i = 0; i < copy.rank; ++i) {
    box.start[i] =
        static_cast<std::int32_t>(warp.read(copy.coordinates[i], lane));
    box.bytes *= map->box[i];
    if (warp.poison(copy.coordinates[i]) & bit)
      machine.fault("uninitialized-address", warp, op, bit,
                    "a coordinate depends on bytes that nobody wrote");
    if (copy.isStore && box.start[i] < 0)
      machine.fault("tma-coordinate", warp, op, bit,
                    fmt::format("a store starts at coordinate {} in dimension "
                                "{}; the hardware traps on negative ones",
                                box.start[i], i));
  }
  box.pitch = map->swizzle == Swizzle::none
                  ? box.rowBytes()
                  : static_cast<std::uint32_t>(map->swizzle);
  box.tileBytes = box.bytes / box.rowBytes() * box.pitch;
  if (box.start[0] * box.elementBytes % 16 != 0)
    machine.fault("tma-coordinate", warp, op, bit,
                  fmt::format("the innermost coordinate {} is {} bytes into a "
                              "row; the hardware traps unless it is a multiple "
                              "of 16",
                              box.start[0], box.start[0] * box.elementBytes));
  // The whole tensor must be there; then so is every box of it.
  std::uint64_t last = map->address;
  for (std::size_t i = 1; i < map->dims.size(); ++i)
    last += (map->dims[i] - 1) * map->strides_bytes[i - 1];
  accessor.locateGlobal(map->address, 1, 16, lane, copy.isStore);
  accessor.locateGlobal(last, map->dims[0] * box.elementBytes, 1, lane,
                        copy.isStore);
  return box;
}

/// Tell the order which bytes of the tensor a box reads or writes.
static void touchTensor(HappensBefore &order, Access &access, const Box &box) {
  auto limit = static_cast<std::int64_t>(box.map.dims[0]);
  std::int64_t stride = box.map.element_strides[0];
  std::int64_t width = box.map.box[0];
  forEachRow(box, [&](std::uint32_t, const std::array<std::int64_t, 5> &at) {
    std::uint64_t address;
    if (!isRowInside(box, at, address))
      return;
    std::int64_t run = stride == 1 ? width : 1;
    for (std::int64_t i = 0; i < width; i += run) {
      std::int64_t first = std::max<std::int64_t>(0, at[0] + i * stride);
      std::int64_t last = std::min(limit, at[0] + i * stride + run);
      if (first < last)
        order.touchGlobal(access, address + first * box.elementBytes,
                          static_cast<std::size_t>(last - first) *
                              box.elementBytes);
    }
  });
}

static Step loadTensor(Warp &warp, const Op &op, LaneMask active) {
  const auto &copy = *static_cast<const TensorCopy *>(op.extra.get());
  Cluster &cluster = warp.cta().cluster();
  forEachLane(active, [&](int lane) {
    Box box = readBox(warp, op, copy, lane);
    SharedRange destination =
        sharedRange(warp, op, copy.destination, box.tileBytes, 128, lane);
    SharedRange barrier = sharedRange(warp, op, copy.barrier, 8, 8, lane);
    std::uint32_t mask =
        multicastMask(warp, op, copy.mask, *destination.owner, lane);
    HappensBefore *order = warp.order();
    if (order && mask) {
      Cta &first = copy.mask.isValid() ? cluster.cta(std::countr_zero(mask))
                                       : *barrier.owner;
      Access read =
          copyOnBarrier(warp, op, lane, first, barrier.address, false);
      touchTensor(*order, read, box);
    }
    forEachCta(cluster, mask, [&](Cta &target) {
      Cta &signalled = copy.mask.isValid() ? target : *barrier.owner;
      if (order) {
        order->use(warp, op, lane, signalled, barrier.address);
        Access write =
            copyOnBarrier(warp, op, lane, signalled, barrier.address, true);
        order->touchShared(write, target,
                           destination.address - kFirstSharedAddress,
                           box.tileBytes);
        target.shadow.swizzles[write.record.op] =
            static_cast<int>(box.map.swizzle);
      }
      cluster.enqueue(
          [&warp, &op, lane, box, &target, &signalled, destination, barrier] {
            loadBox(warp.machine(), box, target, destination.address);
            completeTx(warp, op, lane, signalled, barrier.address, box.bytes);
          });
    });
  });
  return Step::next;
}

/// Those of `lanes` that store the same tile to the same place as `lane`.
static LaneMask alikeStores(Warp &warp, const Op &op, const TensorCopy &copy,
                            LaneMask lanes, int lane) {
  LaneMask alike = 0;
  forEachLane(lanes, [&](int other) {
    auto isSame = [&](Reg reg) {
      return warp.read(reg, other) == warp.read(reg, lane);
    };
    if (copy.map.read(warp, op, other) == copy.map.read(warp, op, lane) &&
        copy.source.read(warp, op, other) == copy.source.read(warp, op, lane) &&
        std::all_of(copy.coordinates.begin(),
                    copy.coordinates.begin() + copy.rank, isSame))
      alike |= LaneMask(1) << other;
  });
  return alike;
}

static Step storeTensor(Warp &warp, const Op &op, LaneMask active) {
  const auto &copy = *static_cast<const TensorCopy *>(op.extra.get());
  std::uint32_t time = ++warp.clock.now;
  for (LaneMask left = active; left;) {
    int lane = firstLane(left);
    Box box = readBox(warp, op, copy, lane);
    // Compilers let a whole warp issue a store with one set of operands; it is
    // made once, and each lane has it in its group. A reduction would count.
    LaneMask alike = copy.reduction ? LaneMask(1) << lane
                                    : alikeStores(warp, op, copy, left, lane);
    left &= ~alike;
    SharedRange source =
        sharedRange(warp, op, copy.source, box.tileBytes, 128, lane);
    if (HappensBefore *order = warp.order()) {
      Access read =
          order->issued(warp, op, lane, false, warp.clock.bulkReads, time);
      read.issuers = read.record.lanes = alike;
      order->touchShared(read, *source.owner,
                         source.address - kFirstSharedAddress, box.tileBytes);
      Access write =
          order->issued(warp, op, lane, true, warp.clock.bulkWrites, time);
      write.issuers = write.record.lanes = alike;
      if (box.reduction)
        write.record.flags |= Record::kStrong | unsigned(Scope::gpu)
                                                    << Record::kScopeShift;
      touchTensor(*order, write, box);
    }
    auto tile = std::make_shared<Tile>(box.tileBytes);
    auto work = enqueueStore(
        warp.cta().cluster(), op,
        [box, source, tile] {
          readTile(box, *source.owner, source.address, *tile);
        },
        [&warp, &op, lane, box, tile] {
          if (!storeBox(warp.machine(), box, *tile) &&
              warp.machine().config().hasChecks)
            reportUnwritten(warp, op, lane);
        });
    forEachLane(alike,
                [&](int other) { warp.bulk[other].open.push_back(work); });
  }
  return Step::next;
}

static Step nothing(Warp &, const Op &, LaneMask) { return Step::next; }

/// [map, {coordinates}]
static void decodeMapOperand(Decoder &decoder, const ptx::Operand &operand,
                             TensorCopy &copy) {
  copy.map = AddressOperand::decode(decoder, operand);
  copy.coordinates = decoder.vector(operand.elements.at(1), 4);
}

static void decodeTensorCopy(Decoder &decoder,
                             const ptx::Instruction &instruction, Op &op) {
  TensorCopy copy;
  for (int rank = 1; rank <= 5; ++rank)
    if (instruction.has(fmt::format("{}d", rank).c_str()))
      copy.rank = rank;
  for (const char *form : {"im2col", "tile::gather4", "tile::scatter4",
                           "cta_group::2", "im2col_no_offs"})
    if (instruction.has(form))
      decoder.refuse(instruction, fmt::format("the form .{}", form));
  const auto &operands = instruction.operands;
  if (instruction.has("prefetch")) {
    op.handler = nothing;
    return;
  }
  copy.isStore =
      instruction.modifiers.size() > 3 && instruction.has("bulk_group");
  if (copy.isStore) {
    decodeMapOperand(decoder, operands.at(0), copy);
    copy.source = AddressOperand::decode(decoder, operands.at(1));
    if (instruction.has("reduce"))
      copy.reduction = reductionKind(decoder, instruction);
    op.handler = storeTensor;
  } else {
    copy.destination = AddressOperand::decode(decoder, operands.at(0));
    decodeMapOperand(decoder, operands.at(1), copy);
    copy.barrier = AddressOperand::decode(decoder, operands.at(2));
    if (instruction.has("multicast::cluster"))
      copy.mask = decoder.reg(operands.at(3), 2);
    op.handler = loadTensor;
  }
  if (static_cast<int>(copy.coordinates.size()) != copy.rank)
    decoder.refuse(instruction,
                   fmt::format("{} coordinates for rank {}",
                               copy.coordinates.size(), copy.rank));
  op.extra = std::make_shared<TensorCopy>(std::move(copy));
}

static void decodeCopy(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  if (!instruction.has("bulk"))
    return decodeAsyncCopy(decoder, instruction, op);
  if (!instruction.has("tensor"))
    return decodeBulkCopy(decoder, instruction, op);
  decodeTensorCopy(decoder, instruction, op);
}

static void decodePrefetch(Decoder &, const ptx::Instruction &, Op &op) {
  op.handler = nothing;
}

std::vector<Instruction> tmaInstructions() {
  return {
      {"cp", decodeCopy, "tma",
       "async and its groups and mbarrier arrivals; async.bulk plain and "
       "tensor tiled, multicast too; reduce.async.bulk of both; groups"},
      {"prefetch", decodePrefetch, "tma", "every form; no effect"},
      {"prefetchu", decodePrefetch, "tma", "no effect"},
      {"createpolicy", decodePrefetch, "tma", "no effect"},
      {"applypriority", decodePrefetch, "tma", "no effect"},
      {"discard", decodePrefetch, "tma", "no effect"},
      {"tensormap", decodeTensorMap, "tma",
       "replace of every field of tiled maps; cp_fenceproxy"},
  };
}

} // namespace kiln::sim
