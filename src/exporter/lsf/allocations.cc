#include "exporter/lsf/allocations.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace ceems::exporter::lsf {
namespace {

constexpr auto kTimeLimit = std::chrono::seconds(1);
constexpr std::size_t kMaxOutput = std::size_t{16} << 20U;

}  // namespace

Allocations::Allocations(AllocationOptions options, const Clock& clock)
    : source_("lsf", "bjobs", options.times, clock, std::move(options.fetch)) {}

void Allocations::take(std::shared_ptr<const AllocationMap> fetched, const UnitSnapshot& snapshot) {
  if (fetched == fetched_ || fetched == nullptr) {
    return;
  }
  auto map = std::make_shared<AllocationMap>(*fetched);
  for (const Unit& unit : snapshot.units) {
    if (map_ == nullptr) {
      break;
    }
    if (const auto known = map_->find(unit.uuid); known != map_->end()) {
      map->emplace(unit.uuid, known->second);
    }
  }
  fetched_ = std::move(fetched);
  map_ = std::move(map);
}

std::shared_ptr<const AllocationMap> Allocations::of(const UnitSnapshot& snapshot) {
  std::vector<std::string> jobs;
  for (const Unit& unit : snapshot.units) {
    if (!unit.ended) {
      jobs.push_back(unit.uuid);
    }
  }
  std::ranges::sort(jobs);
  const MutexLock lock(mutex_);
  take(source_.value(std::move(jobs)), snapshot);
  return map_;
}

std::shared_ptr<const AllocationMap> Allocations::last() const {
  const MutexLock lock(mutex_);
  return map_;
}

Result<AllocationMap> run_bjobs(os::CommandRunner& runner,
                                const std::string& path,
                                const std::string& host,
                                const std::stop_token& stop) {
  os::Command command{
      .path = path,
      .arguments = {"-u", "all", "-m", host, "-json", "-o", std::string(kBjobsFields)},
      .environment = os::process_environment(),
      .timeout = kTimeLimit,
      .max_output_bytes = kMaxOutput};
  command.environment.insert_or_assign("LC_ALL", std::string("C"));
  CEEMS_TRY(result, runner.run(command, stop));
  const std::string_view message = trim(result.error_text);
  const bool nothing = trim(result.output).empty();
  // Without a job on this host, some versions print this instead of a document.
  if (nothing && message.starts_with("No ") &&
      message.find("job found") != std::string_view::npos) {
    return AllocationMap{};
  }
  if (result.exit_status != 0 && nothing) {
    return fail(ErrorCode::kUnavailable, "{}: exit status {}: {}", path, result.exit_status,
                message.empty() ? "no message" : printable(message, 300));
  }
  return parse_bjobs(result.output, host);
}

}  // namespace ceems::exporter::lsf
