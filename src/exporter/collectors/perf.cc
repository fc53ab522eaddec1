#include "exporter/collectors/perf.h"

#include <sys/capability.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.h"
#include "base/strings.h"
#include "exporter/perf/profiler.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

/// The value of kernel.perf_event_paranoid; nothing if it cannot be read.
std::optional<int> paranoid_setting(const host::Paths& paths) {
  const auto text = host::read_file((paths.proc / "sys/kernel/perf_event_paranoid").string());
  return text ? parse_int<int>(trim(*text)) : std::nullopt;
}

/// Opens an event of this process to find out whether the kernel allows it.
Result<> probe(perf::Kernel& kernel,
               const std::vector<std::size_t>& events,
               bool exclude_kernel,
               std::optional<int> paranoid) {
  Error last;
  for (const std::size_t event : events) {
    auto handle = kernel.open(perf::all_events()[event], {.thread = ::getpid()}, exclude_kernel);
    if (handle) {
      kernel.close(*handle);
      if (const auto missing = perf::unsupported_events(kernel, events, exclude_kernel);
          !missing.empty()) {
        log::warn("this machine does not have some of the selected events",
                  {{"collector", "perf"}, {"events", fmt::format("{}", fmt::join(missing, ","))}});
      }
      return {};
    }
    last = std::move(handle).error();
    if (last.code != ErrorCode::kNotFound) {
      break;
    }
  }
  switch (last.code) {
    case ErrorCode::kNotFound:
      log::warn("this machine has none of the selected events",
                {{"collector", "perf"}, {"err", last.message}});
      return {};
    case ErrorCode::kPermissionDenied:
      return fail(ErrorCode::kPermissionDenied,
                  "{} (kernel.perf_event_paranoid is {}); give the program CAP_PERFMON (Linux 5.8 "
                  "or later) and run 'sysctl kernel.perf_event_paranoid=2' if it is above 2; in "
                  "a container, allow perf_event_open in the seccomp profile, too",
                  last.message, paranoid ? std::to_string(*paranoid) : "unknown");
    default:
      return fail(std::move(last));
  }
}

/// Runs probe() with CAP_PERFMON alone, as after the start. If perf_event_paranoid is above 2,
/// Debian's kernels refuse even that, but not root.
Result<> probe_unprivileged(perf::Kernel& kernel,
                            const std::vector<std::size_t>& events,
                            bool exclude_kernel,
                            std::optional<int> paranoid) {
  Result<> result;
  std::thread([&] {
    const std::unique_ptr<void, int (*)(void*)> capabilities(::cap_get_proc(), ::cap_free);
    auto* const set = static_cast<cap_t>(capabilities.get());
    if (set == nullptr || ::cap_clear_flag(set, CAP_EFFECTIVE) != 0 || ::cap_set_proc(set) != 0) {
      log::debug("cannot drop privileges to probe perf events", {{"collector", "perf"}});
    }
    result = probe(kernel, events, exclude_kernel, paranoid);
  }).join();
  return result;
}

std::vector<metrics::Desc> make_descs() {
  std::vector<metrics::Desc> descs;
  for (const perf::Event& event : perf::all_events()) {
    descs.emplace_back("ceems_perf_" + std::string(event.series), std::string(event.help),
                       metrics::Type::kCounter,
                       std::vector<std::string>{"manager", "hostname", "uuid"});
  }
  return descs;
}

class Perf final : public SubCollector {
 public:
  Perf(std::string hostname,
       std::unique_ptr<perf::Kernel> kernel,
       perf::ProfilerOptions options,
       const Clock& clock)
      : hostname_(std::move(hostname)),
        environment_(options.filter.capabilities()),
        kernel_(std::move(kernel)),
        profiler_(std::move(options), *kernel_, clock),
        descs_(make_descs()) {}

  [[nodiscard]] std::string_view name() const override { return "perf"; }

  Result<> collect(const UnitSnapshot& snapshot, metrics::Sink& sink) override {
    profiler_.update(snapshot);
    for (const auto& [uuid, totals] : profiler_.totals()) {
      for (std::size_t i = 0; i < totals.size(); ++i) {
        if (totals[i] > 0) {
          sink.add(descs_[i], static_cast<double>(totals[i]), {snapshot.manager, hostname_, uuid});
        }
      }
    }
    return {};
  }

  [[nodiscard]] std::vector<os::Capability> capabilities() const override {
    std::vector<os::Capability> all = environment_;
    all.push_back(CAP_PERFMON);
    return all;
  }

 private:
  std::string hostname_;
  std::vector<os::Capability> environment_;
  std::unique_ptr<perf::Kernel> kernel_;  // must outlive the profiler's counters
  perf::Profiler profiler_;
  std::vector<metrics::Desc> descs_;
};

void add_group_flags(config::FlagSet& flags,
                     const std::string& switch_name,
                     const std::string& list_name,
                     const std::string& events,
                     perf::GroupChoice& choice) {
  flags.add("collector.perf." + switch_name, choice.on,
            {.help = "Count " + events + " events of each unit (perf)"});
  flags.add("collector.perf." + list_name, choice.profilers,
            {.help = "Count only this " + events + " event; may be repeated"});
}

}  // namespace

Result<std::unique_ptr<SubCollector>> make_perf(const CollectorContext& context,
                                                host::CgroupMode mode,
                                                UnitSource& source,
                                                PerfOptions options,
                                                std::unique_ptr<perf::Kernel> kernel) {
  std::vector<std::size_t> events =
      perf::choose_events(options.hardware, options.software, options.cache);
  if (events.empty()) {
    return nullptr;
  }
  // From 2 on, a process without the capability may count user mode only.
  const auto paranoid = paranoid_setting(context.paths);
  const bool user_only = !os::may_raise(CAP_PERFMON) && paranoid.value_or(0) >= 2;
  CEEMS_TRY(probe_unprivileged(*kernel, events, user_only, paranoid));
  if (user_only) {
    log::warn("without CAP_PERFMON only user-mode events of the exporter's own user are counted",
              {{"collector", "perf"}, {"perf_event_paranoid", paranoid.value_or(0)}});
  }
  perf::ProfilerOptions profiler{
      .paths = context.paths,
      .mode = mode,
      .events = std::move(events),
      .exclude_kernel = user_only,
      .filter = ProcessFilter(context.paths.proc, std::string(source.manager()),
                              std::move(options.variables)),
      .want_processes = [&source] { source.want_processes(); },
      .boot_ticks = perf::boot_ticks,
  };
  return std::make_unique<Perf>(context.hostname, std::move(kernel), std::move(profiler),
                                *context.clock);
}

/// --collector.perf.*
SubCollectorSpec perf_sub_collector() {
  auto options = std::make_shared<PerfOptions>();
  return {.name = "perf",
          .add_flags =
              [options](config::FlagSet& flags) {
                add_group_flags(flags, "hardware-events", "hardware-profilers", "hardware",
                                options->hardware);
                add_group_flags(flags, "software-events", "software-profilers", "software",
                                options->software);
                add_group_flags(flags, "hardware-cache-events", "cache-profilers", "hardware cache",
                                options->cache);
                flags.add(
                    "collector.perf.env-var", options->variables,
                    {.help = "Count only processes with an environment variable whose name starts "
                             "with this (NAME= for exactly NAME); may be repeated"});
              },
          .create =
              [options](const CollectorContext& context, const host::CgroupMount& mount,
                        UnitSource& source) {
                return make_perf(context, mount.mode, source, *options,
                                 std::make_unique<perf::RealKernel>());
              }};
}

}  // namespace ceems::exporter
