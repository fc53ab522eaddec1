#include "exporter/energy/state/state_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "os/file.h"

namespace ceems::exporter::energy {

StateFile::StateFile(std::string path, MachineIdentity machine, const Clock& clock)
    : path_(std::move(path)),
      machine_(std::move(machine)),
      clock_(clock),
      last_(clock.steady_now()) {}

Learned StateFile::load() {
  const std::filesystem::path parent = std::filesystem::path(path_).parent_path();
  const char* directory = parent.empty() ? "." : parent.c_str();
  if (::faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) != 0) {
    warn_once(errno_error(errno, fmt::format("directory {}", directory)));
  }
  last_ = clock_.steady_now();
  const auto text = os::read_regular_file(path_, kMaxBytes);
  if (!text) {
    if (text.error().code == ErrorCode::kNotFound) {
      log::info("energy: nothing was learned before", {{"file", path_}});
    } else {
      log::warn("energy: state file not used", {{"err", text.error().message}});
    }
    return {};
  }
  auto learned = from_json(*text, machine_);
  if (!learned) {
    log::warn("energy: state file not used", {{"file", path_}, {"err", learned.error().message}});
    return {};
  }
  log::info("energy: continuing with what was learned before",
            {{"file", path_}, {"idle_powers", learned->idle.size()}});
  const MutexLock lock(mutex_);
  written_ = *text;
  loaded_ = *std::move(learned);
  return loaded_;
}

std::optional<std::string> StateFile::changed_content(const Learned& learned) {
  Learned all = learned;
  all.add_missing(loaded_);
  if (all.idle.empty() && all.lags.empty() && all.numbers.empty()) {
    return std::nullopt;  // a run of a few seconds must not replace what others learned
  }
  std::string text = to_json(all, machine_);
  const MutexLock lock(mutex_);
  return text == written_ ? std::nullopt : std::optional(std::move(text));
}

void StateFile::save(const Learned& learned) {
  last_ = clock_.steady_now();
  auto text = changed_content(learned);
  if (!text) {
    return;
  }
  {
    const MutexLock lock(mutex_);
    if (std::exchange(writing_, true)) {
      return;
    }
  }
  try {
    writer_ = std::jthread([this, content = *std::move(text)] { write(content); });
  } catch (const std::system_error& error) {  // no more threads
    {
      const MutexLock lock(mutex_);
      writing_ = false;
    }
    warn_once({ErrorCode::kUnavailable, error.what()});
  }
}

void StateFile::save_last(const Learned& learned) {
  if (writer_.joinable()) {
    writer_.join();
  }
  if (const auto text = changed_content(learned)) {
    write(*text);
  }
}

void StateFile::write(const std::string& text) {
  const auto done = os::replace_file(path_, text);
  if (!done) {
    warn_once(done.error());
  }
  const MutexLock lock(mutex_);
  writing_ = false;
  if (done) {
    written_ = text;
    failing_ = false;
  }
}

void StateFile::warn_once(const Error& error) {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(failing_, true)) {
      return;
    }
  }
  log::warn("energy: state file cannot be written, so what is learned is lost at a restart",
            {{"file", path_}, {"err", error.message}});
}

}  // namespace ceems::exporter::energy
