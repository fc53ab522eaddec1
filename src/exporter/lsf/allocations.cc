#include "exporter/lsf/allocations.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace ceems::exporter::lsf {
namespace {

// Allocations do not become outdated: LSF seldom changes that of a running job.
constexpr auto kMaxAge = std::chrono::hours(24 * 365);
constexpr auto kTimeLimit = std::chrono::seconds(1);
constexpr std::size_t kMaxOutput = std::size_t{16} << 20U;

}  // namespace

Allocations::Allocations(AllocationOptions options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      source_({.collector = "lsf",
               .source = "bjobs",
               .period = options_.period,
               .max_age = kMaxAge,
               .patience = options_.patience,
               .first_wait = options_.first_wait},
              clock_,
              [this](const std::stop_token& stop) { return read(stop); }) {}

// Runs in the thread. Asks LSF if there was a request since the last time.
Result<Allocations::Fetched> Allocations::read(const std::stop_token& stop) {
  const std::uint64_t request = requested_;
  if (done_.map != nullptr && done_.request == request) {
    return done_;
  }
  // Requests for the same jobs are repeated only after a pause, and for other jobs at once.
  if (error_ && failed_request_ == request && clock_.steady_now() < retry_at_) {
    return fail(*error_);
  }
  auto fetched = options_.fetch(stop);
  if (!fetched) {
    error_ = fetched.error();
    failed_request_ = request;
    retry_at_ = clock_.steady_now() + options_.pause_after_error;
    return fail(std::move(fetched).error());
  }
  error_.reset();
  done_ = {.request = request, .map = std::make_shared<const AllocationMap>(*std::move(fetched))};
  return done_;
}

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
  const bool old = map_ != nullptr && clock_.steady_now() - refreshed_ >= options_.refresh;
  if (jobs != jobs_ || (old && !waiting_)) {
    jobs_ = std::move(jobs);
    waiting_ = true;
    ++requested_;
  }
  if (waiting_) {
    if (const auto value = source_.value()) {
      take(value->value.map, snapshot);
      if (value->value.request == requested_) {
        waiting_ = false;
        refreshed_ = clock_.steady_now();
      }
    }
  }
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
  const auto result = runner.run(command, stop);
  if (!result) {
    return fail(result.error());
  }
  const std::string_view message = trim(result->error_text);
  const bool nothing = trim(result->output).empty();
  // Without a job on this host, some versions print this instead of a document.
  if (nothing && message.starts_with("No ") &&
      message.find("job found") != std::string_view::npos) {
    return AllocationMap{};
  }
  if (result->exit_status != 0 && nothing) {
    return fail(ErrorCode::kUnavailable, "{}: exit status {}: {}", path, result->exit_status,
                message.empty() ? "no message" : printable(message, 300));
  }
  return parse_bjobs(result->output, host);
}

}  // namespace ceems::exporter::lsf
