#pragma once

#include "api/statements/inputs.h"
#include "report/table.h"

namespace ceems::api {

// The tables of the appendix (docs/report-your-year.md, "For reviewers").

report::Table months_table(const StatementInputs& inputs);
report::Table node_days_table(const StatementInputs& inputs);
report::Table bills_table(const StatementInputs& inputs);
report::Table usage_days_table(const StatementInputs& inputs);
report::Table facility_days_table(const StatementInputs& inputs);
report::Table hardware_table(const StatementInputs& inputs);
report::Table projects_table(const StatementInputs& inputs);

}  // namespace ceems::api
