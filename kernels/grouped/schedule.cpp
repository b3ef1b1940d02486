// schedule: how a grouped GEMM is divided, as words: a row for each field.
#include "fields/columns.h"
#include "fields/field_text.h"

#include <kiln/kernels/grouped_gemm.h>

namespace kiln {

using namespace fields;

using GroupedField = Field<GroupedGemmSchedule>;

static constexpr GroupedField kGroupedScheduleFields[] = {
    {.key = "tile-n",
     .help = "rows of B for 128 rows of A: 64, 128, 192 or 256; 0: by N",
     .value = "N",
     .get = get_number<&GroupedGemmSchedule::tile_n>,
     .set = set_number<&GroupedGemmSchedule::tile_n>},
    {.key = "stages",
     .help = "K tiles in shared memory; 0: as many as fit",
     .value = "N",
     .get = get_number<&GroupedGemmSchedule::stages>,
     .set = set_number<&GroupedGemmSchedule::stages>},
    {.key = "ctas",
     .help = "0: one for each multiprocessor",
     .value = "N",
     .get = get_number<&GroupedGemmSchedule::ctas>,
     .set = set_number<&GroupedGemmSchedule::ctas>},
};

std::span<const GroupedField> GroupedGemmSchedule::fields() {
  return kGroupedScheduleFields;
}
std::string GroupedGemmSchedule::to_string() const { return text_of(*this); }
GroupedGemmSchedule GroupedGemmSchedule::parse(const std::string &text) {
  return parse_text<GroupedGemmSchedule>(text, {.what = "schedule"});
}

} // namespace kiln
