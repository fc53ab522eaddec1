#pragma once

#include <string>

#include "api/statements/inputs.h"
#include "statement/document.h"

namespace ceems::api {

// Lines that several statements have, and their tables in the appendix.

/// The energy of the period by what it was used for, against the meter: the lines `active` to
/// `meter`, with the tables `months`, `node_days` and `bills`.
void add_energy(const StatementInputs& inputs, statement::Document& document);
/// What units used: `units_kwh`, `core_hours` and others, with the table `usage_days`.
void add_use(const StatementInputs& inputs, statement::Document& document);
/// The indicators, with the table `facility_days`.
void add_indicators(const StatementInputs& inputs, statement::Document& document);
/// A meter of the facility: `total_kwh` and so on. Needs the table of add_indicators().
void add_meter(const StatementInputs& inputs,
               facility::MeterKind kind,
               const std::string& section,
               const std::string& label,
               statement::Document& document);
/// `scope2_location`, `scope2_market`, `losses` and the parts of units. Needs the tables of
/// add_energy() and add_use().
void add_emissions(const StatementInputs& inputs, statement::Document& document);
/// `embodied`, of which `embodied_projects` and `embodied_unallocated`, with the tables `hardware`
/// and `projects`.
void add_hardware(const StatementInputs& inputs, statement::Document& document);

}  // namespace ceems::api
