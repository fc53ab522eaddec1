#include "store/facts.h"

#include <algorithm>

namespace ceems::store {
namespace {

constexpr std::array<FactColumn, kFactCount> kColumns{{
    {Fact::kClusterId, "cluster_id", FactKind::kText, "cluster_id"},
    {Fact::kUuid, "uuid", FactKind::kText, "uuid"},
    {Fact::kStarted, "started", FactKind::kMoment, "started_at_ts"},
    {Fact::kName, "name", FactKind::kText, "name"},
    {Fact::kUser, "user", FactKind::kText, "username"},
    {Fact::kProject, "project", FactKind::kText, "project"},
    {Fact::kState, "state", FactKind::kText, "state"},
    {Fact::kCreated, "created", FactKind::kMoment, "created_at_ts"},
    {Fact::kEnded, "ended", FactKind::kMoment, "ended_at_ts"},
    {Fact::kWall, "wall", FactKind::kCount, "wall"},
    {Fact::kCpus, "cpus", FactKind::kMilli, "cpus"},
    {Fact::kMemory, "memory", FactKind::kCount, "memory"},
    {Fact::kGpus, "gpus", FactKind::kMilli, "gpus"},
    {Fact::kNodes, "nodes", FactKind::kCount, "nodes"},
    {Fact::kTimeLimit, "time_limit", FactKind::kCount, "time_limit"},
    {Fact::kArray, "array", FactKind::kText, "array_id", false},
    {Fact::kPartition, "partition", FactKind::kText, "queue"},
    {Fact::kCpu, "cpu", FactKind::kPercent, "cpu_use"},
    {Fact::kMem, "mem", FactKind::kPercent, "mem_use"},
    {Fact::kGpu, "gpu", FactKind::kPercent, "gpu_use"},
    {Fact::kGpuMem, "gpu_mem", FactKind::kPercent, "gpu_mem_use"},
    {Fact::kPeak, "peak", FactKind::kMeasured, "peak_memory"},
    {Fact::kGpuIdle, "gpu_idle", FactKind::kPercent,
     "(CASE WHEN gpu_seen_ms > 0 THEN CAST(gpu_idle_ms * 10000.0 / gpu_seen_ms AS bigint) ELSE -1 "
     "END)"},
    {Fact::kKwh, "kwh", FactKind::kEnergy, "energy"},
    {Fact::kCpuKwh, "cpu_kwh", FactKind::kEnergy, "cpu_energy"},
    {Fact::kGpuKwh, "gpu_kwh", FactKind::kEnergy, "gpu_energy"},
    {Fact::kGrams, "grams", FactKind::kGrams, "grams"},
    {Fact::kUnused, "unused", FactKind::kEnergy, "idle_energy"},
    {Fact::kNotUsed, "not_used", FactKind::kEnergy, "not_used_energy"},
    {Fact::kAdvice, "advice", FactKind::kAdvice, "advice", false},
    {Fact::kCpuSeconds, "cpu_seconds", FactKind::kCount, "cpu_seconds", false, false},
    {Fact::kGpuSeconds, "gpu_seconds", FactKind::kCount, "gpu_seconds", false, false},
    {Fact::kVerdict, "verdict", FactKind::kVerdict, "verdict"},
    {.fact = Fact::kStrip,
     .name = "strip",
     .kind = FactKind::kStrip,
     .sql = "strip",
     .sorts = false,
     .usual = false},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    if (kColumns.at(i).fact != static_cast<Fact>(i) || kColumns.at(i).sql.empty()) {
      return false;
    }
  }
  return true;
}
static_assert(in_order());

}  // namespace

std::span<const FactColumn> fact_columns() {
  return kColumns;
}

const FactColumn& column_of(Fact fact) {
  return kColumns.at(static_cast<std::size_t>(fact));
}

std::optional<Fact> find_fact(std::string_view name) {
  const auto found = std::ranges::find(kColumns, name, &FactColumn::name);
  if (found == kColumns.end() || !found->shown) {
    return std::nullopt;
  }
  return found->fact;
}

namespace {

std::unexpected<Error> no_facts() {
  return fail(ErrorCode::kInvalidArgument, "this reader knows no facts of units");
}

}  // namespace

Result<std::unique_ptr<Cursor>> Reader::unit_facts(const FactListQuery& /*query*/) {
  return no_facts();
}
Result<bool> Reader::has_more_units(const FactFilter& /*filter*/, std::int64_t /*limit*/) {
  return no_facts();
}
Result<std::vector<UnitKind>> Reader::unit_kinds(const KindQuery& /*query*/) {
  return std::vector<UnitKind>{};
}

Result<UnitSummary> Reader::unit_summary(const SummaryQuery& /*query*/) {
  return no_facts();
}
Result<std::int64_t> Reader::first_usage_day(const TimeRange& /*days*/,
                                             const std::vector<std::string>& /*clusters*/) {
  return no_facts();
}

std::optional<double> UsageOfDay::kwh() const {
  const double sum = cpu_kwh + gpu_kwh;
  return sum > 0 || cpu_seconds <= 0 ? std::optional(sum) : std::nullopt;
}

std::optional<double> UsageOfDay::grams() const {
  const auto energy = kwh();
  const double sum = cpu_grams + gpu_grams;
  return energy && (sum > 0 || *energy <= 0) ? std::optional(sum) : std::nullopt;
}

Result<std::vector<UsageOfDay>> Reader::usage_by_day(const UsageSeriesQuery& /*query*/) {
  return no_facts();
}
Result<std::map<std::string, std::int64_t>> Reader::watermarks() {
  return std::map<std::string, std::int64_t>{};
}

Result<bool> Reader::knows_user(std::string_view /*user*/) {
  return true;
}

Result<bool> Reader::facts_complete() {
  return no_facts();
}

}  // namespace ceems::store
