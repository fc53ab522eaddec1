#pragma once

#include "report/report.h"
#include "store/facts.h"

namespace ceems::api {

/// What lists show of a report in a word. An important finding asks to look, and so does a
/// suggestion that is not about a smaller reservation; of other suggestions a smaller one would do.
/// A run fits if nothing is suggested although enough of it was measured, and if it did not fail.
store::Verdict verdict_of(const report::Report& report);

}  // namespace ceems::api
