// schedule: how attention is divided, as words: a row for each field.
#include "fields/columns.h"
#include "fields/field_text.h"

#include <kiln/kernels/attention.h>

namespace kiln {

using namespace fields;

using AttentionField = Field<AttentionSchedule>;

static constexpr AttentionField kAttentionScheduleFields[] = {
    {.key = "consumers",
     .help = "warpgroups of 64 queries; 0: by head dimension",
     .value = "N",
     .get = get_number<&AttentionSchedule::consumers>,
     .set = set_number<&AttentionSchedule::consumers>},
    {.key = "tile-n",
     .help = "keys of a block; 0: by head dimension",
     .value = "N",
     .get = get_number<&AttentionSchedule::tile_n>,
     .set = set_number<&AttentionSchedule::tile_n>},
    {.key = "stages",
     .help = "blocks of K and of V in shared memory; 0: by head dimension",
     .value = "N",
     .get = get_number<&AttentionSchedule::stages>,
     .set = set_number<&AttentionSchedule::stages>},
    {.key = "q-stages",
     .help = "tiles of Q in shared memory; 0: by head dimension",
     .value = "N",
     .get = get_number<&AttentionSchedule::q_stages>,
     .set = set_number<&AttentionSchedule::q_stages>},
};

std::span<const AttentionField> AttentionSchedule::fields() {
  return kAttentionScheduleFields;
}
std::string AttentionSchedule::to_string() const { return text_of(*this); }
AttentionSchedule AttentionSchedule::parse(const std::string &text) {
  return parse_text<AttentionSchedule>(text, {.what = "schedule"});
}

} // namespace kiln
