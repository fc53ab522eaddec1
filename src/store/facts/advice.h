#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/facts.h"
#include "store/sql/session.h"

namespace ceems::store {

/// The bits of the rules in `ceems_unit_facts.advice` (store/advice_rules.h).
std::int64_t advice_bits(std::span<const std::string> rules);

/// Stores which rules have a finding about a unit, and what they come to; without effect if it has
/// no facts. Call it in the transaction that writes the findings.
Result<> set_advice(Session& session,
                    std::string_view cluster_id,
                    std::string_view uuid,
                    std::int64_t started_at_ts,
                    std::int64_t bits,
                    Verdict verdict);

}  // namespace ceems::store
