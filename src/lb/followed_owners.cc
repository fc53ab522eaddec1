#include "lb/followed_owners.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <stop_token>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"

namespace ceems::lb {
namespace {

using gate::SharedIds;
using gate::UnitSet;
using Around = std::function<void(const std::function<void()>&)>;

/// A file, held so that its inode number cannot be given to another file. A descriptor of O_PATH
/// can be closed without losing the locks that SQLite has on the file.
struct HeldFile {
  UniqueFd fd;
  dev_t device = 0;
  ino_t inode = 0;
};

HeldFile hold(const std::string& path, const Around& around) {
  HeldFile held;
  around([&] { held.fd = UniqueFd(::open(path.c_str(), O_PATH | O_CLOEXEC)); });
  struct stat info{};
  if (held.fd.valid() && ::fstat(held.fd.get(), &info) == 0) {
    held.device = info.st_dev;
    held.inode = info.st_ino;
  }
  return held;
}

/// Passes all questions on to the owners that `target()` returns, which may change.
template <typename Base>
class Forwarding : public Base {
 public:
  Result<bool> is_admin(const std::string& user) final {
    CEEMS_TRY(owners, target());
    return owners->is_admin(user);
  }
  Result<bool> may_see(const std::string& user,
                       const std::string& cluster,
                       const UnitSet& units) final {
    CEEMS_TRY(owners, target());
    return owners->may_see(user, cluster, units);
  }
  Result<UnitSet> units_of(const std::string& user,
                           const std::string& cluster,
                           const promql::TimeSpan& alive,
                           std::size_t limit) final {
    CEEMS_TRY(owners, target());
    return owners->units_of(user, cluster, alive, limit);
  }
  Result<SharedIds> shared_ids(const std::string& user,
                               const std::string& cluster,
                               const UnitSet& units) final {
    CEEMS_TRY(owners, target());
    return owners->shared_ids(user, cluster, units);
  }

 private:
  virtual Result<std::shared_ptr<gate::Owners>> target() = 0;
};

class FileOwners final : public Forwarding<FollowedOwners> {
 public:
  FileOwners(std::string file, Open open, Around around)
      : file_(std::move(file)), open_(std::move(open)), around_(std::move(around)) {}

  Result<> open_first() {
    held_ = hold(file_, around_);
    CEEMS_TRY(owners, open_());
    set(std::move(owners));
    return {};
  }

  void follow(std::chrono::milliseconds interval) {
    thread_ = std::jthread([this, interval](const std::stop_token& stop) {
      MutexLock lock(wait_mutex_);
      while (!wait_.wait_for(lock, stop, interval, [&] { return stop.stop_requested(); })) {
        look();
      }
    });
  }

  Owners* cached_only() override { return &memory_; }

 private:
  /// What the owners of the moment have in memory.
  class Memory final : public Forwarding<gate::Owners> {
   public:
    explicit Memory(FileOwners& all) : all_(&all) {}

   private:
    Result<std::shared_ptr<gate::Owners>> target() override {
      const auto owners = all_->current();
      Owners* const memory = owners ? owners->cached_only() : nullptr;
      if (memory == nullptr) {
        return fail(ErrorCode::kUnavailable, "not in the cache");
      }
      return std::shared_ptr<gate::Owners>(owners, memory);
    }
    FileOwners* all_;
  };

  Result<std::shared_ptr<gate::Owners>> target() override {
    auto owners = current();
    if (!owners) {
      return fail(ErrorCode::kUnavailable, "{} is missing or cannot be read", file_);
    }
    return owners;
  }

  std::shared_ptr<Owners> current() CEEMS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return owners_;
  }
  void set(std::shared_ptr<Owners> owners) CEEMS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    owners_.swap(owners);
  }

  /// Called on the thread only.
  void look() {
    HeldFile now = hold(file_, around_);
    const bool same = now.fd.valid() && now.device == held_.device && now.inode == held_.inode &&
                      held_.fd.valid();
    if (same && current()) {
      return;
    }
    set(nullptr);  // the old file is not used while the new one is opened
    if (!now.fd.valid()) {
      report("the database of unit owners is gone; denying all requests", "");
      held_ = std::move(now);
      return;
    }
    auto owners = open_();
    if (!owners) {
      report("cannot open the database of unit owners; denying all requests",
             owners.error().message);
      return;
    }
    held_ = std::move(now);
    set(std::move(*owners));
    reported_.clear();
    log::info("the database of unit owners was replaced and is open again", {{"file", file_}});
  }

  void report(const std::string& event, const std::string& trouble) {
    if (std::exchange(reported_, event + trouble) == event + trouble) {
      return;
    }
    if (trouble.empty()) {
      log::error(event, {{"file", file_}});
    } else {
      log::error(event, {{"file", file_}, {"err", trouble}});
    }
  }

  const std::string file_;
  Open open_;
  Around around_;
  Memory memory_{*this};
  HeldFile held_;         ///< used by create() and then by the thread only
  std::string reported_;  ///< the thread's
  Mutex mutex_;
  std::shared_ptr<Owners> owners_ CEEMS_GUARDED_BY(mutex_);  ///< null: all questions fail
  Mutex wait_mutex_;
  Condition wait_;
  std::jthread thread_;  // last, so that it ends before the other members are destroyed
};

}  // namespace

Result<std::unique_ptr<FollowedOwners>> FollowedOwners::create(std::string file,
                                                               Open open,
                                                               Around around,
                                                               std::chrono::milliseconds interval) {
  auto owners = std::make_unique<FileOwners>(std::move(file), std::move(open), std::move(around));
  CEEMS_TRY(owners->open_first());
  owners->follow(interval);
  return owners;
}

}  // namespace ceems::lb
