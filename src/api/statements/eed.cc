// Delegated Regulation (EU) 2024/1364: key performance indicators of data centres (annex II), and
// the sustainability indicators computed from them (annex III).
#include <string>

#include "api/statements/all.h"
#include "api/statements/lines.h"

namespace ceems::api {
namespace {

using facility::MeterKind;

void add_declared(const StatementInputs& inputs,
                  bool of_it,
                  const std::string& section,
                  statement::Document& document) {
  for (const facility::DeclaredField& field : facility::declared_fields()) {
    if (field.of_it != of_it) {
      continue;
    }
    const auto value = inputs.context.accounting->facility.declared_value(field.name);
    document.add({.id = std::string(field.name),
                  .section = section,
                  .label = std::string(field.label),
                  .value = value,
                  .unit = std::string(field.unit),
                  .how = statement::How::kDeclared,
                  .note = value ? "stated in facility.yml"
                                : "not known; `declared` of facility.yml can state it"});
  }
}

void fill_eed(const StatementInputs& inputs, statement::Document& document) {
  document.notes.emplace_back(
      "Fields are named as in the regulation. It asks for calendar years and for all of the data "
      "centre: check that the meters are of all of it.");
  document.notes.emplace_back(
      "Types of refrigerants, the functions for the grid and the general information of annex I "
      "are "
      "texts, which you fill in yourself.");
  document.notes.emplace_back(
      "ERES-TOT is the sum of ERES-GOO, ERES-PPA and ERES-OS, and REF is ERES-TOT by EDC. Meters "
      "know only what they count: add guarantees and agreements that none of them counts.");
  const std::string section = "Energy and sustainability (annex II)";
  add_meter(inputs, MeterKind::kTotal, section, "total energy (EDC)", document);
  add_meter(inputs, MeterKind::kIt, section, "energy of the IT (EIT)", document);
  add_meter(inputs, MeterKind::kWater, section, "total water input (WIN)", document);
  add_meter(inputs, MeterKind::kHeatReused, section, "waste heat reused (EREUSE)", document);
  add_meter(inputs, MeterKind::kRenewable, section,
            "renewable energy that is metered (of ERES-TOT)", document);
  add_declared(inputs, false, section, document);
  add_declared(inputs, true, "ICT capacity and traffic (annex II)", document);
  add_indicators(inputs, document);
}

}  // namespace

StatementSpec eed_statement() {
  return {.name = "eed",
          .title = "Data centre report, Delegated Regulation (EU) 2024/1364",
          .help = "the EU's data centre report: what meters know, and the other fields by name",
          .fill = fill_eed};
}

}  // namespace ceems::api
