#include <fmt/format.h>

#include "base/json.h"
#include "base/log.h"
#include "tool/command.h"
#include "tool/db/backup.h"
#include "tool/db/copy.h"
#include "tool/db/info.h"
#include "tool/db/migrate.h"
#include "tool/db/progress.h"
#include "tool/db/tables.h"
#include "tool/db/verify.h"

namespace ceems::tool {
namespace {

constexpr std::string_view kDatabaseHelp =
    "The database: a SQLite file, the directory of ceems.db, or a URL without a password, "
    "postgresql://user@host/database.";

/// The database of a flag, opened.
Result<std::unique_ptr<db::Tables>> open_flag(std::string_view flag,
                                              const std::string& text,
                                              const std::string& password_file,
                                              db::Use use) {
  if (text.empty()) {
    return fail(ErrorCode::kInvalidArgument, "required flag --{} not provided", flag);
  }
  CEEMS_TRY_IN(fmt::format("--{}", flag), location, db::Location::parse(text, password_file));
  return db::Tables::open(location, use);
}

/// A command about one database.
class DatabaseCommand : public Command {
 public:
  void add_flags(config::FlagSet& flags) override {
    flags.add("db", database_, {.help = std::string(kDatabaseHelp), .placeholder = "FILE|URL"});
    flags.add("password-file", password_file_,
              {.help = "File with the password of the PostgreSQL user. PGPASSFILE works as well.",
               .placeholder = "FILE"});
    flags.add("json", json_, {.help = "Print JSON."});
  }

 protected:
  [[nodiscard]] Result<std::unique_ptr<db::Tables>> open(db::Use use) const {
    return open_flag("db", database_, password_file_, use);
  }

  std::string database_;
  std::string password_file_;
  bool json_ = false;
};

class DbInfo final : public DatabaseCommand {
 public:
  [[nodiscard]] std::string_view words() const override { return "db info"; }
  [[nodiscard]] std::string_view help() const override {
    return "Show what a database holds: version, tables, clusters, times. It may be in use.";
  }
  Result<int> run(Console& console) override {
    auto tables = open(db::Use::kRead);
    CEEMS_TRY(info, tables ? db::read_info(**tables) : fail(std::move(tables).error()));
    console.print(json_ ? db::info_json(info) : db::info_text(info));
    return 0;
  }
};

class DbVerify final : public DatabaseCommand {
 public:
  [[nodiscard]] std::string_view words() const override { return "db verify"; }
  [[nodiscard]] std::string_view help() const override {
    return "Look for damage in a database, which may be in use. Exit status 1 if there is any.";
  }
  Result<int> run(Console& console) override {
    CEEMS_TRY(tables, open(db::Use::kRead));
    db::Progress progress;
    const auto findings = db::verify(*tables, progress);
    console.print(json_ ? db::findings_json(findings) : db::findings_text(findings));
    return findings.good() ? 0 : 1;
  }
};

class DbBackup final : public Command {
 public:
  [[nodiscard]] std::string_view words() const override { return "db backup"; }
  [[nodiscard]] std::string_view help() const override {
    return "Copy a SQLite database, as of one moment, while an API server writes to it.";
  }
  void add_flags(config::FlagSet& flags) override {
    flags.add("db", database_,
              {.help = "The SQLite file, or the directory of ceems.db.", .placeholder = "FILE"});
    flags.add("output", output_,
              {.help = "The file to write, with mode 0600.", .placeholder = "FILE"});
    flags.add("force", force_, {.help = "Replace the output if it exists."});
  }
  Result<int> run(Console& console) override {
    for (const auto& [flag, text] : {std::pair{"db", database_}, std::pair{"output", output_}}) {
      if (text.empty()) {
        return fail(ErrorCode::kInvalidArgument, "required flag --{} not provided", flag);
      }
    }
    CEEMS_TRY_IN("--db", location, db::Location::parse(database_, {}));
    if (!location.is_file()) {
      return fail(ErrorCode::kInvalidArgument, "PostgreSQL has backups of its own: use pg_dump");
    }
    db::Progress progress;
    CEEMS_TRY(bytes, db::backup_file(location.file, output_, force_, progress));
    console.print(fmt::format("{}: {}\n", output_, db::bytes_text(bytes)));
    return 0;
  }

 private:
  std::string database_;
  std::string output_;
  bool force_ = false;
};

class DbMigrate final : public DatabaseCommand {
 public:
  [[nodiscard]] std::string_view words() const override { return "db migrate"; }
  [[nodiscard]] std::string_view help() const override {
    return "Upgrade a database to the tables of this release, as an API server does at its start.";
  }
  void add_flags(config::FlagSet& flags) override {
    DatabaseCommand::add_flags(flags);
    flags.add("dry-run", dry_run_,
              {.help = "Only say what would be done, how long it takes and how much space."});
    flags.add("custom-stats", custom_stats_,
              {.help = "Also add the columns of custom metrics (version 10, that of CEEMS 0.15), "
                       "and complete an upgrade to it that was interrupted. Releases before 0.15 "
                       "do not open the database any more."});
    flags.add("time-zone", time_zone_,
              {.help = "The API server's data.time_zone, in which CEEMS 0.10.2 wrote times."});
  }
  Result<int> run(Console& console) override {
    auto tables = open(dry_run_ ? db::Use::kRead : db::Use::kWrite);
    CEEMS_TRY(plan, tables ? db::plan_migration(**tables, custom_stats_)
                           : fail(std::move(tables).error()));
    console.print(json_ ? db::plan_json(plan) : db::plan_text(plan));
    if (dry_run_ || (!plan.needed && !plan.rereads)) {
      return 0;
    }
    log::configure(log::Level::kInfo, log::Format::kLogfmt);  // the progress
    CEEMS_TRY((*tables)->upgrade(time_zone_, custom_stats_));
    if (!json_) {
      console.print("upgraded\n");
    }
    return 0;
  }

 private:
  bool dry_run_ = false;
  bool custom_stats_ = false;
  std::string time_zone_ = "Local";
};

std::string sums_of(const db::TableComparison& table) {
  std::string out;
  for (const auto& [name, value] : table.sums_from) {
    const auto copied = table.sums_to.find(name);
    const double other = copied == table.sums_to.end() ? 0 : copied->second;
    if (other == value) {
      out += fmt::format("    {:<44}{}\n", name, value);
    } else {
      out += fmt::format("    {:<44}{} / {}\n", name, value, other);
    }
  }
  return out;
}

std::string report_text(const db::CopyReport& report) {
  std::string out = fmt::format("{:<22}{:>14}{:>14}  (sums of numbers below)\n", "TABLE", "SOURCE",
                                "DESTINATION");
  for (const db::TableComparison& table : report.tables) {
    out += fmt::format("{:<22}{:>14}{:>14}  {}\n", table.table, db::grouped(table.rows_from),
                       db::grouped(table.rows_to),
                       table.equal() ? "equal" : fmt::format("{} rows differ", table.different));
    out += sums_of(table);
  }
  out += fmt::format("{} rows were copied", db::grouped(report.copied));
  if (report.resumed > 0) {
    out += fmt::format(", {} earlier", db::grouped(report.resumed));
  }
  out += "\n";
  for (const std::string& name : report.not_copied) {
    out += fmt::format("not copied: {}, which is not of CEEMS\n", name);
  }
  if (report.converted > 0) {
    out += fmt::format(
        "{} damaged values cannot be stored in PostgreSQL: text that is not UTF-8 has U+FFFD there,"
        " and a list that is none is empty\n",
        report.converted);
  }
  for (const db::TableComparison& table : report.tables) {
    for (const std::string& line : table.differences) {
      out += fmt::format("different: {}\n", line);
    }
  }
  return out + (report.equal() ? "equal\n" : "NOT EQUAL\n");
}

std::string report_json(const db::CopyReport& report) {
  std::string out;
  JsonWriter json(out, JsonEscape::kPlain);
  json.begin_object()
      .member("equal", report.equal())
      .member("copied", report.copied)
      .member("resumed", report.resumed)
      .member("converted", report.converted);
  json.key("not_copied").begin_array();
  for (const std::string& name : report.not_copied) {
    json.value(name);
  }
  json.end_array().key("tables").begin_array();
  for (const db::TableComparison& table : report.tables) {
    json.begin_object()
        .member("table", table.table)
        .member("rows_from", table.rows_from)
        .member("rows_to", table.rows_to)
        .member("different", table.different);
    for (const auto& [key, sums] :
         {std::pair{"sums_from", &table.sums_from}, std::pair{"sums_to", &table.sums_to}}) {
      json.key(key).begin_object();
      for (const auto& [name, value] : *sums) {
        json.member(name, value);
      }
      json.end_object();
    }
    json.key("differences").begin_array();
    for (const std::string& line : table.differences) {
      json.value(line);
    }
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return out + "\n";
}

class DbCopy final : public Command {
 public:
  [[nodiscard]] std::string_view words() const override { return "db copy"; }
  [[nodiscard]] std::string_view help() const override {
    return "Copy all data to an empty database, of the same or the other kind, and compare both.";
  }
  void add_flags(config::FlagSet& flags) override {
    flags.add("from", from_, {.help = std::string(kDatabaseHelp), .placeholder = "FILE|URL"});
    flags.add("to", to_,
              {.help = "The destination, in the same form. It has to be empty, or hold an "
                       "interrupted copy of this source, which then continues.",
               .placeholder = "FILE|URL"});
    flags.add("from.password-file", from_password_,
              {.help = "File with the password of the source's PostgreSQL user. PGPASSFILE works "
                       "as well.",
               .placeholder = "FILE"});
    flags.add("to.password-file", to_password_,
              {.help = "The same for the destination.", .placeholder = "FILE"});
    flags.add("restart", options_.restart,
              {.help = "Throw away what an interrupted copy has written, and begin again."});
    flags.add("json", json_, {.help = "Print JSON."});
  }
  Result<int> run(Console& console) override {
    auto from = open_flag("from", from_, from_password_, db::Use::kAlone);
    CEEMS_TRY(to, from ? open_flag("to", to_, to_password_, db::Use::kWrite)
                       : fail(std::move(from).error()));
    db::Progress progress;
    CEEMS_TRY(report, db::copy_database(**from, *to, options_, progress));
    console.print(json_ ? report_json(report) : report_text(report));
    return report.equal() ? 0 : 1;
  }

 private:
  std::string from_;
  std::string to_;
  std::string from_password_;
  std::string to_password_;
  db::CopyOptions options_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> db_info_command() {
  return std::make_unique<DbInfo>();
}

std::unique_ptr<Command> db_backup_command() {
  return std::make_unique<DbBackup>();
}

std::unique_ptr<Command> db_verify_command() {
  return std::make_unique<DbVerify>();
}

std::unique_ptr<Command> db_migrate_command() {
  return std::make_unique<DbMigrate>();
}

std::unique_ptr<Command> db_copy_command() {
  return std::make_unique<DbCopy>();
}

}  // namespace ceems::tool
