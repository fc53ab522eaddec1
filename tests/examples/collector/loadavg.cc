// A complete collector, as an example. CONTRIBUTING.md says where its parts stand when it is one of
// the exporter.

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "exporter/collector.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

const metrics::Desc kLoad{"ceems_load_average",
                          "Average number of processes that run or wait for a CPU or a disk.",
                          metrics::Type::kGauge,
                          {"hostname", "minutes"}};
constexpr std::array<std::string_view, 3> kMinutes{"1", "5", "15"};

/// The averages at the start of /proc/loadavg, "0.20 0.18 0.12 1/80 11206" (proc_loadavg(5)).
Result<std::array<double, 3>> parse_loadavg(std::string_view text) {
  std::array<double, 3> loads{};
  std::string_view rest = text;
  for (double& load : loads) {
    const auto value = parse_double(take_until(rest, ' '));
    if (!value) {
      return fail(ErrorCode::kParse, "expected three numbers, got '{}'", printable(trim(text)));
    }
    load = *value;
  }
  return loads;
}

class LoadavgCollector final : public Collector {
 public:
  explicit LoadavgCollector(const CollectorContext& context)
      : path_(context.paths.proc / "loadavg"), hostname_(context.hostname) {}

  Result<> collect(metrics::Sink& sink) override {
    CEEMS_TRY(text, host::read_file(path_));
    CEEMS_TRY_IN(path_, loads, parse_loadavg(text));
    for (std::size_t i = 0; i < kMinutes.size(); ++i) {
      sink.add(kLoad, loads.at(i), {hostname_, kMinutes.at(i)});
    }
    return {};
  }

 private:
  std::string path_;
  std::string hostname_;
};

}  // namespace

/// --collector.loadavg: the load averages of the node.
CollectorSpec loadavg_collector() {
  return {.name = "loadavg",
          .help = "Enable the loadavg collector (load averages of the node)",
          .create = [](const CollectorContext& context,
                       const Sources&) -> Result<std::unique_ptr<Collector>> {
            return std::make_unique<LoadavgCollector>(context);
          }};
}

}  // namespace ceems::exporter
