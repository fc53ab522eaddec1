// A column of cacct: a field of /api/v1/units that the table does not show yet.
#include "cacct/output/fields.h"

namespace ceems::example {

using cacct::Field;

Field flags_field() {
  return {.name = "flags",
          .label = "flags",
          .tag = "flags",
          .title = "Flags",
          .max = 12,
          .in_long = false,
          .help = "How the manager treated the job"};
}

}  // namespace ceems::example
