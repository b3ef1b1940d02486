// Lesson 9: attention. Two products with a softmax between them, of which no
// score ever leaves the registers:
//
//     O[i] = sum over j of softmax_j(Q[i] . K[j] / 8) * V[j]
//
// f16, [heads, sequence, 64]. A CTA has 64 queries of one head: a producer
// loads blocks of 64 keys and values, and a consumer multiplies. Built up in
// two steps: `overlaps` says which.
#include "lessons.h"

#include <cmath>

using namespace kiln;

namespace lessons {

constexpr int kRows = 64, kKeys = 64, kDim = 64;
constexpr double kScale = 1.4426950408889634 / 8; // log2(e) / sqrt(kDim)

namespace {
// Scores arrive block by block, and a softmax needs the maximum of all of them.
// So a row keeps the largest score so far and the sum of exponentials relative
// to it; where a block has a larger one, what was summed before is multiplied
// by exp(old - new). O is scaled in the same way, and divided once at the end.
struct Softmax {
  RegisterTile largest, sum, rescale;

  explicit Softmax(const RegisterLayout &rows)
      : largest(f32, rows, -INFINITY), sum(f32, rows, 0.0),
        rescale(f32, rows, 1.0) {}

  // exp2 is one instruction, exp is not: log2(e) is folded into the scale. A
  // tile with a value per row stands for each element of the row.
  RegisterTile take(const RegisterTile &scores) {
    RegisterTile next = max(largest, reduce_rows(scores, Reduction::max));
    rescale = exp2((largest - next) * kScale);
    RegisterTile weights = exp2(fma(scores, kScale, -(next * kScale)));
    sum = sum * rescale + reduce_rows(weights, Reduction::add);
    largest = next;
    return weights;
  }
};
} // namespace

// Keys behind the end are zeros, and zeros have a weight too: of the last block
// their scores become -infinity.
static void mask(RegisterTile &scores, const Value &first, int keys) {
  for (int i = 0; i < scores.registers(); ++i)
    scores.set(i, select(first + scores.column(i) < keys, scores.element(i),
                         -INFINITY));
}

Module attention(const AttentionShape &shape, bool overlaps) {
  KernelBuilder kb("attention", {.warpgroups = 2, .ftz = true});
  auto map = [&](const char *name, int length, int rows) {
    return kb.tensor_map(name, f16, {shape.heads, length, kDim},
                         {.tile = {1, rows, kDim}, .swizzle = Swizzle::b128});
  };
  TmaTensor q = map("q", shape.queries, kRows), k = map("k", shape.keys, kKeys),
            v = map("v", shape.keys, kKeys);
  Tensor o = kb.tensor("o", f16, {shape.heads, shape.queries, kDim});
  kb.grid(ceil_div(shape.queries, kRows), shape.heads);
  Value row = block_id() * kRows, head = block_id(Axis::y);
  int blocks = (shape.keys + kKeys - 1) / kKeys;

  // Q stays for the whole CTA. K and V have a ring each: a block of K is free
  // long before the block of V beside it.
  Pipeline k_pipe(kb, 2, {k}, {.name = "k"}), v_pipe(kb, 2, {v}, {.name = "v"});
  LoadedTile queries = tma_load_once(kb, q, {head, row, 0});

  warpgroup(1, {.registers = 24}, [&] {
    one_thread([&] {
      for_range(0, blocks, [&](Value block) {
        for (auto [pipe, tensor] :
             {std::pair{&k_pipe, &k}, std::pair{&v_pipe, &v}})
          pipe->produce([&](const Slot &slot) {
            slot.load(*tensor, {head, block * kKeys, 0});
          });
      });
    });
  });

  warpgroup(0, {.registers = 240}, [&] {
    Accumulator s(f32, kRows, kKeys), acc(f32, kRows, kDim);
    Softmax softmax(s.layout().per_row());
    acc.start_from(RegisterTile(f32, acc.layout(), 0.0));
    RegisterTile weights(f16, s.layout());

    // Q K^T of a block. Transposed, a tile is read the other way round.
    auto issue_scores = [&] {
      Slot slot = k_pipe.acquire();
      s.reset();
      s.mma(queries.wait(), slot[k].transpose());
      return slot;
    };
    auto take_scores = [&](const Slot &slot, const Value &block) {
      k_pipe.release(slot);
      RegisterTile scores = s.tile();
      if (shape.keys % kKeys)
        mask(scores, block * kKeys, shape.keys);
      return softmax.take(scores);
    };
    // P V. The weights lie in the registers as operand A of a wgmma does.
    auto issue_values = [&] {
      Slot slot = v_pipe.acquire();
      acc.mma(weights, slot[v]);
      return slot;
    };

    if (!overlaps) {
      // Step 1: one after another.
      for_range(0, blocks, [&](Value block) {
        Slot keys = issue_scores();
        wgmma_wait(0);
        weights = cast(take_scores(keys, block), f16);
        acc.start_from(acc.tile() * softmax.rescale);
        Slot values = issue_values();
        wgmma_wait(0);
        v_pipe.release(values);
      });
    } else {
      // Step 2: P V of a block is in flight under the softmax of the next one,
      // so that the tensor core multiplies while the threads exponentiate. The
      // first wait lets one product go on; the second must stay behind the
      // softmax, which the assembler would not do by itself.
      Slot first = issue_scores();
      wgmma_wait(0);
      weights = cast(take_scores(first, constant(i32, 0)), f16);
      for_range(1, blocks, [&](Value block) {
        Slot keys = issue_scores();
        Slot values = issue_values();
        wgmma_wait(1);
        RegisterTile next = take_scores(keys, block);
        wgmma_wait(0, {.after = &softmax.sum});
        v_pipe.release(values);
        acc.start_from(acc.tile() * softmax.rescale);
        weights = cast(next, f16);
      });
      Slot values = issue_values();
      wgmma_wait(0);
      v_pipe.release(values);
    }

    acc.start_from(fast_divide(acc.tile(), softmax.sum));
    acc.store(o.index(0, head), {row, 0}, {.column_multiple = 8});
  });
  return kb.module();
}

} // namespace lessons

int main() try {
  auto device = lessons::open_device();
  lessons::AttentionShape shape = {64, 4096, 4096};
  if (lessons::is_simulator(*device))
    shape = {2, 100, 150};
  for (bool overlaps : {false, true}) {
    Kernel kernel = compile(lessons::attention(shape, overlaps));
    lessons::describe(kernel);
    if (int status = lessons::launch_attention(*device, kernel, shape))
      return status;
  }
  return 0;
} catch (const Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_status());
}

// To take away:
//
// - A product's sums can become the next one's operand without leaving the
//   registers: cast, and mma takes them.
// - wgmma_wait(n) lets the n youngest products go on; what was older has landed
//   and may be read.
// - What is left to do for speed is in kernels/attention and docs/attention.md:
//   two or three consumers, several tiles per CTA, rescaling only where a
//   maximum rose, masks where they are needed, lanes that meet once per tile.
