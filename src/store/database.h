#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "store/reader.h"
#include "store/store.h"

namespace ceems::store {

struct DatabaseOptions {
  std::string directory;    ///< holds ceems.db; must exist
  std::string time_zone;    ///< of LOCAL texts and of days; IANA name, "", "UTC" or "Local"
  int max_connections = 8;  ///< of readers at the same time
};

/// A SQLite data base in `<directory>/ceems.db` (docs/api/database.md): one writer, many readers.
/// A second program that opens the same file for writing is refused by a lock on ceems.db.lock.
class Database {
 public:
  virtual ~Database() = default;

  /// Creates or upgrades the file and opens it. Errors are one line that names the file.
  static Result<std::unique_ptr<Database>> open(DatabaseOptions options, const Clock& clock);

  /// Both live as long as the data base.
  virtual Writer& writer() = 0;
  virtual Reader& reader() = 0;

  /// Copies the data base into `directory` as ceems-YYYYMMDDhhmm.db (wall clock of the zone), while
  /// it is in use; complete and mode 0640, or not there at all. Thread-safe. Gives the file's name.
  virtual Result<std::string> backup(const std::string& directory, std::stop_token stop) = 0;

  /// Moves everything into the main file. Call last: no reader may be busy, nothing works
  /// afterwards. The destructor does the same and logs.
  virtual Result<> close() = 0;
};

}  // namespace ceems::store
