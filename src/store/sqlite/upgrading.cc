#include "store/sqlite/upgrading.h"

#include <utility>

namespace ceems::store::sqlite {

void UpgradeState::finish(std::optional<Error> error) {
  ready_ = !error;
  const MutexLock lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

bool UpgradeState::wait(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  return changed_.wait(lock, stop, [this]() CEEMS_REQUIRES(mutex_) { return finished_; }) && ready_;
}

Error UpgradeState::error() const {
  return Error{ErrorCode::kUnavailable, "the database is being upgraded"};
}

Result<std::unique_ptr<Cursor>> UpgradingReader::units(const UnitQuery& query, FieldList fields) {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->units(query, fields);
}

Result<std::unique_ptr<Cursor>> UpgradingReader::stats(const std::vector<std::string>& clusters,
                                                       const std::optional<TimeRange>& ended) {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->stats(clusters, ended);
}

Result<std::unique_ptr<Cursor>> UpgradingReader::usage(const UsageQuery& query, FieldList fields) {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->usage(query, fields);
}

Result<std::vector<UsageGroup>> UpgradingReader::current_usage(const CurrentUsageQuery& query) {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->current_usage(query);
}

Result<bool> UpgradingWriter::lead() {
  return when_ready([](Writer& writer) { return writer.lead(); });
}

Result<std::optional<std::int64_t>> UpgradingWriter::watermark(std::string_view cluster_id) {
  return when_ready([&](Writer& writer) { return writer.watermark(cluster_id); });
}

Result<model::AccountNames> UpgradingWriter::account_names(const std::string& cluster_id) {
  return when_ready([&](Writer& writer) { return writer.account_names(cluster_id); });
}

Result<WriteReport> UpgradingWriter::write(const ClusterUpdate& update) {
  return when_ready([&](Writer& writer) { return writer.write(update); });
}

Result<> UpgradingWriter::write_admins(std::string_view source,
                                       const std::vector<std::string>& names) {
  return when_ready([&](Writer& writer) { return writer.write_admins(source, names); });
}

Result<> UpgradingWriter::add_admins(std::string_view source,
                                     const std::vector<std::string>& names) {
  return when_ready([&](Writer& writer) { return writer.add_admins(source, names); });
}

Result<> UpgradingWriter::purge(std::int64_t cutoff_ms, const std::stop_token& stop) {
  return when_ready([&](Writer& writer) { return writer.purge(cutoff_ms, stop); });
}

Result<std::vector<Gap>> UpgradingWriter::gaps(std::string_view cluster_id) {
  return when_ready([&](Writer& writer) { return writer.gaps(cluster_id); });
}

Result<std::vector<model::Unit>> UpgradingWriter::gap_units(std::int64_t gap_id) {
  return when_ready([&](Writer& writer) { return writer.gap_units(gap_id); });
}

Result<> UpgradingWriter::fill_gap(const GapFill& fill) {
  return when_ready([&](Writer& writer) { return writer.fill_gap(fill); });
}

}  // namespace ceems::store::sqlite
