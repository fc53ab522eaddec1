#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "api/accounting/accounting.h"
#include "api/endpoints/endpoint.h"
#include "base/result.h"
#include "store/facts.h"

namespace ceems::api {

// What lists of units, sums over them and findings share.

/// The parameters of parse_fact_filter() that select units of lists and sums.
inline constexpr ParamSet kUnitFilterParams{
    Param::kClusterId, Param::kProject, Param::kUser,    Param::kUuid,  Param::kFrom,
    Param::kTo,        Param::kRunning, Param::kWords,   Param::kState, Param::kPartitionName,
    Param::kAdvice,    Param::kCpu,     Param::kMem,     Param::kGpu,   Param::kGpuMem,
    Param::kKwh,       Param::kUnused,  Param::kNotUsed, Param::kGrams, Param::kWall};

/// Replaces ids as SLURM shows them (request/shown_ids.h) by the ids of the caller's units, in the
/// parameters `uuid` and `q`. What is none, or finds none, stays. Passes on errors of the reader.
Result<> find_shown_ids(const Services& services, Call& call);

/// Sets whose units the filter may select and whose names it may see.
void set_owners(const Call& call, store::FactFilter& filter);

/// Where a filter finds its rows.
enum class Searched : std::uint8_t { kRefused, kAll, kIds };

/// Whether there is too much to read. A search for words without a period then looks at ids only.
Result<Searched> check_amount(const Services& services,
                              const Call& call,
                              store::FactFilter& filter);

/// Answers that there is too much to read.
void answer_too_much(Call& call);

/// What an answer is of, where it is not the whole: members of an object.
Result<std::string> notes_of(const Services& services, Searched searched);

/// check_amount() and notes_of(). Without a value, the call is answered: with the refusal or error.
std::optional<std::string> notes_if_answerable(const Services& services,
                                               Call& call,
                                               store::FactFilter& filter);

/// What cost_of() reads, one after the other.
inline constexpr std::array kCostFacts{store::Fact::kKwh,        store::Fact::kCpuSeconds,
                                       store::Fact::kGpuSeconds, store::Fact::kClusterId,
                                       store::Fact::kStarted,    store::Fact::kEnded};
/// The cost of a unit, from kCostFacts at this place of the row.
std::optional<double> cost_of(Costs& costs,
                              const store::Cursor& row,
                              std::size_t place,
                              std::int64_t now_ms);

}  // namespace ceems::api
