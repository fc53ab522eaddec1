#include "store/sqlite/connection.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "base/fd.h"

namespace ceems::store::sqlite {
namespace {

constexpr int kBusyTimeoutMs = 5000;

ErrorCode code_of(int status) {
  switch (status & 0xFF) {
    case SQLITE_FULL:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_IOERR:
      return ErrorCode::kUnavailable;
    case SQLITE_INTERRUPT:
      return ErrorCode::kTimeout;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
      return ErrorCode::kPermissionDenied;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return ErrorCode::kParse;
    default:
      return ErrorCode::kInternal;
  }
}

Error error_of(int status, std::string_view file, std::string_view message) {
  return Error{code_of(status), fmt::format("database {}: {}", file, message)};
}

std::string_view file_of(sqlite3* handle) {
  const char* name = sqlite3_db_filename(handle, "main");
  return name == nullptr ? "" : name;
}

/// A connection for reading that waits for its next query keeps up to this much: enough to find
/// callers and their projects without reading the file.
constexpr std::size_t kKeptBytes = 512 << 10U;

int is_stopped(void* token) {
  return static_cast<std::stop_token*>(token)->stop_requested() ? 1 : 0;
}

int past_deadline(void* deadline) {
  const auto* at = static_cast<const std::chrono::steady_clock::time_point*>(deadline);
  return std::chrono::steady_clock::now() >= *at ? 1 : 0;
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

void Statement::bind(int index, std::string_view text) {
  // The data of an empty view may be null, which SQLite would store as NULL.
  const char* data = text.empty() ? "" : text.data();
  const int status = sqlite3_bind_text64(
      handle_.get(), index, data, text.size(),
      // NOLINTNEXTLINE(performance-no-int-to-ptr,cppcoreguidelines-pro-type-cstyle-cast):
      // SQLite's macro
      SQLITE_TRANSIENT, SQLITE_UTF8);
  bind_status_ = bind_status_ == SQLITE_OK ? status : bind_status_;
}

void Statement::bind(int index, std::int64_t value) {
  const int status = sqlite3_bind_int64(handle_.get(), index, value);
  bind_status_ = bind_status_ == SQLITE_OK ? status : bind_status_;
}

void Statement::bind_null(int index) {
  const int status = sqlite3_bind_null(handle_.get(), index);
  bind_status_ = bind_status_ == SQLITE_OK ? status : bind_status_;
}

void Statement::bind_all(const std::vector<SqlValue>& values) {
  int index = 0;
  for (const SqlValue& value : values) {
    ++index;
    if (const auto* text = std::get_if<std::string>(&value); text != nullptr) {
      bind(index, std::string_view(*text));
    } else {
      bind(index, std::get<std::int64_t>(value));
    }
  }
}

Result<bool> Statement::step() {
  sqlite3* handle = sqlite3_db_handle(handle_.get());
  if (bind_status_ != SQLITE_OK) {
    return fail(
        error_of(std::exchange(bind_status_, SQLITE_OK), file_of(handle), "cannot bind a value"));
  }
  switch (sqlite3_step(handle_.get())) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      return false;
    default:
      return fail(last_error(handle, {}));
  }
}

Result<> Statement::run() {
  while (true) {
    auto row = step();
    if (!row) {
      reset();
      return fail(std::move(row).error());
    }
    if (!*row) {
      reset();
      return {};
    }
  }
}

void Statement::reset() {
  sqlite3_reset(handle_.get());
}

int Statement::columns() const {
  return sqlite3_column_count(handle_.get());
}

std::string_view Statement::text(int column) const {
  const auto* data = sqlite3_column_blob(handle_.get(), column);
  if (data == nullptr) {
    return {};
  }
  const int size = sqlite3_column_bytes(handle_.get(), column);
  return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(handle_.get(), column);
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL;
}

void Connection::Close::operator()(sqlite3* handle) const {
  sqlite3_close_v2(handle);
}

Result<Connection> Connection::open(const std::string& path, OpenMode mode) {
  sqlite3* raw = nullptr;
  const int flags = (mode == OpenMode::kReadOnly ? SQLITE_OPEN_READONLY
                                                 : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) |
                    SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int status = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  Connection result;
  result.handle_.reset(raw);
  if (status != SQLITE_OK) {
    const int cause = raw == nullptr ? 0 : sqlite3_system_errno(raw);
    if (cause != 0) {
      return fail(errno_error(cause, fmt::format("database {}", path)));
    }
    return fail(error_of(status, path, sqlite3_errstr(status)));
  }
  sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  return result;
}

void Connection::set_busy_wait(std::chrono::milliseconds wait) {
  sqlite3_busy_timeout(handle_.get(), static_cast<int>(wait.count()));
}

Result<Statement> Connection::prepare(std::string_view sql) {
  Statement statement;
  sqlite3_stmt* raw = nullptr;
  const int status = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  statement.handle_.reset(raw);
  if (status != SQLITE_OK) {
    return fail(last_error(handle_.get(), {}));
  }
  return statement;
}

Result<> Connection::execute(const std::string& sql) {
  if (sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return fail(last_error(handle_.get(), {}));
  }
  return {};
}

Result<std::string> Connection::query_text(std::string_view sql) {
  CEEMS_TRY(statement, prepare(sql));
  CEEMS_TRY(row, statement.step());
  return row ? std::string(statement.text(0)) : std::string();
}

Result<std::int64_t> Connection::query_integer(std::string_view sql) {
  CEEMS_TRY(statement, prepare(sql));
  CEEMS_TRY(row, statement.step());
  return row ? statement.integer(0) : 0;
}

bool Connection::autocommit() const {
  return sqlite3_get_autocommit(handle_.get()) != 0;
}

void Connection::set_deadline(std::chrono::steady_clock::time_point deadline) {
  constexpr int kSteps = 10000;  // well under a millisecond of work
  deadline_ = std::make_unique<std::chrono::steady_clock::time_point>(deadline);
  sqlite3_progress_handler(handle_.get(), kSteps, past_deadline, deadline_.get());
}

void Connection::stop_with(const std::stop_token& stop) {
  constexpr int kSteps = 10000;
  stop_ = std::make_unique<std::stop_token>(stop);
  sqlite3_progress_handler(handle_.get(), kSteps, is_stopped, stop_.get());
}

bool Connection::recycle() {
  sqlite3_progress_handler(handle_.get(), 0, nullptr, nullptr);
  deadline_.reset();
  stop_.reset();
  release_memory(kKeptBytes);
  return true;
}

void Connection::release_memory(std::size_t kept_bytes) {
  int used = 0;
  int most = 0;
  if (sqlite3_db_status(handle_.get(), SQLITE_DBSTATUS_CACHE_USED, &used, &most, 0) == SQLITE_OK &&
      std::cmp_greater(used, kept_bytes)) {
    sqlite3_db_release_memory(handle_.get());
  }
}

Result<> Connection::copy_to(const std::string& path,
                             bool (*keep_going)(void*),
                             void* context,
                             const std::function<void(int percent)>& progress) {
  constexpr int kPages = 256;
  constexpr auto kPause = std::chrono::milliseconds(5);
  constexpr mode_t kMode = 0640;
  {
    const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
    if (!file.valid()) {
      return fail(errno_error(errno, fmt::format("creating {}", path)));
    }
  }
  const auto copy = [&]() -> Result<> {
    CEEMS_TRY(target, Connection::open(path, OpenMode::kReadWrite));
    sqlite3_backup* backup = sqlite3_backup_init(target.handle(), "main", handle_.get(), "main");
    if (backup == nullptr) {
      return fail(last_error(target.handle(), {}));
    }
    int status = SQLITE_OK;
    bool stopped = false;
    int tenth = 0;
    while (status == SQLITE_OK || status == SQLITE_BUSY || status == SQLITE_LOCKED) {
      if (keep_going != nullptr && !keep_going(context)) {
        stopped = true;
        break;
      }
      status = sqlite3_backup_step(backup, kPages);
      if (status == SQLITE_DONE) {
        break;
      }
      const int pages = std::max(sqlite3_backup_pagecount(backup), 1);
      const int copied = pages - sqlite3_backup_remaining(backup);
      if (progress && static_cast<std::int64_t>(copied) * 10 / pages > tenth) {
        progress(10 * ++tenth);
      }
      if (keep_going != nullptr || status != SQLITE_OK) {
        std::this_thread::sleep_for(kPause);
      }
    }
    const int end = sqlite3_backup_finish(backup);
    if (stopped) {
      return fail(ErrorCode::kUnavailable, "copying to {}: stopped", path);
    }
    if (end != SQLITE_OK) {
      return fail(error_of(end, path, sqlite3_errstr(end)));
    }
    return {};
  };
  auto done = copy();
  if (done) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid() || ::fsync(file.get()) != 0) {
      done = fail(errno_error(errno, fmt::format("writing {}", path)));
    }
  }
  if (!done) {
    ::unlink(path.c_str());
  }
  return done;
}

Error last_error(sqlite3* handle, std::string_view context) {
  const int status = sqlite3_extended_errcode(handle);
  Error error = error_of(status, file_of(handle), sqlite3_errmsg(handle));
  // Readers share the file of locks, which the first connection to a database creates.
  if ((status & 0xFF) == SQLITE_READONLY && sqlite3_db_readonly(handle, "main") == 1) {
    error.message +=
        ": no program has it open, and this user may not create its lock file; start the API "
        "server first, or let this user write the directory";
  }
  return context.empty() ? error : std::move(error).with_context(context);
}

bool row_error(sqlite3* handle) {
  const int status = sqlite3_errcode(handle) & 0xFF;
  return status == SQLITE_CONSTRAINT || status == SQLITE_TOOBIG || status == SQLITE_MISMATCH;
}

}  // namespace ceems::store::sqlite
