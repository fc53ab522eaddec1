// A year: energy, use, facility, emissions and hardware.
#include "api/statements/all.h"
#include "api/statements/lines.h"

namespace ceems::api {
namespace {

void fill_year(const StatementInputs& inputs, statement::Document& document) {
  add_energy(inputs, document);
  add_use(inputs, document);
  add_indicators(inputs, document);
  add_emissions(inputs, document);
  add_hardware(inputs, document);
}

}  // namespace

StatementSpec year_statement() {
  return {.name = "year",
          .title = "Energy and emissions of a year",
          .help = "energy, use, facility, emissions and hardware of a year",
          .fill = fill_year};
}

}  // namespace ceems::api
