// A month: what a year has.
#include "api/statements/all.h"

namespace ceems::api {

StatementSpec month_statement() {
  return {.name = "month",
          .title = "Energy and emissions of a month",
          .help = "the same of a month",
          .fill = year_statement().fill};
}

}  // namespace ceems::api
