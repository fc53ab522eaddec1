#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ceems::tool::rules {

/// A scrape job of Prometheus, as far as its series show what its targets are.
struct Job {
  std::string name;
  std::set<std::string, std::less<>> series;  ///< the names among discover()'s that exist
  std::set<std::string, std::less<>> hosts;   ///< the instances, without their ports
  /// The ones whose exporters count energy themselves.
  std::set<std::string, std::less<>> counting_hosts;
  std::vector<std::string> chassis;                       ///< of Redfish, sorted
  std::map<std::string, std::string, std::less<>> chips;  ///< of hwmon: chip and its name
  std::chrono::milliseconds scrape_interval{0};

  [[nodiscard]] bool has(std::string_view metric) const { return series.contains(metric); }
};

/// What was found in Prometheus.
struct Site {
  std::vector<Job> jobs;  ///< sorted by name
  std::chrono::milliseconds evaluation_interval{0};
  std::vector<std::string> providers;  ///< of emission factors for the country, sorted
};

/// How the power of hosts is measured, in the order of preference.
enum class Family { kCray, kRedfish, kIpmi, kHwmon, kRapl };

/// What kind of exporter a job of GPUs has.
enum class GpuKind { kNvidia, kAmdSmi, kAmdDevice };

/// Which of the names of records to write, where releases of CEEMS differ.
enum class RecordNames { kOld, kLater, kBoth };

/// How emissions are computed from power.
struct Emissions {
  std::vector<std::string> providers;  ///< live factors; empty: a constant one
  std::string country_code;            ///< may be empty
  std::string provider = "custom";     ///< label of the constant factor
  double grams_per_kwh = 0;            ///< 0: no emissions

  [[nodiscard]] bool any() const { return !providers.empty() || grams_per_kwh > 0; }
};

struct Rule {
  std::string record;
  std::string expression;
  /// Tell rules of the same record apart; promtool warns of such without.
  std::vector<std::pair<std::string, std::string>> labels = {};
};

struct Group {
  std::string name;
  std::string interval;  ///< "15s"
  std::vector<Rule> rules;
};

/// The rules for the GPUs of one job of a GPU exporter.
struct GpuPlan {
  const Job* job = nullptr;
  GpuKind kind = GpuKind::kNvidia;
  std::vector<std::string> cpu_jobs;  ///< names of the jobs of CEEMS exporters on the same hosts
  /// On some of its hosts, exporters of jobs that were left out count the energy of its GPUs.
  bool counted_elsewhere = false;
};

/// The rules for the hosts of one job of CEEMS exporters.
struct HostPlan {
  const Job* job = nullptr;
  Family family = Family::kRapl;
  std::string chassis;               ///< of Redfish
  std::string chip;                  ///< of hwmon
  std::vector<const GpuPlan*> gpus;  ///< on hosts of the job
  bool gpus_included = false;        ///< the meter of the host sees them as well
};

/// What all rules of one run have in common.
struct Common {
  double pue = 1;
  Emissions emissions;
  RecordNames names = RecordNames::kOld;
  std::string interval;  ///< at which the records of units are evaluated
};

}  // namespace ceems::tool::rules
