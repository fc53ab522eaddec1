#pragma once

#include <chrono>

#include "store/reader.h"
#include "store/sql/sql.h"
#include "store/sums/unit_sums.h"

namespace ceems::store {

/// The queries of the API, the same for every database; how they are run is the database's.
class SqlReader : public Reader {
 public:
  Result<> ping() override;
  Result<bool> is_admin(std::string_view user) override;
  Result<std::vector<ClusterProject>> led_projects(std::string_view user) override;
  Result<std::unique_ptr<Cursor>> units(const UnitQuery& query, FieldList fields) override;
  Result<std::size_t> count_member_units(const Scope& members,
                                         const std::vector<std::string>& clusters,
                                         const std::vector<std::string>& uuids) override;
  Result<std::vector<UnitLife>> unit_lives(const Scope& members,
                                           const std::string& cluster,
                                           const std::vector<std::string>& uuids) override;
  Result<std::unique_ptr<Cursor>> users(const Scope& scope,
                                        const std::vector<std::string>& clusters) override;
  Result<std::unique_ptr<Cursor>> admins() override;
  Result<std::unique_ptr<Cursor>> projects(const UsageQuery& query) override;
  Result<std::unique_ptr<Cursor>> clusters() override;
  Result<std::unique_ptr<Cursor>> stats(const std::vector<std::string>& clusters,
                                        const std::optional<TimeRange>& ended) override;
  Result<std::unique_ptr<Cursor>> usage(const UsageQuery& query, FieldList fields) override;
  Result<std::vector<UsageGroup>> current_usage(const CurrentUsageQuery& query) override;

 protected:
  explicit SqlReader(Dialect dialect) : dialect_(dialect) {}

  /// Starts a query on a connection of its own. It ends with kTimeout when `limit` has passed.
  virtual Result<std::unique_ptr<Cursor>> open(const Sql& sql, std::chrono::milliseconds limit) = 0;

 private:
  /// Which spans of the range are summed up.
  Result<Spans> known_spans(SumsOf what, const TimeRange& range);
  /// stats() by reading the units.
  Result<std::unique_ptr<Cursor>> count_units(const std::vector<std::string>& clusters,
                                              const std::optional<TimeRange>& ended);
  /// Units without their order: those that ended in the range, and with `running` those that have
  /// not; without `ended` only these.
  [[nodiscard]] Sql units_sql(const UnitQuery& query,
                              FieldList fields,
                              bool ended,
                              bool running) const;
  [[nodiscard]] Sql query_of(std::string_view text) const { return {dialect_, text}; }

  Dialect dialect_;
};

}  // namespace ceems::store
