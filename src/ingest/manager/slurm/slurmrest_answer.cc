#include "ingest/manager/slurm/slurmrest_answer.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/strings.h"
#include "base/time/time_text.h"

namespace ceems::ingest {
namespace {

constexpr double kMebibyte = 1 << 20;

namespace json = boost::json;

constexpr std::size_t kMaxDepth = 32;
constexpr std::int64_t kMaxSeconds = 253'402'300'799;  // the end of the year 9999

std::string text_of(const json::string& text) {
  return {text.c_str(), text.size()};
}

Result<json::object> parse_object(std::string_view text, std::string_view what) {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  options.allow_invalid_utf8 = true;  // in job names; cleaned before they are stored
  boost::system::error_code error;
  json::value value = json::parse(json::string_view(text.data(), text.size()), error, {}, options);
  if (error || !value.is_object()) {
    return fail(ErrorCode::kParse, "{} of slurmrestd: {}", what,
                error ? error.message() : "not an object");
  }
  return std::move(value.get_object());
}

/// Returns the value at this path of nested keys, or null.
const json::value* find(const json::object& object, std::initializer_list<const char*> path) {
  const json::object* at = &object;
  const json::value* value = nullptr;
  for (const char* key : path) {
    value = at == nullptr ? nullptr : at->if_contains(key);
    at = value == nullptr ? nullptr : value->if_object();
  }
  return value;
}

std::string text_at(const json::object& object, std::initializer_list<const char*> path) {
  const json::value* value = find(object, path);
  return value != nullptr && value->is_string() ? text_of(value->get_string()) : std::string();
}

std::optional<std::int64_t> plain_number(const json::value& value) {
  if (const auto* number = value.if_int64()) {
    return *number;
  }
  if (const auto* text = value.if_string()) {
    return parse_int<std::int64_t>(text_of(*text));
  }
  return std::nullopt;  // too large for any count or time, or none
}

/// Reads 5, "5", or {"set": true, "infinite": false, "number": 5}.
std::optional<std::int64_t> number_at(const json::object& object,
                                      std::initializer_list<const char*> path) {
  const json::value* value = find(object, path);
  if (value == nullptr) {
    return std::nullopt;
  }
  const json::object* inner = value->if_object();
  if (inner == nullptr) {
    return plain_number(*value);
  }
  const json::value* number = inner->if_contains("number");
  const json::value* set = inner->if_contains("set");
  const json::value* infinite = inner->if_contains("infinite");
  const bool is_set = set == nullptr || !set->is_bool() || set->get_bool();
  const bool is_infinite = infinite != nullptr && infinite->is_bool() && infinite->get_bool();
  return number == nullptr || !is_set || is_infinite ? std::nullopt : plain_number(*number);
}

/// Reads epoch seconds as milliseconds; nothing for 0, which is SLURM's "not yet".
std::optional<std::int64_t> time_at(const json::object& object,
                                    std::initializer_list<const char*> path) {
  const auto seconds = number_at(object, path);
  if (!seconds || *seconds <= 0 || *seconds > kMaxSeconds) {
    return std::nullopt;
  }
  return *seconds * 1000;
}

/// Returns a string as a list of one, or the strings of a list.
std::vector<std::string> texts_at(const json::object& object,
                                  std::initializer_list<const char*> path) {
  std::vector<std::string> texts;
  const json::value* value = find(object, path);
  if (value == nullptr) {
    return texts;
  }
  if (const auto* text = value->if_string()) {
    texts.push_back(text_of(*text));
  } else if (const auto* list = value->if_array()) {
    for (const auto& item : *list) {
      if (const auto* element = item.if_string()) {
        texts.push_back(text_of(*element));
      }
    }
  }
  return texts;
}

/// Returns the state as sacct prints it: if the state has a flag such as RESIZING, the flag.
std::string state_of(const json::object& job) {
  static constexpr std::array<std::string_view, 12> kBaseStates = {
      "PENDING", "RUNNING",   "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED",
      "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE",  "OUT_OF_MEMORY"};
  const auto states = texts_at(job, {"state", "current"});
  for (const auto& state : states) {
    if (std::ranges::find(kBaseStates, state) == kBaseStates.end()) {
      return state;
    }
  }
  return states.empty() ? std::string() : states.front();
}

Allocation allocation_of(const json::object& job) {
  AllocationBuilder builder;
  const json::value* list = find(job, {"tres", "allocated"});
  if (list == nullptr || !list->is_array()) {
    return {};
  }
  for (const auto& item : list->get_array()) {
    const json::object* tres = item.if_object();
    if (tres == nullptr) {
      continue;
    }
    std::string type = text_at(*tres, {"type"});
    const std::string name = text_at(*tres, {"name"});
    const std::int64_t count = number_at(*tres, {"count"}).value_or(0);
    if (type == "mem") {
      builder.add_memory(static_cast<double>(count) * kMebibyte);
    } else {
      if (!name.empty()) {
        type.append("/").append(name);
      }
      builder.add(type, count);
    }
  }
  return builder.done();
}

/// Adds up the requested trackable resources.
std::int64_t requested_memory(const json::object& job) {
  const json::value* list = find(job, {"tres", "requested"});
  if (list == nullptr || !list->is_array()) {
    return 0;
  }
  AllocationBuilder builder;
  for (const auto& item : list->get_array()) {
    const json::object* tres = item.if_object();
    if (tres != nullptr && text_at(*tres, {"type"}) == "mem") {
      builder.add_memory(static_cast<double>(number_at(*tres, {"count"}).value_or(0)) * kMebibyte);
    }
  }
  return builder.done().memory_bytes;
}

/// The type of the requested GPUs; "" for none, and for several.
std::string requested_gpu_type(const json::object& job) {
  std::string found;
  const json::value* list = find(job, {"tres", "requested"});
  const json::array* all = list == nullptr ? nullptr : list->if_array();
  for (std::size_t i = 0; all != nullptr && i < all->size(); ++i) {
    const json::object* tres = (*all)[i].if_object();
    if (tres == nullptr || text_at(*tres, {"type"}) != "gres") {
      continue;
    }
    const std::string resource = "gres/" + text_at(*tres, {"name"});
    const std::string_view type = gpu_type_of(resource);
    if (!type.empty() && !found.empty()) {
      return {};
    }
    found += type;
  }
  return found;
}

/// The energy of all steps; nothing if none has any.
std::optional<std::int64_t> energy_of_steps(const json::object& job) {
  const json::value* steps = find(job, {"steps"});
  std::int64_t sum = 0;
  if (steps != nullptr && steps->is_array()) {
    for (const auto& item : steps->get_array()) {
      const json::object* step = item.if_object();
      const auto joules =
          step == nullptr ? std::nullopt : number_at(*step, {"statistics", "energy", "consumed"});
      constexpr std::int64_t kMax = std::int64_t{1} << 53U;
      if (joules && *joules > 0 && *joules <= kMax && sum <= kMax) {
        sum += *joules;
      }
    }
  }
  return sum > 0 ? std::optional(sum) : std::nullopt;
}

SlurmDetails details_of(const json::object& job, std::int64_t nodes) {
  SlurmDetails details;
  const auto array = number_at(job, {"array", "job_id"});
  const auto task = number_at(job, {"array", "task_id"});
  if (array && task && *array > 0 && *task >= 0) {
    details.array_job = array;
    details.array_task = task;
  }
  const auto het = number_at(job, {"het", "job_id"});
  const auto offset = number_at(job, {"het", "job_offset"});
  if (het && offset && *het > 0 && *offset >= 0) {
    details.het_job = het;
    details.het_offset = offset;
  }
  details.time_limit_seconds = limit_seconds(number_at(job, {"time", "limit"}));
  const auto cpus = number_at(job, {"required", "CPUs"});
  if (cpus && *cpus > 0) {
    details.requested_cpus = cpus;
  }
  if (const std::int64_t memory = requested_memory(job); memory > 0) {
    details.requested_memory_bytes = memory;
  } else {
    const auto megabytes = [&](const char* key, const char* suffix,
                               const std::optional<std::int64_t>& times) {
      const auto number = number_at(job, {"required", key});
      return number && *number > 0 && times
                 ? parse_requested_memory(fmt::format("{}M{}", *number, suffix), times, nodes)
                 : std::nullopt;
    };
    details.requested_memory_bytes = megabytes("memory_per_cpu", "c", cpus);
    if (!details.requested_memory_bytes) {
      details.requested_memory_bytes = megabytes("memory_per_node", "n", nodes);
    }
  }
  if (number_at(job, {"required", "memory_per_cpu"}).value_or(0) > 0) {
    details.memory_per = "cpu";
  } else if (number_at(job, {"required", "memory_per_node"}).value_or(0) > 0) {
    details.memory_per = "node";
  }
  details.gpu_type = requested_gpu_type(job);
  if (const auto restarts = number_at(job, {"restart_cnt"}); restarts && *restarts >= 0) {
    details.restarts = restarts;
  }
  details.eligible_ms = time_at(job, {"time", "eligible"});
  details.consumed_joules = energy_of_steps(job);
  details.constraints = text_at(job, {"constraints"});
  details.submit_line = text_at(job, {"submit_line"});
  details.sluid = text_at(job, {"sluid"});
  details.js1 = js1_of(text_at(job, {"comment", "administrator"}));
  return details;
}

std::string exit_code_of(const json::object& job) {
  const auto code = number_at(job, {"exit_code", "return_code"}).value_or(0);
  auto signal = number_at(job, {"exit_code", "signal", "signal_id"});  // v0.0.38, v0.0.39
  if (!signal) {
    signal = number_at(job, {"exit_code", "signal", "id"});
  }
  return fmt::format("{}:{}", code, signal.value_or(0));
}

}  // namespace

Result<RestJob> parse_rest_job(std::string_view text) {
  CEEMS_TRY(object, parse_object(text, "a job"));
  const auto id = number_at(object, {"job_id"});
  if (!id || *id <= 0) {
    return fail(ErrorCode::kParse, "a job of slurmrestd: no job_id");
  }
  RestJob found;
  SlurmJob& job = found.job;
  job.id = fmt::format("{}", *id);
  job.partition = text_at(object, {"partition"});
  job.qos = text_at(object, {"qos"});
  job.account = text_at(object, {"account"});
  job.group = text_at(object, {"group"});
  job.user = text_at(object, {"user"});
  if (job.user.empty()) {
    job.user = text_at(object, {"association", "user"});
  }
  job.submit_text = job.start_text = job.end_text = "Unknown";
  job.submit_ms = time_at(object, {"time", "submission"});
  job.start_ms = time_at(object, {"time", "start"});
  job.end_ms = time_at(object, {"time", "end"});
  job.elapsed = elapsed_text(
      std::clamp<std::int64_t>(number_at(object, {"time", "elapsed"}).value_or(0), 0, kMaxSeconds));
  job.exit_code = exit_code_of(object);
  job.state = state_of(object);
  job.allocation = allocation_of(object);
  if (const auto nodes = number_at(object, {"allocation_nodes"});
      nodes && *nodes > 0 && job.allocation.nodes == 0) {
    job.allocation.nodes = *nodes;
  }
  job.details = details_of(object, job.allocation.nodes);
  job.node_list = text_at(object, {"nodes"});
  job.name = text_at(object, {"name"});
  job.work_dir = text_at(object, {"working_directory"});
  found.cluster = text_at(object, {"cluster"});
  found.killed_by = text_at(object, {"kill_request_user"});
  found.waiting = job.node_list == "None assigned" || job.state == "PENDING";
  return found;
}

Result<RestAssociation> parse_rest_association(std::string_view text) {
  CEEMS_TRY(object, parse_object(text, "an association"));
  return RestAssociation{.account = text_at(object, {"account"}),
                         .user = text_at(object, {"user"}),
                         .cluster = text_at(object, {"cluster"})};
}

RestProblem parse_rest_problem(std::string_view text) {
  const auto object = parse_object(text, "an error");
  if (!object) {
    return {.number = 0, .text = printable(text, 200)};
  }
  std::string message = text_at(*object, {"error"});
  const std::string description = text_at(*object, {"description"});
  if (!description.empty()) {
    message += (message.empty() ? "" : ": ") + description;
  }
  const auto number =
      number_at(*object, {"error_number"})
          .value_or(number_at(*object, {"errno"}).value_or(0));  // v0.0.37 and older
  return {.number = number,
          .text = message.empty() ? fmt::format("error {}", number) : printable(message, 200)};
}

Result<RestAccount> parse_rest_account(std::string_view text) {
  CEEMS_TRY(object, parse_object(text, "an account"));
  RestAccount account{.name = text_at(object, {"name"}),
                      .coordinators = texts_at(object, {"coordinators"})};
  if (const json::value* list = find(object, {"coordinators"});
      list != nullptr && list->is_array()) {
    for (const auto& item : list->get_array()) {
      if (const json::object* person = item.if_object()) {
        account.coordinators.push_back(text_at(*person, {"name"}));
      }
    }
  }
  std::erase(account.coordinators, std::string());
  return account;
}

}  // namespace ceems::ingest
