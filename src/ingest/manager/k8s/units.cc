#include "ingest/manager/k8s/units.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/time/time_text.h"
#include "base/utf8.h"
#include "ingest/manager/unit_fields.h"

namespace ceems::ingest {
namespace {

constexpr double kPodMebi = 1 << 20;
constexpr double kMinCpus = 0.001;
constexpr double kMinMemoryBytes = 1;
constexpr const char* kUnknown = "N/A";

/// Returns the value of the first of `names` that is set; empty if none is.
std::string_view first_annotation(const kube::Pod& pod, const std::vector<std::string>& names) {
  for (const auto& name : names) {
    const auto found = pod.annotations.find(name);
    if (found != pod.annotations.end() && !found->second.empty()) {
      return found->second;
    }
  }
  return {};
}

using Quantities = std::map<std::string, double, std::less<>>;

double quantity_of(const Quantities& quantities, std::string_view resource) {
  const auto found = quantities.find(resource);
  return found == quantities.end() ? 0 : found->second;
}

void add_map(JsonWriter& json, std::string_view key, const kube::TextMap& map) {
  if (map.empty()) {
    return;
  }
  json.key(key).begin_object();
  for (const auto& [name, value] : map) {
    json.member(clean_text(name), clean_text(value));
  }
  json.end_object();
}

std::string tags_text(const kube::Pod& pod) {
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  json.begin_object().member("qos", clean_text(pod.qos));
  if (pod.out_of_memory && pod.phase == "Failed") {
    json.member("exit_reason", "OOMKilled");
  }
  add_map(json, "annotations", pod.annotations);
  add_map(json, "labels", pod.labels);
  json.end_object();
  return text;
}

/// `over`: whether the pod had ended by the end of the window.
std::string state_of(const kube::StoredPod& stored, bool over) {
  const kube::Pod& pod = stored.pod;
  if (over) {
    return pod.finished() ? pod.phase : "Deleted";
  }
  if (pod.phase == "Running") {
    return pod.ready.empty() ? pod.phase : pod.phase + "/" + pod.ready;
  }
  // If it finished after the window, it was still running then; whether it was ready is not known.
  return pod.finished() ? "Running" : pod.phase;
}

}  // namespace

PodOwner owner_of(const kube::Pod& pod, const K8sUnitOptions& options) {
  PodOwner owner;
  const std::string_view project = first_annotation(pod, options.project_annotations);
  const std::string_view user = first_annotation(pod, options.username_annotations);
  owner.project = clean_text(project.empty() ? pod.name_space : project);
  const bool service = user.empty() || user.find("serviceaccount") != std::string_view::npos;
  owner.user = service ? owner.project + ":svc" : clean_text(user);
  return owner;
}

bool has_started(const kube::Pod& pod) {
  return pod.start_ms > 0 && pod.phase != "Pending";
}

std::optional<model::Unit> k8s_unit(const kube::StoredPod& stored,
                                    const K8sUnitOptions& options,
                                    model::Window window,
                                    std::int64_t counted_ms,
                                    const TimeZone& zone) {
  const kube::Pod& pod = stored.pod;
  const bool started = has_started(pod);
  if (pod.created_ms > window.end_ms || (started && pod.start_ms > window.end_ms)) {
    return std::nullopt;
  }
  const std::int64_t end = stored.end_ms();
  const bool over = end > 0 && end <= window.end_ms;
  const bool runs = started && (over || pod.phase == "Running" || pod.finished());

  model::Unit unit;
  unit.uuid = clean_text(pod.uid);
  unit.name = clean_text(pod.name);
  const PodOwner owner = owner_of(pod, options);
  unit.project = owner.project;
  unit.username = owner.user;
  unit.created_at_ts = pod.created_ms;
  unit.started_at_ts = started ? pod.start_ms : 0;
  unit.ended_at_ts = over ? end : 0;
  print_times(unit, zone, kUnknown);
  const std::int64_t until = over ? end : window.end_ms;
  unit.elapsed =
      runs && pod.created_ms > 0 ? elapsed_text((until - pod.created_ms) / 1000) : kUnknown;
  unit.state = clean_text(state_of(stored, over));

  const Quantities& held = options.requests_without_limits ? pod.reserved : pod.limits;
  const double cpus = std::max(quantity_of(held, "cpu"), kMinCpus);
  const double memory = std::max(quantity_of(held, "memory"), kMinMemoryBytes);
  double gpus = 0;
  std::string allocation_text;
  JsonWriter allocation(allocation_text, JsonEscape::kPlain);
  allocation.begin_object().member("vcpus", cpus).member("mem", memory);
  for (const auto& resource : options.gpu_resources) {
    if (const double count = quantity_of(held, resource); count > 0) {
      allocation.member(clean_text(resource), count);
      gpus += count;
    }
  }
  for (const auto& [key, resource] : {std::pair("req_cpus", "cpu"), {"req_mem", "memory"}}) {
    if (const double count = quantity_of(pod.requests, resource); count > 0) {
      allocation.member(key, count);
    }
  }
  allocation.end_object();
  unit.allocation = std::move(allocation_text);
  unit.tags = tags_text(pod);

  const std::int64_t from = std::max(pod.start_ms, counted_ms);
  const double seconds =
      runs ? static_cast<double>(std::max<std::int64_t>(until - from, 0)) / 1000 : 0;
  const double memory_unit = options.memory_time_in_mib ? kPodMebi : 1;
  unit.total_time_seconds = allocation_times(seconds, cpus, memory / memory_unit, gpus);
  return unit;
}

}  // namespace ceems::ingest
