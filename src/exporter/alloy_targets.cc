#include "exporter/alloy_targets.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "exporter/json_string.h"

namespace ceems::exporter {
namespace {

// A walk made this shortly before serves several requests.
constexpr auto kSharedAge = std::chrono::milliseconds(100);
constexpr std::string_view kSelf = "__internal_ceems_exporter";

void append_target(std::string& out, std::string_view id, std::string_view uuid, int pid) {
  out += out.empty() ? "[{\"targets\":[" : ",{\"targets\":[";
  append_json_string(out, id);
  fmt::format_to(std::back_inserter(out), R"(],"labels":{{"__process_pid__":"{}","service_name":)",
                 pid);
  append_json_string(out, uuid);
  out += "}}";
}

}  // namespace

void add_alloy_target_flags(config::FlagSet& flags, AlloyTargetOptions& options) {
  flags.add("discoverer.alloy-targets", options.enabled,
            {.help = "Serve the processes of SLURM jobs or pods as targets of Grafana Alloy"});
  flags.add("discoverer.alloy-targets.env-var", options.variables,
            {.help = "Only processes with an environment variable whose name starts so (NAME=: "
                     "exactly that name); may be repeated"});
  flags.add("discoverer.alloy-targets.self-profiler", options.self,
            {.help = "The exporter itself is a target, too"});
}

std::unique_ptr<AlloyTargets> AlloyTargets::create(
    const AlloyTargetOptions& options,
    std::span<const std::shared_ptr<UnitSource>> sources,
    const host::Paths& paths) {
  if (!options.enabled) {
    return nullptr;
  }
  for (const std::string_view manager : std::array<std::string_view, 2>{"slurm", "k8s"}) {
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
  const auto snapshot = source_->snapshot(kSharedAge);
  if (!snapshot) {
    return fail(snapshot.error());
  }
  std::string out;
  for (const Unit& unit : (*snapshot)->units) {
    if (unit.ended) {
      continue;
    }
    for (const int pid : filter_.keep(unit.pids)) {
      append_target(out, unit.id, unit.uuid, pid);
    }
  }
  if (self_) {
    append_target(out, kSelf, kSelf, ::getpid());
  }
  out += out.empty() ? "null\n" : "]\n";
  return out;
}

}  // namespace ceems::exporter
