#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "store/reader.h"
#include "store/store.h"

namespace ceems::store {

/// The file of a SQLite database, in the data directory.
inline constexpr std::string_view kDatabaseFile = "ceems.db";

struct DatabaseOptions {
  std::string directory = {};  ///< of SQLite: holds ceems.db; must exist
  std::string time_zone = {};  ///< of LOCAL texts and of days; IANA name, "", "UTC" or "Local"
  int max_connections = 8;     ///< of readers at the same time
  std::chrono::milliseconds connection_wait{5000};  ///< of a reader while all are busy
  /// A connection URI of libpq: the data base is on a PostgreSQL server. Empty: SQLite. Its
  /// password and that of the file, which is read at every connect, are in no message.
  std::string url = {};
  std::string password_file = {};
  /// Called around opening files for reading, to raise a privilege meanwhile; may be empty.
  std::function<void(const std::function<void()>& open)> around_open = {};
};

/// A data base of CEEMS (docs/api/database.md): one writer, many readers. Either SQLite in
/// `<directory>/ceems.db`, where a second program that opens the same file for writing is refused
/// by a lock on ceems.db.lock; or PostgreSQL, where several programs may have it open and elect the
/// one that writes (Writer::lead()).
class Database {
 public:
  virtual ~Database() = default;

  /// Creates or upgrades the tables and opens the data base. Errors are one line that names it.
  static Result<std::unique_ptr<Database>> open(const DatabaseOptions& options, const Clock& clock);

  /// Both live as long as the data base.
  virtual Writer& writer() = 0;
  virtual Reader& reader() = 0;

  /// Copies a SQLite data base into `directory` as ceems-YYYYMMDDhhmm.db (wall clock of the zone),
  /// while it is in use; complete and mode 0640, or not there at all. Thread-safe. Gives the file's
  /// name. kInvalidArgument for PostgreSQL, which has pg_dump.
  virtual Result<std::string> backup(const std::string& directory, std::stop_token stop) = 0;

  /// SQLite: moves everything into the main file. Call last: no reader may be busy, nothing works
  /// afterwards. The destructor does the same and logs.
  virtual Result<> close() = 0;
};

/// The reading half alone, for programs that neither write nor upgrade: a SQLite file is opened as
/// it is, whatever its version, beside the program that writes it. kNotFound where there is none.
/// `around_open` of the options is called around each opening of the file. Of generation() nothing
/// can be told.
Result<std::shared_ptr<Reader>> open_reader(const DatabaseOptions& options);

}  // namespace ceems::store
