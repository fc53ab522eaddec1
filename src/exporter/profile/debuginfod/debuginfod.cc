#include "exporter/profile/debuginfod/debuginfod.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/strings.h"

namespace ceems::exporter::profile {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMinDigits = 16;
constexpr std::size_t kMaxDigits = 128;
constexpr std::chrono::seconds kIdle{30};
constexpr std::string_view kEnding = ".debug";
constexpr std::string_view kPartial = ".part";
constexpr int kOk = 200;
constexpr int kNotFound = 404;
constexpr int kGone = 410;

bool is_build_id(std::string_view text) {
  return text.size() >= kMinDigits && text.size() <= kMaxDigits &&
         std::ranges::all_of(text, is_hex_digit);
}

Result<> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) {
      return fail(errno_error(errno, "write"));
    }
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Debuginfod>> Debuginfod::create(DebuginfodOptions options,
                                                       const Clock& clock) {
  CEEMS_TRY(client, net::Client::create(options.client));
  return std::unique_ptr<Debuginfod>(new Debuginfod(std::move(options), clock, std::move(client)));
}

Debuginfod::Debuginfod(DebuginfodOptions options,
                       const Clock& clock,
                       std::unique_ptr<net::Client> client)
    : options_(std::move(options)), clock_(clock), client_(std::move(client)) {}

Debuginfod::~Debuginfod() {
  thread_.request_stop();
  client_->cancel();
}

std::string Debuginfod::path_of(const std::string& build_id) const {
  return fmt::format("{}/{}{}", options_.directory, build_id, kEnding);
}

std::optional<BinaryFile> Debuginfod::find(const std::string& build_id) {
  if (!is_build_id(build_id)) {
    return std::nullopt;
  }
  const std::string path = path_of(build_id);
  if (auto file = BinaryFile::open(path)) {
    static_cast<void>(::utimensat(AT_FDCWD, path.c_str(), nullptr, 0));  // for make_room()
    return *std::move(file);
  }
  const MutexLock lock(mutex_);
  const auto now = clock_.steady_now();
  const auto missing = missing_.find(build_id);
  if (now < paused_until_ || queue_.size() >= kMaxQueue ||
      (missing != missing_.end() && now < missing->second) || !asked_.insert(build_id).second) {
    return std::nullopt;
  }
  queue_.push_back(build_id);
  if (!thread_.joinable()) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  changed_.notify_all();
  return std::nullopt;
}

std::vector<std::string> Debuginfod::arrived() {
  const MutexLock lock(mutex_);
  return std::exchange(arrived_, {});
}

void Debuginfod::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::string build_id;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock, stop, [this]() CEEMS_REQUIRES(mutex_) { return !queue_.empty(); });
      if (stop.stop_requested()) {
        return;
      }
      build_id = queue_.front();
      queue_.pop_front();
    }
    const Outcome outcome = fetch(build_id, stop);
    if (!stop.stop_requested()) {
      note(build_id, outcome);
    }
  }
}

/// Asks the servers in turn. A server that fails counts only if no other has the file.
Debuginfod::Outcome Debuginfod::fetch(const std::string& build_id, const std::stop_token& stop) {
  std::error_code ignored;
  if (fs::create_directories(options_.directory, ignored)) {
    fs::permissions(options_.directory, fs::perms::owner_all, ignored);
  }
  const std::string path = path_of(build_id);
  const std::string partial = path + std::string(kPartial);
  auto outcome = Outcome::kMissing;
  for (const std::string& server : options_.urls) {
    if (!may_request()) {
      failure_ = fmt::format("more than {} requests in an hour", options_.requests_per_hour);
      return Outcome::kFailed;
    }
    const auto status =
        download(fmt::format("{}/buildid/{}/debuginfo", server, build_id), partial, stop);
    if (status && *status == kOk && ::rename(partial.c_str(), path.c_str()) == 0) {
      make_room();
      return Outcome::kStored;
    }
    static_cast<void>(::unlink(partial.c_str()));
    if (status && (*status == kNotFound || *status == kGone)) {
      continue;
    }
    if (too_large_) {  // treated as absent
      log::debug("debuginfod: a file is left out", {{"err", status.error().message}});
      continue;
    }
    failure_ = status ? fmt::format("status {}", *status) : status.error().message;
    outcome = Outcome::kFailed;
  }
  return outcome;
}

/// The status of the response, whose body is in the file if it is 200.
Result<int> Debuginfod::download(const std::string& url,
                                 const std::string& path,
                                 const std::stop_token& stop) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                             S_IRUSR | S_IWUSR));
  if (!file.valid()) {
    return fail(errno_error(errno, "open " + path));
  }
  const auto end = std::chrono::steady_clock::now() + options_.timeout;
  std::int64_t bytes = 0;
  too_large_ = false;
  const auto take = [&](std::string_view part) -> Result<> {
    bytes += static_cast<std::int64_t>(part.size());
    if (bytes > options_.max_file_bytes) {
      too_large_ = true;
      return fail(ErrorCode::kUnavailable, "larger than {} bytes", options_.max_file_bytes);
    }
    if (std::chrono::steady_clock::now() > end) {
      return fail(ErrorCode::kTimeout, "not complete within {} s",
                  std::chrono::duration_cast<std::chrono::seconds>(options_.timeout).count());
    }
    return write_all(file.get(), part);
  };
  CEEMS_TRY(response, client_->stream(url, {}, kIdle, {.part = take}, stop));
  return response.status;
}

void Debuginfod::note(const std::string& build_id, Outcome outcome) {
  if (outcome == Outcome::kFailed && !std::exchange(failing_, true)) {
    log::warn("debuginfod fails; functions of stripped binaries have no names meanwhile",
              {{"err", failure_}});
  } else if (outcome != Outcome::kFailed && std::exchange(failing_, false)) {
    log::info("debuginfod works again");
  }
  const MutexLock lock(mutex_);
  asked_.erase(build_id);
  const auto now = clock_.steady_now();
  switch (outcome) {
    case Outcome::kStored:
      arrived_.push_back(build_id);
      break;
    case Outcome::kMissing:
      if (missing_.size() >= kMaxKnown) {
        missing_.clear();
      }
      missing_.insert_or_assign(build_id, now + kAgeOfMissing);
      break;
    case Outcome::kFailed:
      paused_until_ = now + kPauseAfterFailure;
      for (const std::string& waiting : queue_) {
        asked_.erase(waiting);
      }
      queue_.clear();  // they are requested again
      break;
  }
}

/// Removes the files that were not used for longest, while there are too many bytes.
void Debuginfod::make_room() {
  struct Kept {
    fs::file_time_type used;
    std::int64_t bytes;
    fs::path path;
  };
  std::vector<Kept> files;
  std::int64_t sum = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(options_.directory, error)) {
    std::error_code ignored;
    if (entry.path().extension() == kEnding && entry.is_regular_file(ignored)) {
      files.push_back({.used = entry.last_write_time(ignored),
                       .bytes = static_cast<std::int64_t>(entry.file_size(ignored)),
                       .path = entry.path()});
      sum += files.back().bytes;
    } else if (entry.path().extension() == kPartial) {
      fs::remove(entry.path(), ignored);  // of a run before this one
    }
  }
  std::ranges::sort(files, {}, &Kept::used);
  // The newest stays: it was fetched just now.
  for (std::size_t i = 0; i + 1 < files.size() && sum > options_.max_cache_bytes; ++i) {
    std::error_code ignored;
    fs::remove(files[i].path, ignored);
    sum -= files[i].bytes;
  }
}

bool Debuginfod::may_request() {
  const auto now = clock_.steady_now();
  if (hour_ == Clock::SteadyTime{} || now - hour_ >= std::chrono::hours(1)) {
    hour_ = now;
    requests_ = 0;
  }
  return ++requests_ <= options_.requests_per_hour;
}

}  // namespace ceems::exporter::profile
