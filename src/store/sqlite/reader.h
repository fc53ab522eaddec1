#pragma once

#include <atomic>
#include <cstdint>

#include "store/reader.h"
#include "store/sqlite/pool.h"

namespace ceems::store::sqlite {

class SqliteReader final : public Reader {
 public:
  /// `generation` is counted up by the writer. Both must outlive the reader.
  SqliteReader(Pool& pool, const std::atomic<std::uint64_t>& generation)
      : pool_(&pool), generation_(&generation) {}

  Result<> ping() override;
  [[nodiscard]] std::uint64_t generation() const override { return generation_->load(); }
  Result<bool> is_admin(std::string_view user) override;
  Result<std::unique_ptr<Cursor>> units(const UnitQuery& query, FieldList fields) override;
  Result<std::size_t> count_member_units(const Scope& members,
                                         const std::vector<std::string>& clusters,
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

 private:
  class Rows;
  Result<std::unique_ptr<Cursor>> open(const class Sql& sql);

  Pool* pool_;
  const std::atomic<std::uint64_t>* generation_;
};

}  // namespace ceems::store::sqlite
