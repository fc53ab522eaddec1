// What Green DiSC asks of those who run a computing infrastructure, as far as it is a number.
#include "api/statements/all.h"
#include "api/statements/lines.h"

namespace ceems::api {
namespace {

void fill_green_disc(const StatementInputs& inputs, statement::Document& document) {
  document.notes.emplace_back(
      "Evidence for an application to Green DiSC (software.ac.uk/GreenDiSC): the carbon footprint "
      "of the infrastructure, its efficiency, and its hardware. Policies and inventories of other "
      "equipment are not known here.");
  add_use(inputs, document);
  add_energy(inputs, document);
  add_indicators(inputs, document);
  add_emissions(inputs, document);
  add_hardware(inputs, document);
}

}  // namespace

StatementSpec green_disc_statement() {
  return {.name = "green-disc",
          .title = "Evidence for Green DiSC",
          .help = "the numbers of an application to Green DiSC",
          .fill = fill_green_disc};
}

}  // namespace ceems::api
