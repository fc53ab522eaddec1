#include "api/login/local_users.h"

#include <sys/stat.h>

#include <atomic>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "access/session.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "crypto/password.h"
#include "net/server/web_config.h"

namespace ceems::api::login {
namespace {

constexpr std::size_t kMaxPasswordBytes = 1024;
/// Running and waiting checks. Each occupies a thread, and other requests need threads too.
constexpr int kMaxChecks = 2;

/// Identifies the content of a file by its stat(2) data. Empty if the file is missing, or was
/// written so recently that another write could leave the same timestamps.
std::string stamp_of(const std::string& file) {
  constexpr std::int64_t kTick = 50'000'000;
  constexpr std::int64_t kSecond = 1'000'000'000;
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0) {
    return {};
  }
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t age =
      (now.tv_sec - info.st_ctim.tv_sec) * kSecond + (now.tv_nsec - info.st_ctim.tv_nsec);
  if (age >= 0 && age < kTick) {
    return {};
  }
  return fmt::format("{}.{}.{}.{}.{}.{}", info.st_ino, info.st_size, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
}

Result<UserTable> read_file(const std::string& file) {
  CEEMS_TRY(document, config::load_yaml(file));
  return parse_users(document);
}

}  // namespace

Result<UserTable> parse_users(const config::Node& document) {
  UserTable table;
  if (!document.present()) {
    return table;
  }
  if (!document.is_map()) {
    return fail(document.error("expected a mapping"));
  }
  CEEMS_TRY(document.only_keys({"basic_auth_users"}));
  const config::Node users = document["basic_auth_users"];
  if (users.present() && !users.is_map()) {
    return fail(users.error("expected a mapping of names to bcrypt hashes"));
  }
  for (const auto& [name, value] : users.entries()) {
    const auto hash = value.as_string();
    if (!access::is_user_name(name)) {
      return fail(value.error("invalid user name"));
    }
    if (!hash || !net::is_bcrypt_hash(*hash)) {
      return fail(value.error("expected a bcrypt hash ($2a$, $2b$ or $2y$)"));
    }
    table.emplace(name, *hash);
  }
  return table;
}

struct LocalUsers::Impl {
  std::string file;
  Mutex mutex;
  std::shared_ptr<const UserTable> table CEEMS_GUARDED_BY(mutex);
  std::string stamp CEEMS_GUARDED_BY(mutex);
  std::string problem CEEMS_GUARDED_BY(mutex);  ///< error that was logged last
  Mutex one_check;
  std::atomic<int> checks = 0;

  Result<> read() CEEMS_REQUIRES(mutex) {
    stamp = stamp_of(file);
    CEEMS_TRY(read, read_file(file));
    table = std::make_shared<const UserTable>(std::move(read));
    return {};
  }

  void refresh() CEEMS_REQUIRES(mutex) {
    if (const std::string now = stamp_of(file); !now.empty() && now == stamp) {
      return;
    }
    const auto done = read();
    const std::string now = done ? std::string() : done.error().message;
    if (now == problem) {
      return;
    }
    if (now.empty()) {
      log::info("file of local users is valid again", {{"file", file}});
    } else {
      log::error("cannot read the file of local users, the last valid content stays in use",
                 {{"err", now}});
    }
    problem = now;
  }
};

Result<std::unique_ptr<LocalUsers>> LocalUsers::open(const std::string& file) {
  auto impl = std::make_unique<Impl>();
  impl->file = file;
  {
    const MutexLock lock(impl->mutex);
    CEEMS_TRY(impl->read());
  }
  return std::unique_ptr<LocalUsers>(new LocalUsers(std::move(impl)));
}

LocalUsers::LocalUsers(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LocalUsers::~LocalUsers() = default;

std::shared_ptr<const UserTable> LocalUsers::users() {
  const MutexLock lock(impl_->mutex);
  impl_->refresh();
  return impl_->table;
}

LocalUsers::Verdict LocalUsers::check(const std::string& user, const std::string& password) {
  if (impl_->checks.fetch_add(1) >= kMaxChecks) {
    impl_->checks.fetch_sub(1);
    return Verdict::kBusy;
  }
  const auto table = users();
  const auto found = table->find(user);
  const bool known = found != table->end();
  const std::string hash =
      known ? found->second
            : crypto::dummy_hash(table->empty() ? std::string_view() : table->begin()->second);
  bool good = false;
  {
    const MutexLock lock(impl_->one_check);
    good = crypto::bcrypt_matches(password.substr(0, kMaxPasswordBytes), hash);
  }
  impl_->checks.fetch_sub(1);
  return known && good && password.size() <= kMaxPasswordBytes ? Verdict::kGood : Verdict::kWrong;
}

}  // namespace ceems::api::login
