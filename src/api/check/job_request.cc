#include "api/check/job_request.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/json.h"
#include "base/strings.h"

namespace ceems::api {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxText = 1024;       // bytes of a name
constexpr std::size_t kMaxDirective = 4096;  // bytes
constexpr std::size_t kMaxDirectives = 500;
constexpr double kMaxAsked = 1e18;
constexpr std::int64_t kMaxTasks = 10'000'000;

struct FormOfManager {
  std::string_view form, manager;
};
constexpr std::array<FormOfManager, 4> kForms{
    {{"sbatch", "slurm"}, {"pbs", "openpbs"}, {"lsf", "lsf"}, {"k8s", "k8s"}}};

std::string_view text_in(const json::value& value) {
  const json::string& text = value.as_string();
  return {text.data(), text.size()};
}

std::unexpected<Error> wrong(std::string_view member, std::string_view expected) {
  return fail(ErrorCode::kInvalidArgument, "{}: expected {}", member, expected);
}

Result<> read_text(const json::value& value,
                   std::string_view member,
                   std::size_t most,
                   std::string& target) {
  if (!value.is_string() || text_in(value).size() > most || text_in(value).contains('\0')) {
    return wrong(member, fmt::format("a text of at most {} bytes", most));
  }
  target = text_in(value);
  return {};
}

Result<double> read_number(const json::value& value, std::string_view member) {
  const double number = value.is_number() ? value.to_number<double>() : -1;
  if (!std::isfinite(number) || number < 0 || number > kMaxAsked) {
    return wrong(member, "a number that is not negative");
  }
  return number;
}

/// Names a member that is not known in a way that is safe to print.
std::unexpected<Error> unknown(std::string_view name, std::string_view known) {
  return fail(ErrorCode::kInvalidArgument, "unknown member '{}', expected one of {}",
              printable(name, 60), known);
}

Result<> read_asked(const json::object& object, JobRequest& request) {
  std::string executable;
  const std::array<std::pair<std::string_view, std::string*>, 4> texts{
      {{"name", &request.name},
       {"project", &request.project},
       {"partition", &request.partition},
       {"executable", &executable}}};
  const std::array<std::pair<std::string_view, report::Number*>, 5> numbers{
      {{"nodes", &request.nodes},
       {"cpus", &request.cpus},
       {"gpus", &request.gpus},
       {"memory_bytes", &request.memory},
       {"time_limit_s", &request.time_limit}}};
  for (const auto& [key, value] : object) {
    const std::string_view name(key.data(), key.size());
    const std::string member = fmt::format("request.{}", printable(name, 60));
    const auto* const text =
        std::ranges::find(texts, name, &std::pair<std::string_view, std::string*>::first);
    const auto* const number =
        std::ranges::find(numbers, name, &std::pair<std::string_view, report::Number*>::first);
    if (text != texts.end()) {
      CEEMS_TRY(read_text(value, member, kMaxText, *text->second));
    } else if (number != numbers.end()) {
      CEEMS_TRY(asked, read_number(value, member));
      // Managers write 0 for what is not asked for. A job without GPUs is known to have none.
      if (asked > 0 || name == "gpus") {
        *number->second = asked;
      }
    } else if (name == "array_tasks") {
      CEEMS_TRY(tasks, read_number(value, member));
      if (tasks < 1 || tasks > static_cast<double>(kMaxTasks)) {
        return wrong(member, fmt::format("a number from 1 to {}", kMaxTasks));
      }
      request.array_tasks = static_cast<std::int64_t>(tasks);
    } else {
      return unknown(fmt::format("request.{}", name),
                     "name, project, partition, nodes, cpus, gpus, memory_bytes, time_limit_s, "
                     "array_tasks, executable");
    }
  }
  if (request.name.empty()) {  // as managers name a job without a name
    const std::size_t slash = executable.rfind('/');
    request.name = slash == std::string::npos ? executable : executable.substr(slash + 1);
  }
  return {};
}

Result<> read_directives(const json::value& value, JobRequest& request) {
  if (!value.is_array() || value.as_array().size() > kMaxDirectives) {
    return wrong("directives", fmt::format("a list of at most {} texts", kMaxDirectives));
  }
  for (const json::value& one : value.as_array()) {
    CEEMS_TRY(read_text(one, "directives", kMaxDirective, request.directives.emplace_back()));
  }
  return {};
}

Result<> read_member(std::string_view name, const json::value& value, JobRequest& request) {
  if (name == "cluster_id") {
    return read_text(value, name, kMaxText, request.cluster_id);
  }
  if (name == "form") {
    CEEMS_TRY(read_text(value, name, kMaxText, request.form));
    return manager_of_form(request.form) ? Result<>() : wrong(name, "sbatch, pbs, lsf or k8s");
  }
  if (name == "request") {
    return value.is_object() ? read_asked(value.as_object(), request) : wrong(name, "an object");
  }
  if (name == "directives") {
    return read_directives(value, request);
  }
  if (name == "deadline_ts") {
    CEEMS_TRY(deadline, read_number(value, name));
    request.deadline_ms = static_cast<std::int64_t>(deadline);
    return {};
  }
  return unknown(name, "cluster_id, form, request, directives, deadline_ts");
}

/// The options of a job of SLURM, as jobscript::read_submit_options() takes the directives of a
/// script. A value in quotes may hold anything, so it is left out.
std::string slurm_options(const std::vector<std::string>& directives) {
  std::string all;
  for (const std::string_view directive : directives) {
    if (directive.starts_with('-') && directive.find_first_of("'\"\\") == std::string_view::npos) {
      all += (all.empty() ? "" : " ") + std::string(directive);
    }
  }
  return all.empty() ? "--" : all;
}

/// The select of a job of OpenPBS: "1:ncpus=4" of "-l select=1:ncpus=4,place=pack".
std::string pbs_select(const std::vector<std::string>& directives) {
  constexpr std::string_view kSelect = "select=";
  std::string_view select;
  for (const std::string_view directive : directives) {
    if (const std::size_t at = directive.find(kSelect); at != std::string_view::npos) {
      select = directive.substr(at + kSelect.size());
      select = select.substr(0, select.find_first_of(", "));
    }
  }
  return std::string(select);
}

}  // namespace

std::optional<std::string_view> manager_of_form(std::string_view form) {
  const auto* const found = std::ranges::find(kForms, form, &FormOfManager::form);
  return found == kForms.end() ? std::nullopt : std::optional(found->manager);
}

Result<JobRequest> parse_job_request(std::string_view body) {
  if (body.size() > kMaxJobRequest) {
    return fail(ErrorCode::kInvalidArgument, "the request has more than {} bytes", kMaxJobRequest);
  }
  json::error_code error;
  const json::value value = json::parse(json::string_view(body.data(), body.size()), error);
  if (error || !value.is_object()) {
    return fail(ErrorCode::kInvalidArgument, "expected a JSON object as the body of the request");
  }
  JobRequest request;
  for (const auto& [key, member] : value.as_object()) {
    CEEMS_TRY(read_member({key.data(), key.size()}, member, request));
  }
  if (request.cluster_id.empty()) {
    return fail(ErrorCode::kInvalidArgument, "cluster_id missing in the request");
  }
  return request;
}

StoredUnit unit_of(const JobRequest& request, std::string_view manager) {
  StoredUnit stored;
  model::Unit& unit = stored.unit;
  unit.cluster_id = request.cluster_id;
  unit.resource_manager = manager;
  unit.name = request.name;
  unit.project = request.project;
  unit.allocation.clear();
  unit.tags.clear();
  JsonWriter allocation(unit.allocation);
  allocation.begin_object();
  const auto add = [&allocation](std::string_view name, const report::Number& number) {
    if (number) {
      allocation.member(name, *number);
    }
  };
  add("nodes", request.nodes);
  add(manager == "k8s" ? "vcpus" : "cpus", request.cpus);
  add("req_cpus", request.cpus);
  add("gpus", request.gpus);
  add("mem", request.memory);
  add("req_mem", request.memory);
  add("time_limit", request.time_limit);
  allocation.end_object();
  JsonWriter tags(unit.tags);
  tags.begin_object().member("partition", request.partition);
  if (manager == "slurm" && !request.directives.empty()) {
    tags.member("submit_line", "sbatch")
        .member("script_options", slurm_options(request.directives));
  } else if (manager == "openpbs") {
    tags.member("select", pbs_select(request.directives));
  }
  tags.end_object();
  return stored;
}

}  // namespace ceems::api
