#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/ended_units.h"
#include "store/feedback.h"
#include "store/outbox.h"
#include "store/reader.h"
#include "store/store.h"
#include "store/tokens.h"

namespace ceems::store {

/// The file of a SQLite database, in the data directory.
inline constexpr std::string_view kDatabaseFile = "ceems.db";

struct DatabaseOptions {
  std::string directory = {};  ///< SQLite: holds ceems.db; must exist
  std::string time_zone = {};  ///< of LOCAL texts and of days; IANA name, "", "UTC" or "Local"
  int max_connections = 16;    ///< of readers at the same time
  int max_listings = 12;       ///< of them, for queries that may take minutes
  std::chrono::milliseconds connection_wait{5000};  ///< how long a reader waits for a free one
  /// SQLite: how long a reader waits for a file that another program has locked.
  std::chrono::milliseconds busy_wait{5000};
  /// A connection URI of libpq, for a database on a PostgreSQL server. Empty: SQLite. No message
  /// contains its password or that of the file, which is read at every connect.
  std::string url = {};
  std::string password_file = {};
  /// SQLite: called around opening files for reading, to raise a privilege meanwhile; may be empty.
  std::function<void(const std::function<void()>& open)> around_open = {};
  /// SQLite: add the columns of custom metrics, as CEEMS 0.15 has them. Releases before it do not
  /// open the file any more. Without this, a file that has no such columns gets none, and values of
  /// custom metrics are dropped.
  bool custom_stats = false;
  /// SQLite: complete an interrupted upgrade that added these columns.
  bool finish_upgrade = false;
  /// A database of an older schema that has more bytes than this is upgraded while it is already in
  /// use; see Database::wait_until_ready(). Nothing: always before it is opened.
  std::optional<std::int64_t> upgrade_in_use_above = {};
  /// Called by another thread if such an upgrade fails; the database stays as it was. May be empty.
  std::function<void(const Error&)> on_upgrade_failed = {};
};

/// A database of CEEMS (docs/api/database.md): one writer, many readers. Opened by open_database()
/// of store/factory. SQLite: `<directory>/ceems.db`; a lock on ceems.db.lock refuses a second
/// program that opens the file for writing. PostgreSQL: several programs may have it open and elect
/// the one that writes (Writer::lead()).
class Database {
 public:
  virtual ~Database() = default;

  /// Both live as long as the database.
  virtual Writer& writer() = 0;
  virtual Reader& reader() = 0;

  /// The outbox, with a connection of its own. Call it only when the database is ready; the outbox
  /// must be destroyed before close().
  virtual Result<std::unique_ptr<Outbox>> open_outbox() {
    return fail(ErrorCode::kInvalidArgument, "this database has no outbox");
  }

  /// The same for the writer of tokens.
  virtual Result<std::unique_ptr<TokenWriter>> open_tokens() {
    return fail(ErrorCode::kInvalidArgument, "this database has no tokens");
  }

  /// The same for the writer of answers about suggestions.
  virtual Result<std::unique_ptr<FeedbackWriter>> open_feedback() {
    return fail(ErrorCode::kInvalidArgument, "this database has no answers");
  }

  /// The same for the positions of targets of exports.
  virtual Result<std::unique_ptr<ExportTargets>> open_targets() {
    return fail(ErrorCode::kInvalidArgument, "this database has no targets of exports");
  }

  /// Waits until the database is upgraded. Until then the writer fails with kUnavailable, and so do
  /// the reader's queries of units, usage and counts; whose units and projects they are, and who is
  /// an administrator, is answered. False if the upgrade failed, or after a stop.
  virtual bool wait_until_ready(const std::stop_token& /*stop*/) { return true; }

  /// Copies a SQLite database, which may be in use, to ceems-YYYYMMDDhhmm.db (local time of the
  /// zone) in `directory` and returns the file's name. The file is complete and has mode 0640, or
  /// it does not exist. Thread-safe. kInvalidArgument for PostgreSQL, which has pg_dump.
  virtual Result<std::string> backup(const std::string& directory, std::stop_token stop) = 0;

  /// Closes all connections; SQLite moves everything into the main file. Call it last: no reader
  /// may be busy, and nothing works afterwards. The destructor does the same and logs errors.
  virtual Result<> close() = 0;
};

}  // namespace ceems::store
