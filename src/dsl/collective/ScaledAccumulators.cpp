// ScaledAccumulators: blocks of products times their factors.
#include "dsl/kernel/State.h"
#include "kiln/language/value/control.h"
#include "kiln/language/value/math.h"
#include "kiln/language/tensorcore/scaled_accumulators.h"
#include "kiln/language/tile/tile_math.h"
#include "support/Error.h"

#include <deque>

namespace kiln {

RegisterTile scaled_accumulators(Accumulator &part, At begin, At end,
                         const BlockFactors &factors, Pipeline &pipeline,
                         const std::function<void(const Slot &)> &multiply,
                         Where where) {
  auto outside = collectiveLine;
  if (factors.parts < 1 || part.columns() % factors.parts)
    userErrorAt(where,
                "{} columns of sums in {} parts with a factor each; use "
                "a divisor",
                part.columns(), factors.parts);
  LocationScope scope(where);
  RegisterTile sums(f32, part.layout(), 0.0);
  RegisterTile rows(f32, part.layout().per_row());
  int wide = part.columns() / factors.parts;
  auto load_rows = [&](const Value &block) {
    for (int reg = 0; reg < rows.registers(); ++reg)
      rows.set(reg, factors.of_row(block, rows.row(reg)));
  };
  Value first = value_of(begin), last = value_of(end) - 1;
  load_rows(first);
  std::deque<Var> parts;
  for (int i = 0; i < factors.parts; ++i)
    parts.emplace_back(factors.of_part(first, i));
  for_range(begin, end, [&](Value block) {
    Slot slot = pipeline.acquire();
    part.reset();
    {
      UserCode user(outside);
      multiply(slot);
    }
    // This block's, which the next one's are loaded over.
    RegisterTile ofRows(rows.layout(), rows.values());
    std::vector<Value> ofParts(parts.begin(), parts.end());
    Value next = min(block + 1, last);
    load_rows(next);
    for (int i = 0; i < factors.parts; ++i)
      parts[i] = factors.of_part(next, i);
    wgmma_wait(0);
    pipeline.release(slot);
    RegisterTile product = part.tile();
    std::vector<RegisterTile> by;
    for (const Value &factor : ofParts)
      by.push_back(ofRows * factor);
    std::vector<int> rowOf = rows.layout().registers_for(sums.layout());
    for (int reg = 0; reg < sums.registers(); ++reg) {
      int at = sums.layout().element(0, reg).column / wide;
      sums.set(reg, fma(product.element(reg), by[at].element(rowOf[reg]),
                        sums.element(reg)));
    }
  });
  return sums;
}

} // namespace kiln
