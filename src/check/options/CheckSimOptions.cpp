// CheckSimOptions: what no option table has seen, since C++ and C fill the
// fields themselves.
#include "kiln/check/explanation.h"
#include "kiln/check/sim_options.h"
#include "support/Error.h"

#include <cmath>

namespace kiln {

static void checkRange(const char *field, int value, int least, int most) {
  if (value < least || value > most)
    userError("SimOptions::{} is {}; it takes a whole number from {} to {}",
              field, value, least, most);
}

void check_sim_options(const SimOptions &options) {
  if (!std::isfinite(options.time_limit_s) || options.time_limit_s < 0)
    userError("SimOptions::time_limit_s is {}; it takes a number of seconds "
              "from 0 on",
              options.time_limit_s);
  checkRange("threads", options.threads, 0, kMaxSimThreads);
  checkRange("device.sms", options.device.sms, 1, kMaxSimSms);
  checkRange("registers_at_entry", options.registers_at_entry, 0,
             kMaxSimRegisters);
  if (options.interleaving > Interleaving::random)
    userError("SimOptions::interleaving is {}; it takes eager, lazy or random",
              static_cast<int>(options.interleaving));
  for (const auto *list : {&options.allow, &options.warn})
    for (const std::string &id : *list)
      explain(id); // throws with the list of ids
}

} // namespace kiln
