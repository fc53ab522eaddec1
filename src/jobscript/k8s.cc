#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/strings.h"
#include "config/yaml.h"
#include "jobscript/amounts.h"
#include "jobscript/request.h"
#include "kube/quantity.h"

namespace ceems::jobscript {
namespace {

using config::Node;

std::string text_in(const Node& node) {
  return node.as_string().value_or("");
}

/// The pod of a Pod, Job or CronJob; `job` becomes the specification of the job, if there is one.
Node pod_in(const Node& manifest, Node& job) {
  const std::string kind = text_in(manifest["kind"]);
  if (kind == "Pod") {
    return manifest["spec"];
  }
  if (kind == "Job") {
    job = manifest["spec"];
  } else if (kind == "CronJob") {
    job = manifest["spec"]["jobTemplate"]["spec"];
  }
  return job["template"]["spec"];
}

bool is_gpu(std::string_view resource) {
  return resource.ends_with("/gpu") || resource.starts_with("nvidia.com/mig-") ||
         resource.starts_with("gpu.intel.com/");
}

bool is_resource(std::string_view text) {
  constexpr std::size_t kMaxName = 64;
  return text.size() <= kMaxName && has_only_words(text, "-./_");
}

/// Adds what a container asks for; a limit counts where there is no request.
void add_container(const Node& container, Request& request) {
  const Node asked = container["resources"]["requests"];
  const Node limits = container["resources"]["limits"];
  for (const bool limit : {false, true}) {
    for (const auto& [name, node] : (limit ? limits : asked).entries()) {
      const std::string text = text_in(node);
      const auto amount = kube::parse_quantity(text);
      if (!amount || (limit && asked[name].present()) || !is_resource(name)) {
        continue;
      }
      if (name == "cpu") {
        request.cpus = request.cpus.value_or(0) + *amount;
      } else if (name == "memory") {
        const double bytes = static_cast<double>(request.memory_bytes.value_or(0)) + *amount;
        request.memory_bytes =
            bytes < kMaxBytes ? std::optional(static_cast<std::int64_t>(bytes)) : std::nullopt;
      } else if (is_gpu(name)) {
        request.gpus = request.gpus.value_or(0) + count_in(text).value_or(0);
      } else {
        continue;
      }
      request.directives.push_back(fmt::format("{}: {}", name, text));
    }
  }
}

/// The first document of the text that has a pod.
Result<Node> manifest_in(std::string_view text, Node& job) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find("\n---"), text.size());
    CEEMS_TRY(manifest, config::parse_yaml(text.substr(0, end), "manifest"));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pod_in(manifest, job).is_map()) {
      return manifest;
    }
  }
  return fail(ErrorCode::kParse, "expected a manifest of a Pod, Job or CronJob");
}

}  // namespace

Result<Request> read_k8s(std::string_view text) {
  Node job;
  CEEMS_TRY(manifest, manifest_in(text, job));
  const Node pod = pod_in(manifest, job);
  Request request;
  const Node metadata = manifest["metadata"];
  request.name = text_in(metadata["name"]);
  if (request.name.empty()) {
    request.name = text_in(metadata["generateName"]);
  }
  request.project = text_in(metadata["namespace"]);
  request.gpus = 0;
  const auto containers = pod["containers"].items();
  for (const Node& container : containers) {
    add_container(container, request);
  }
  if (!containers.empty()) {
    std::string command;
    for (const char* key : {"command", "args"}) {
      for (const std::string& word :
           containers.front()[key].as_string_list().value_or(std::vector<std::string>())) {
        command += word + " ";
      }
    }
    request.executable = executable_of(command);
  }
  request.nodes = 1;
  const Node limit = job["activeDeadlineSeconds"].present() ? job["activeDeadlineSeconds"]
                                                            : pod["activeDeadlineSeconds"];
  if (const auto seconds = limit.as_int(); seconds && *seconds > 0 && *seconds < kMaxSeconds) {
    request.time_limit_s = *seconds;
  }
  const auto completions = job["completions"].as_int();
  if (completions && *completions > 1) {
    request.array_tasks = count_in(std::to_string(*completions));
  }
  return request;
}

}  // namespace ceems::jobscript
