// The GHG Protocol: Scope 2 in both ways, and the known categories of Scope 3.
#include "api/statements/all.h"
#include "api/statements/lines.h"

namespace ceems::api {
namespace {

void fill_ghg(const StatementInputs& inputs, statement::Document& document) {
  document.notes.emplace_back(
      "GHG Protocol Corporate Standard and Scope 2 Guidance: both methods are stated. Factors of "
      "the grid are the factors of each hour in which units ran.");
  document.notes.emplace_back(
      "For tenants of a cloud the same energy is Scope 3 category 1. Scope 1 (fuels, refrigerants) "
      "and other categories of Scope 3 are not known here.");
  add_energy(inputs, document);
  add_use(inputs, document);
  add_emissions(inputs, document);
  add_hardware(inputs, document);
}

}  // namespace

StatementSpec ghg_statement() {
  return {.name = "ghg",
          .title = "Greenhouse gas inventory of computing",
          .help = "GHG Protocol: Scope 2 in both ways, Scope 3 of hardware and grid losses",
          .fill = fill_ghg};
}

}  // namespace ceems::api
