#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "store/sqlite/connection.h"
#include "store/store.h"
#include "store/time_zone.h"

namespace ceems::store::sqlite {

class SqliteWriter final : public Writer {
 public:
  /// `generation` grows with every commit and must outlive the writer.
  static Result<std::unique_ptr<SqliteWriter>> create(Connection connection,
                                                      const TimeZone& zone,
                                                      const Clock& clock,
                                                      std::atomic<std::uint64_t>& generation);
  ~SqliteWriter() override;

  Result<std::optional<std::int64_t>> watermark(std::string_view cluster_id) override;
  Result<WriteReport> write(const ClusterUpdate& update) override;
  Result<> write_admins(std::string_view source, const std::vector<std::string>& names) override;
  Result<> purge(std::int64_t cutoff_ms) override;

  /// Moves the write-ahead log into the main file.
  Result<> checkpoint();

 private:
  struct Statements;
  struct UsageRow;
  struct StoredUnit;
  struct UnitEffect;
  /// (user, project)
  using UsageRows = std::map<std::pair<std::string, std::string>, UsageRow>;
  struct Batch;

  SqliteWriter(Connection connection,
               const TimeZone& zone,
               const Clock& clock,
               std::atomic<std::uint64_t>& generation);

  Result<> begin();
  Result<> commit();
  void roll_back();

  Result<> write_in_transaction(const ClusterUpdate& update, WriteReport& report);
  Result<UnitEffect> write_unit(const Batch& batch, const model::Unit& unit);
  Result<StoredUnit> find_unit(const Batch& batch, const model::Unit& unit);
  Result<> add_usage(const Batch& batch,
                     const model::Unit& unit,
                     const UnitEffect& effect,
                     bool daily,
                     UsageRows& rows);
  Result<> flush_usage(const Batch& batch, bool daily, const UsageRows& rows);
  Result<> write_users(const Batch& batch, const std::vector<model::User>& users);
  Result<> write_projects(const Batch& batch, const std::vector<model::Project>& projects);
  Result<> remove_others(const Batch& batch,
                         Statement& names,
                         Statement& remove,
                         const std::vector<std::string>& keep);

  Connection connection_;
  TimeZone zone_;
  const Clock* clock_;
  std::atomic<std::uint64_t>* generation_;
  std::unique_ptr<Statements> statements_;
  /// Units that ended earlier were purged and are not taken in again.
  std::optional<std::int64_t> purged_before_ms_;
};

}  // namespace ceems::store::sqlite
