#include "exporter/unit/process_filter.h"

#include <linux/capability.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/strings.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

constexpr std::size_t kMaxEnvironment = std::size_t{1} << 20U;
constexpr std::size_t kMaxCommandLine = std::size_t{256} << 10U;

bool has_sleep(std::string_view text) {
  constexpr std::string_view kSleep = "sleep ";
  for (auto at = text.find(kSleep); at != std::string_view::npos; at = text.find(kSleep, at + 1)) {
    const auto next = at + kSleep.size();
    if (next < text.size() && text[next] >= '0' && text[next] <= '9') {
      return true;
    }
  }
  return false;
}

bool has_batch_script(std::string_view text) {
  const auto shell = text.find("/bin/bash ");
  return shell != std::string_view::npos &&
         text.find("/slurm_script", shell) != std::string_view::npos;
}

}  // namespace

std::string command_line_text(std::string_view cmdline) {
  const auto last = cmdline.find_last_not_of('\0');
  std::string text(cmdline.substr(0, last == std::string_view::npos ? 0 : last + 1));
  std::ranges::replace(text, '\0', ' ');
  return text;
}

bool is_manager_process(std::string_view manager, std::string_view command_line) {
  return manager == "slurm" && (command_line.find("slurmstepd:") != std::string_view::npos ||
                                has_sleep(command_line) || has_batch_script(command_line));
}

bool environment_matches(std::string_view environ, std::span<const std::string> prefixes) {
  while (environ.find('\0') != std::string_view::npos) {
    const std::string_view entry = take_until(environ, '\0');
    if (std::ranges::any_of(prefixes,
                            [&](const std::string& prefix) { return entry.starts_with(prefix); })) {
      return true;
    }
  }
  return false;
}

ProcessFilter::ProcessFilter(std::filesystem::path proc,
                             std::string manager,
                             std::vector<std::string> variables)
    : proc_(std::move(proc)), manager_(std::move(manager)), variables_(std::move(variables)) {}

std::vector<os::Capability> ProcessFilter::capabilities() const {
  if (empty()) {
    return {};
  }
  return {CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH};
}

std::vector<int> ProcessFilter::keep(std::span<const int> pids) const {
  if (empty()) {
    return {pids.begin(), pids.end()};
  }
  const os::RaisedCapabilities raised({CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH});
  std::vector<int> kept;
  std::string buffer;
  std::ranges::copy_if(pids, std::back_inserter(kept), [&](int pid) { return keeps(pid, buffer); });
  return kept;
}

bool ProcessFilter::keeps(int pid, std::string& buffer) const {
  const std::filesystem::path directory = proc_ / std::to_string(pid);
  if (!host::read_file((directory / "cmdline").c_str(), buffer, kMaxCommandLine)) {
    return false;
  }
  const std::string command = command_line_text(buffer);
  if (command.empty() || is_manager_process(manager_, command)) {
    return false;
  }
  return host::read_file((directory / "environ").c_str(), buffer, kMaxEnvironment) &&
         environment_matches(buffer, variables_);
}

}  // namespace ceems::exporter
