#include "tool/db/backup.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/fd.h"
#include "base/strings.h"
#include "store/sqlite/connection.h"

namespace ceems::tool::db {
namespace {

using store::sqlite::Connection;
using store::sqlite::OpenMode;

Result<> sync(const std::filesystem::path& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid() || ::fsync(file.get()) != 0) {
    return fail(errno_error(errno, fmt::format("writing {}", path.string())));
  }
  return {};
}

Result<> copy_pages(Connection& source, const std::string& path, Progress& progress) {
  CEEMS_TRY(target, Connection::open(path, OpenMode::kReadWrite));
  constexpr int kPages = 1024;
  constexpr auto kPause = std::chrono::milliseconds(20);
  sqlite3_backup* backup = sqlite3_backup_init(target.handle(), "main", source.handle(), "main");
  if (backup == nullptr) {
    return fail(store::sqlite::last_error(target.handle(), {}));
  }
  int status = SQLITE_OK;
  while (status == SQLITE_OK || status == SQLITE_BUSY || status == SQLITE_LOCKED) {
    status = sqlite3_backup_step(backup, kPages);
    const std::int64_t pages = sqlite3_backup_pagecount(backup);
    progress.show("copying", pages - sqlite3_backup_remaining(backup), pages, "pages");
    if (status == SQLITE_BUSY || status == SQLITE_LOCKED) {
      std::this_thread::sleep_for(kPause);
    }
  }
  progress.clear();
  const int end = sqlite3_backup_finish(backup);
  if (end != SQLITE_OK) {
    return fail((end & 0xFF) == SQLITE_FULL ? ErrorCode::kUnavailable : ErrorCode::kInternal,
                "writing {}: {}", path, sqlite3_errstr(end));
  }
  return {};
}

/// Gives the complete file its name.
Result<> publish(const std::string& partial, const std::string& output, bool force) {
  if (::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, output.c_str(),
                  force ? 0 : RENAME_NOREPLACE) == 0) {
    return {};
  }
  if (errno == EEXIST) {
    return fail(ErrorCode::kInvalidArgument, "{} exists; --force replaces it", output);
  }
  // Some file systems (NFS) have no RENAME_NOREPLACE; a link never replaces a file either.
  if (errno == EINVAL && ::link(partial.c_str(), output.c_str()) == 0) {
    ::unlink(partial.c_str());
    return {};
  }
  return fail(errno_error(errno, fmt::format("backup {}", output)));
}

}  // namespace

Result<std::int64_t> backup_file(const std::string& file,
                                 const std::string& output,
                                 bool force,
                                 Progress& progress) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    return fail(ErrorCode::kNotFound, "database {}: no such file", printable(file));
  }
  if (std::filesystem::exists(output, error) &&
      (!force || std::filesystem::equivalent(file, output, error))) {
    return fail(ErrorCode::kInvalidArgument, "{} exists{}", printable(output),
                force ? " and is the database itself" : "; --force replaces it");
  }
  CEEMS_TRY(source, Connection::open(file, OpenMode::kReadOnly));
  CEEMS_TRY(mode, source.query_text("PRAGMA journal_mode"));
  if (mode == "wal") {
    // All pages as of now. Without this, every commit of the server would start the copy again.
    CEEMS_TRY(source.execute("BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1"));
  }
  const std::string partial = output + ".partial";
  ::unlink(partial.c_str());  // left by a program that was killed
  {
    constexpr mode_t kMode = 0600;
    const UniqueFd created(
        ::open(partial.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kMode));
    if (!created.valid()) {
      return fail(errno_error(errno, fmt::format("creating {}", printable(partial))));
    }
  }
  auto done = copy_pages(source, partial, progress);
  if (done) {
    done = sync(partial);
  }
  if (done) {
    done = publish(partial, output, force);
  }
  if (!done) {
    ::unlink(partial.c_str());
    return fail(std::move(done).error());
  }
  CEEMS_TRY(sync(std::filesystem::absolute(output).parent_path()));
  return static_cast<std::int64_t>(std::filesystem::file_size(output, error));
}

}  // namespace ceems::tool::db
