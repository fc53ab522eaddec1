#include "tool/db/migrate.h"

#include <algorithm>
#include <filesystem>

#include "base/json.h"
#include "store/schema/tables.h"
#include "store/sqlite/schema.h"
#include "tool/db/progress.h"

namespace ceems::tool::db {
namespace {

/// Bytes in a second of the first upgrade of a SQLite file of the reference, as a round number of
/// what was measured on a busy machine (bench/RESULTS.md, "The first start on an old database").
constexpr std::int64_t kBytesPerSecond = 10'000'000;

std::int64_t seconds_of(const MigrationPlan& plan) {
  return plan.needed ? 1 + plan.bytes / kBytesPerSecond : 0;
}

}  // namespace

Result<MigrationPlan> plan_migration(Tables& tables, bool custom_stats) {
  using store::sqlite::kCustomStatsVersion;
  MigrationPlan plan{.database = tables.name(),
                     .postgres = tables.dialect() == store::Dialect::kPostgres,
                     .to = custom_stats ? kCustomStatsVersion : store::sqlite::kSchemaVersion,
                     .to_own = store::kOwnVersion};
  const auto versions = read_versions(tables);
  CEEMS_TRY(bytes, versions ? tables.size() : fail(versions.error()));
  plan.from = *versions;
  plan.bytes = bytes;
  const std::int64_t reference = plan.from.reference.value_or(0);
  if (plan.postgres) {
    plan.to = kCustomStatsVersion;
  }
  plan.to = std::max(plan.to, std::min(reference, std::int64_t{kCustomStatsVersion}));
  const bool can_finish = custom_stats && reference == kCustomStatsVersion;
  const bool known = plan.from.empty ||
                     (plan.from.reference && (!plan.from.dirty || can_finish) &&
                      !plan.from.copying && reference <= plan.to && plan.from.own <= plan.to_own);
  if (!known) {
    return fail(ErrorCode::kInvalidArgument, "database {}: {}", tables.name(), plan.from.fits());
  }
  plan.needed = !plan.from.current() || reference < plan.to;
  if (plan.postgres) {
    return plan;
  }
  if (!plan.needed) {
    CEEMS_TRY(foreign,
              tables.integer("SELECT count(*) FROM usage WHERE last_updated_at_ts IS NULL"));
    plan.rereads = foreign > 0;
  }
  plan.space_needed = static_cast<std::int64_t>(
      store::sqlite::space_to_upgrade({.empty = plan.from.empty,
                                       .version = static_cast<int>(plan.from.reference.value_or(0)),
                                       .own = static_cast<int>(plan.from.own),
                                       .complete = !plan.from.dirty},
                                      plan.bytes, {.version = static_cast<int>(plan.to)}));
  std::error_code error;
  const auto space =
      std::filesystem::space(std::filesystem::absolute(plan.database).parent_path(), error);
  plan.space_available = error ? 0 : static_cast<std::int64_t>(space.available);
  return plan;
}

std::string plan_text(const MigrationPlan& plan) {
  if (!plan.needed && !plan.rereads) {
    return fmt::format("{} is current (version {}, additions {}): nothing to do\n", plan.database,
                       plan.to, plan.to_own);
  }
  std::string out = fmt::format("database   {} ({})\n", plan.database, bytes_text(plan.bytes));
  if (plan.rereads) {
    return out +
           "CEEMS 0.10.2 has written to it: the times of its rows are read again; the tables stay"
           " as they are\n";
  }
  out += fmt::format("from       version {}{}\nto         version {}, additions {}\n",
                     plan.from.reference.value_or(0),
                     plan.from.own > 0 ? fmt::format(", additions {}", plan.from.own) : "", plan.to,
                     plan.to_own);
  if (!plan.postgres && !plan.from.empty) {
    out += fmt::format(
        "copy       {}.v{}-TIME.bak is written before anything changes\n"
        "space      {} needed beside the file, {} free{}\n",
        plan.database, plan.from.reference.value_or(0), bytes_text(plan.space_needed),
        bytes_text(plan.space_available),
        plan.space_needed > plan.space_available ? ": too little" : "");
  }
  return out + fmt::format("time       very roughly {} s\n", seconds_of(plan));
}

std::string plan_json(const MigrationPlan& plan) {
  std::string out;
  JsonWriter json(out, JsonEscape::kPlain);
  json.begin_object()
      .member("database", plan.database)
      .member("needed", plan.needed || plan.rereads)
      .member("from_version", plan.from.reference.value_or(0))
      .member("from_additions", plan.from.own)
      .member("to_version", plan.to)
      .member("to_additions", plan.to_own)
      .member("bytes", plan.bytes)
      .member("space_needed", plan.space_needed)
      .member("space_available", plan.space_available)
      .member("seconds", seconds_of(plan))
      .end_object();
  return out + "\n";
}

}  // namespace ceems::tool::db
