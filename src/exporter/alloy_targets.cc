#include "exporter/alloy_targets.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/strings.h"

namespace ceems::exporter {
namespace {

// Requests within this time share one walk of the cgroups.
constexpr auto kSharedAge = std::chrono::milliseconds(100);
constexpr std::string_view kSelf = "__internal_ceems_exporter";

void append_target(JsonWriter& json, std::string_view id, std::string_view uuid, int pid) {
  json.begin_object().key("targets").begin_array().value(id).end_array();
  json.key("labels").begin_object().member("__process_pid__", std::to_string(pid));
  json.member("service_name", uuid).end_object().end_object();
}

}  // namespace

void add_alloy_target_flags(config::FlagSet& flags, AlloyTargetOptions& options) {
  flags.add("discoverer.alloy-targets", options.enabled,
            {.help = "Serve the processes of batch jobs or pods as targets of Grafana Alloy"});
  flags.add(
      "discoverer.alloy-targets.env-var", options.variables,
      {.help = "Serve only processes with an environment variable whose name starts with this "
               "(NAME= for exactly NAME); may be repeated"});
  flags.add("discoverer.alloy-targets.self-profiler", options.self,
            {.help = "Serve the exporter itself as a target, too"});
}

std::unique_ptr<AlloyTargets> AlloyTargets::create(
    const AlloyTargetOptions& options,
    std::span<const std::shared_ptr<UnitSource>> sources,
    const host::Paths& paths) {
  if (!options.enabled) {
    return nullptr;
  }
  for (const std::string_view manager :
       std::array<std::string_view, 4>{"slurm", "lsf", "openpbs", "k8s"}) {
    const auto found =
        std::ranges::find_if(sources, [&](const auto& s) { return s->manager() == manager; });
    if (found != sources.end()) {
      return std::make_unique<AlloyTargets>(options, *found, paths);
    }
  }
  return nullptr;
}

AlloyTargets::AlloyTargets(const AlloyTargetOptions& options,
                           std::shared_ptr<UnitSource> source,
                           const host::Paths& paths)
    : source_(std::move(source)),
      filter_(paths.proc, std::string(source_->manager()), options.variables),
      self_(options.self) {
  source_->want_processes();
}

Result<std::string> AlloyTargets::document() const {
  CEEMS_TRY(snapshot, source_->snapshot(kSharedAge));
  std::string out;
  JsonWriter json(out, JsonEscape::kPlain);
  json.begin_array();
  for (const Unit& unit : snapshot->units) {
    if (unit.ended) {
      continue;
    }
    for (const int pid : filter_.keep(unit.pids)) {
      append_target(json, unit.id, unit.uuid, pid);
    }
  }
  if (self_) {
    append_target(json, kSelf, kSelf, ::getpid());
  }
  json.end_array();
  if (out == "[]") {
    out = "null";  // the reference writes an empty list as Go does
  }
  out += '\n';
  return out;
}

}  // namespace ceems::exporter
