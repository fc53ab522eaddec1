// The part of the writer that stores reports.
#include <algorithm>

#include "store/reports/report_rows.h"
#include "store/writer/session_writer.h"

namespace ceems::store {

Result<std::size_t> SessionWriter::store_reports(const std::vector<ReportRow>& reports) {
  const MutexLock lock(mutex_);
  std::size_t final = 0;
  std::int64_t newest_ms = 0;
  auto done = in_transaction(
      "storing reports",
      [&]() -> Result<> {
        for (const ReportRow& report : reports) {
          CEEMS_TRY(stored, store_report(*session_, report));
          final += stored ? 1 : 0;
          newest_ms = std::max(newest_ms, report.made_ms);
        }
        return purge_effects(*session_, newest_ms - kNodeEffectsKeptMs);
      },
      Changes::kNoUsage);
  return done ? Result<std::size_t>(final) : fail(std::move(done).error());
}

Result<> SessionWriter::store_strips(const std::vector<UnitStrip>& strips) {
  const MutexLock lock(mutex_);
  return in_transaction(
      "storing what units used over time",
      [&]() -> Result<> {
        for (const UnitStrip& strip : strips) {
          CEEMS_TRY(store_strip(*session_, strip));
        }
        return {};
      },
      Changes::kNoUsage);
}

Result<> SessionWriter::postpone_reports(const std::vector<ReportKey>& keys, std::int64_t due_ms) {
  const MutexLock lock(mutex_);
  return in_transaction(
      "", [&] { return store::postpone_reports(*session_, keys, due_ms); }, Changes::kNoUsage);
}

Result<> SessionWriter::drop_reports(const std::vector<ReportKey>& keys) {
  const MutexLock lock(mutex_);
  return in_transaction(
      "", [&] { return store::drop_reports(*session_, keys); }, Changes::kNoUsage);
}

Result<> SessionWriter::purge_reports(std::int64_t cutoff_ms, const std::stop_token& stop) {
  constexpr std::int64_t kAtOnce = 1000;
  std::int64_t purged = kAtOnce;
  while (purged == kAtOnce && !stop.stop_requested()) {
    const MutexLock lock(mutex_);  // windows may come in between
    CEEMS_TRY(in_transaction(
        "purging reports",
        [&]() -> Result<> {
          const auto some = purge_some_reports(*session_, cutoff_ms, kAtOnce);
          purged = some.value_or(0);
          return some ? Result<>() : fail(some.error());
        },
        Changes::kNoUsage));
  }
  return {};
}

}  // namespace ceems::store
