#include <algorithm>
#include <map>
#include <optional>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/strings.h"
#include "base/time/durations.h"
#include "tool/site/examine.h"

namespace ceems::tool {
namespace {

namespace json = boost::json;

constexpr double kMinJoules = 36'000;
constexpr double kMaxFactor = 1.25;

/// A positive number at unit[object][key].
std::optional<double> positive_at(const json::object& unit,
                                  std::string_view object,
                                  std::string_view key) {
  const json::value* outer = unit.if_contains(object);
  const json::object* inner = outer == nullptr ? nullptr : outer->if_object();
  const json::value* value = inner == nullptr ? nullptr : inner->if_contains(key);
  if (value == nullptr || !value->is_number() || !(value->to_number<double>() > 0)) {
    return std::nullopt;
  }
  return value->to_number<double>();
}

Finding finding_of(const std::string& cluster, std::vector<double>& ratios) {
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::ranges::nth_element(ratios, middle);
  const std::string text = fmt::format("{} jobs of cluster {}: {:.2f} times SLURM's ConsumedEnergy",
                                       ratios.size(), printable(cluster), *middle);
  if (*middle <= kMaxFactor && *middle * kMaxFactor >= 1) {
    return {.state = State::kOk, .subject = "energy", .text = text, .fix = {}};
  }
  return {.state = State::kWarning,
          .subject = "energy",
          .text = text,
          .fix =
              "'ceems_exporter doctor' and 'ceems_tool validate energy' on a node, and "
              "AcctGatherEnergyType of SLURM, tell which meters each of them reads; jobs that "
              "share nodes get the energy of whole nodes from SLURM; ours includes the PUE"};
}

}  // namespace

std::vector<Finding> compare_with_slurm(std::string_view answer) {
  boost::system::error_code error;
  const json::value document = json::parse(answer, error);
  const json::object* object = error ? nullptr : document.if_object();
  const json::value* data = object == nullptr ? nullptr : object->if_contains("data");
  if (data == nullptr || !data->is_array()) {
    return {{.state = State::kWarning,
             .subject = "api server",
             .text = "its answer to units/admin has no list of units",
             .fix = "correct --api.url"}};
  }
  std::map<std::string, std::vector<double>> ratios;  // by cluster
  for (const json::value& value : data->get_array()) {
    const json::object* unit = value.if_object();
    if (unit == nullptr) {
      continue;
    }
    const auto theirs = positive_at(*unit, "allocation", "consumed_energy");
    const auto cpus = positive_at(*unit, "total_cpu_energy_usage_kwh", "total");
    const auto gpus = positive_at(*unit, "total_gpu_energy_usage_kwh", "total");
    const json::value* cluster = unit->if_contains("cluster_id");
    if (theirs && *theirs >= kMinJoules && cpus && cluster != nullptr && cluster->is_string()) {
      ratios[std::string(cluster->get_string())].push_back((*cpus + gpus.value_or(0)) *
                                                           kJoulesPerKwh / *theirs);
    }
  }
  std::vector<Finding> findings;
  for (auto& [cluster, of_cluster] : ratios) {
    if (of_cluster.size() >= kMinComparedJobs) {
      findings.push_back(finding_of(cluster, of_cluster));
    }
  }
  return findings;
}

}  // namespace ceems::tool
