#include "exporter/lsf/allocations.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <boost/json.hpp>

#include "base/json_text.h"
#include "base/strings.h"

namespace ceems::exporter::lsf {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDepth = 16;
constexpr std::size_t kMaxId = 64;
constexpr std::size_t kMaxSlots = 1U << 20U;
constexpr std::size_t kMaxGpus = 1024;

/// "6" or "6[1]"; empty for anything else.
std::string id_of(const json::object& record) {
  std::string id = text_of(record, "JOBID");
  if (!is_number(id, kMaxId / 3)) {
    return {};
  }
  const std::string index = text_of(record, "JOBINDEX");
  if (is_number(index, kMaxId / 3) && index != "0") {
    id += '[' + index + ']';
  }
  return id;
}

bool same_host(std::string_view left, std::string_view right) {
  left = left.substr(0, left.find('.'));
  return !left.empty() && same_in_any_case(left, right.substr(0, right.find('.')));
}

/// ALLOC_SLOT is "a:a:b", or "2*a:b" if LSB_SHORT_HOSTLIST is set.
std::size_t count_slots(std::string_view text, std::string_view host) {
  std::size_t slots = 0;
  while (!text.empty() && slots < kMaxSlots) {
    std::string_view name = trim(take_until(text, ':'));
    std::size_t times = 1;
    if (const auto star = name.find('*'); star != std::string_view::npos) {
      times = parse_int<std::size_t>(name.substr(0, star)).value_or(0);
      name.remove_prefix(star + 1);
    }
    if (same_host(name, host)) {
      slots += std::min(times, kMaxSlots);
    }
  }
  return std::min(slots, kMaxSlots);
}

/// GPU_ALLOC is "a:0,1;b:2": the minors of the job's GPUs on each host, which may be repeated for
/// each task. A part of a GPU is "0/3/0" or similar.
void take_gpus(std::string_view text, std::string_view host, Allocation& allocation) {
  while (!text.empty()) {
    std::string_view gpus = take_until(text, ';');
    const std::string_view name = trim(take_until(gpus, ':'));
    if (!same_host(name, host)) {
      continue;
    }
    while (!gpus.empty() && allocation.gpu_minors.size() < kMaxGpus) {
      const std::string_view gpu = trim(take_until(gpus, ','));
      if (gpu.find('/') != std::string_view::npos) {
        allocation.mig = true;
      } else if (const auto minor = parse_int<unsigned>(gpu)) {
        allocation.gpu_minors.push_back(*minor);
      }
    }
  }
  std::ranges::sort(allocation.gpu_minors);
  const auto repeated = std::ranges::unique(allocation.gpu_minors);
  allocation.gpu_minors.erase(repeated.begin(), repeated.end());
}

constexpr auto kTimeLimit = std::chrono::seconds(1);
constexpr std::size_t kMaxOutput = std::size_t{16} << 20U;

}  // namespace

Result<AllocationMap> parse_bjobs(std::string_view json_text, std::string_view host) {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  options.allow_invalid_utf8 = true;
  boost::system::error_code error;
  const json::value document =
      json::parse(json::string_view(json_text.data(), json_text.size()), error, {}, options);
  const json::object* const object = document.if_object();
  const json::value* const list = object == nullptr ? nullptr : object->if_contains("RECORDS");
  if (error || list == nullptr || !list->is_array()) {
    return fail(ErrorCode::kParse, "output of bjobs: {}",
                error ? error.message() : "expected an object with a list RECORDS");
  }
  AllocationMap allocations;
  for (const json::value& item : list->get_array()) {
    const json::object* const record = item.if_object();
    const std::string id = record == nullptr ? std::string() : id_of(*record);
    if (id.empty()) {
      continue;
    }
    Allocation allocation{.slots = count_slots(text_of(*record, "ALLOC_SLOT"), host)};
    take_gpus(text_of(*record, "GPU_ALLOC"), host, allocation);
    if (allocation != Allocation{}) {
      allocations[id] = std::move(allocation);
    }
  }
  return allocations;
}

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

AllocatedUnits::AllocatedUnits(std::shared_ptr<UnitSource> units,
                               std::shared_ptr<Allocations> allocations)
    : units_(std::move(units)), allocations_(std::move(allocations)) {}

Result<std::shared_ptr<const UnitSnapshot>> AllocatedUnits::snapshot(
    std::chrono::milliseconds max_age) {
  CEEMS_TRY(plain, units_->snapshot(max_age));
  return allocate(std::move(plain));
}

Result<std::shared_ptr<const UnitSnapshot>> AllocatedUnits::energy_snapshot(
    std::chrono::milliseconds max_age) {
  CEEMS_TRY(plain, units_->energy_snapshot(max_age));
  return allocate(std::move(plain));
}

std::shared_ptr<const UnitSnapshot> AllocatedUnits::allocate(
    std::shared_ptr<const UnitSnapshot> plain) {
  auto map = allocations_->of(*plain);
  if (map == nullptr) {
    return plain;
  }
  const MutexLock lock(mutex_);
  if (plain == plain_ && map == map_) {
    return result_;
  }
  auto result = std::make_shared<UnitSnapshot>(*plain);
  for (Unit& unit : result->units) {
    const auto found = map->find(unit.uuid);
    if (found != map->end() && found->second.slots > 0) {
      unit.stats.cpus = static_cast<double>(found->second.slots);
      unit.stats.reserved_cpus = unit.stats.cpus;
    }
  }
  plain_ = std::move(plain);
  map_ = std::move(map);
  result_ = std::move(result);
  return result_;
}

}  // namespace ceems::exporter::lsf
