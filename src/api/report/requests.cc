#include "api/report/requests.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "api/report/json_object.h"
#include "base/strings.h"
#include "model/exit_reason.h"

namespace ceems::api {
namespace {

using report::Number;

// What the manager k8s stores for a pod without limits.
constexpr double kNoCpus = 0.001;
constexpr double kNoMemory = 1;

// What else the manager k8s stores in an allocation.
constexpr std::array<std::string_view, 4> kNoGpus{"vcpus", "mem", "req_cpus", "req_mem"};

constexpr std::int64_t kMaxCount = 1'000'000;

bool is_of(const StoredUnit& unit, std::string_view manager) {
  return unit.unit.resource_manager == manager;
}

Number above(const Number& number, double least) {
  return number && *number > least ? number : std::nullopt;
}

/// What OpenPBS says of the end: a number below 0 if it ended the job itself, else 256 and the
/// signal that ended it.
std::string_view pbs_state(const StoredUnit& unit, double elapsed) {
  constexpr std::int64_t kWalltime = -29;
  constexpr std::int64_t kSignal = 256;
  const auto status = parse_int<std::int64_t>(unit.tag("exit_status")).value_or(0);
  const auto limit = unit.allocated("time_limit");
  if (status == kWalltime || (status > kSignal && limit && *limit > 0 && elapsed >= *limit)) {
    return "TIMEOUT";
  }
  return unit.unit.state;
}

std::string_view lsf_state(const StoredUnit& unit) {
  return unit.tag("exit_reason") == "TERM_RUNLIMIT" ? "TIMEOUT" : std::string_view(unit.unit.state);
}

/// "128gb", as pbs_resources(7B) allows it.
bool is_size(std::string_view text) {
  const std::size_t unit = std::min(text.find_first_not_of("0123456789"), text.size());
  constexpr std::size_t kMaxDigits = 15;
  constexpr std::array<std::string_view, 12> kUnits{"",   "b", "kb", "mb", "gb", "tb",
                                                    "pb", "w", "kw", "mw", "gw", "tw"};
  return unit > 0 && unit <= kMaxDigits &&
         std::ranges::find(kUnits, to_lower(text.substr(unit))) != kUnits.end();
}

/// The parts of a chunk, each with its colon, or "".
struct Chunks {
  std::int64_t count = 1, cpus = 1;
  std::string memory = {}, gpus = {}, more = {};
};

bool take_part(std::string_view name, std::string_view value, Chunks& chunks) {
  if (name == "mem") {
    chunks.memory = fmt::format(":mem={}", value);
    return is_size(value);
  }
  const auto number = parse_int<std::int64_t>(value);
  if (!number || *number < 0 || *number > kMaxCount) {
    return false;
  }
  if (name == "ncpus") {
    chunks.cpus = *number;
  } else if (name == "ngpus") {
    chunks.gpus = fmt::format(":ngpus={}", *number);
  } else if (name == "mpiprocs" || name == "ompthreads") {
    chunks.more += fmt::format(":{}={}", name, *number);
  } else {
    return false;
  }
  return true;
}

/// "2:ncpus=16:mem=128gb:ngpus=4:mpiprocs=16". Nothing for several kinds of chunks, and for
/// resources whose values are words.
std::optional<Chunks> parse_select(std::string_view text) {
  Chunks chunks;
  if (text.empty()) {
    return std::nullopt;
  }
  if (text.front() >= '0' && text.front() <= '9') {
    const auto count = parse_int<std::int64_t>(take_until(text, ':'));
    if (!count || *count < 1 || *count > kMaxCount) {
      return std::nullopt;
    }
    chunks.count = *count;
  }
  while (!text.empty()) {
    std::string_view value = take_until(text, ':');
    const std::string_view name = take_until(value, '=');
    if (!take_part(name, value, chunks)) {
      return std::nullopt;
    }
  }
  return chunks;
}

/// Whether a text has only what names of resources have.
bool is_resource(std::string_view text) {
  return !text.empty() && has_only_words(text, "-./_");
}

/// "nvidia.com/gpu": the only resource of the pod that is neither CPUs nor memory. The allocation
/// holds none but those that the site counts as GPUs.
std::optional<std::string> gpu_resource(const StoredUnit& unit) {
  std::optional<std::string> found;
  for (const auto& member : object_of(unit.unit.allocation)) {
    const std::string_view name(member.key().data(), member.key().size());
    if (std::ranges::find(kNoGpus, name) != kNoGpus.end()) {
      continue;
    }
    if (found || !is_resource(name)) {
      return std::nullopt;
    }
    found = name;
  }
  return found;
}

}  // namespace

std::string_view common_state(const StoredUnit& unit, double elapsed) {
  const std::string_view state = unit.unit.state;
  if (model::ran_out_of_memory(unit.unit.resource_manager, state, unit.tag("exit_reason"),
                               unit.tag("exit_status"))) {
    return "OUT_OF_MEMORY";
  }
  if (is_of(unit, "lsf")) {
    return state == "DONE" ? "COMPLETED" : state == "EXIT" ? lsf_state(unit) : state;
  }
  if (is_of(unit, "openpbs")) {
    return state == "FINISHED" ? "COMPLETED" : state == "FAILED" ? pbs_state(unit, elapsed) : state;
  }
  if (is_of(unit, "k8s")) {
    return state == "Succeeded" ? "COMPLETED" : state;
  }
  return state;
}

Number cpus_of(const StoredUnit& unit) {
  if (is_of(unit, "k8s")) {
    return above(unit.allocated("vcpus"), kNoCpus);
  }
  const Number cpus = unit.allocated("cpus");
  return cpus ? cpus : unit.allocated("vcpus");
}

Number gpus_of(const StoredUnit& unit) {
  if (!is_of(unit, "k8s")) {
    return unit.allocated("gpus");
  }
  const auto& times = unit.unit.total_time_seconds;
  const auto all = times.find("walltime");
  const auto gpus = times.find("alloc_gputime");
  return all == times.end() || gpus == times.end() || all->second <= 0
             ? std::nullopt
             : Number(std::round(gpus->second / all->second));
}

Number memory_of(const StoredUnit& unit) {
  constexpr double kMiB = 1024.0 * 1024;  // OpenStack's unit of a flavor's memory
  const Number memory = unit.allocated("mem");
  if (is_of(unit, "openstack")) {
    return above(memory ? Number(*memory * kMiB) : memory, 0);
  }
  return above(memory, is_of(unit, "k8s") ? kNoMemory : 0);
}

bool memory_is_reserved(const StoredUnit& unit) {
  if (is_of(unit, "lsf")) {
    return unit.allocated("req_mem").has_value();
  }
  return !(is_of(unit, "openpbs") || is_of(unit, "k8s")) || memory_of(unit).has_value();
}

void add_requests(const StoredUnit& unit, advice::Facts& facts) {
  Number cpus = unit.allocated("req_cpus");
  if (!cpus && is_of(unit, "lsf")) {
    cpus = cpus_of(unit);  // a slot is given as it was asked for
  }
  if (cpus) {
    facts.set("req.cpus", *cpus);
  }
  if (const Number memory = above(unit.allocated("req_mem"), 0)) {
    facts.set("req.mem", *memory);
  }
  if (is_of(unit, "k8s")) {
    if (auto resource = gpu_resource(unit)) {
      facts.set("k8s.gpu_resource", *std::move(resource));
    }
  }
  if (!is_of(unit, "openpbs")) {
    return;
  }
  const auto chunks = parse_select(unit.tag("select"));
  const double nodes = unit.allocated("nodes").value_or(0);
  if (chunks && static_cast<double>(chunks->count) == nodes &&
      static_cast<double>(chunks->cpus) * nodes == unit.allocated("cpus").value_or(0)) {
    facts.set("pbs.mem", chunks->memory);
    facts.set("pbs.gpus", chunks->gpus);
    facts.set("pbs.more", chunks->more);
  }
}

}  // namespace ceems::api
