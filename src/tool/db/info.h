#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tool/db/tables.h"

namespace ceems::tool::db {

/// The versions of a database's tables, as they are stored.
struct Versions {
  std::optional<std::int64_t> reference;  ///< of CEEMS; nothing: no schema_migrations
  bool dirty = false;                     ///< an upgrade by the reference was interrupted
  std::int64_t own = 0;                   ///< of our additions; 0: none
  bool copying = false;                   ///< an unfinished copy
  bool empty = false;                     ///< no tables

  /// Whether this program reads and writes it as it is.
  [[nodiscard]] bool current() const;
  /// Which programs can use it, and what to do if this one cannot.
  [[nodiscard]] std::string fits() const;
};

Result<Versions> read_versions(Tables& tables);

/// What a database holds. Times are epoch ms; 0: there is none.
struct Info {
  struct Table {
    std::string name = {};
    std::int64_t rows = 0;
  };
  struct Cluster {
    std::string id = {};
    std::string manager = {};
    std::int64_t units = 0;
    std::int64_t first_start = 0;
    std::int64_t last_end = 0;
    std::int64_t last_update = 0;
    std::int64_t watermark = 0;  ///< everything up to here has been counted
  };

  std::string database = {};
  std::string kind = {};  ///< "SQLite" or "PostgreSQL"
  std::int64_t bytes = 0;
  Versions versions = {};
  std::vector<Table> tables = {};
  std::vector<Cluster> clusters = {};
};

Result<Info> read_info(Tables& tables);
std::string info_text(const Info& info);
std::string info_json(const Info& info);

/// "2031-04-05T06:07:08Z"; "-" for 0.
std::string moment_text(std::int64_t ms);

}  // namespace ceems::tool::db
