#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace ceems::exporter::emissions {

/// How much CO2 equivalent a kilowatt-hour of electricity costs somewhere.
struct Factor {
  std::string code;     ///< label `country_code`: ISO 3166-1 alpha-2 or a zone of the provider
  std::string country;  ///< label `country`
  double grams_per_kwh = 0;

  bool operator==(const Factor&) const = default;
};
using Factors = std::vector<Factor>;

/// Asks a service once for all its factors. Called by one thread at a time; has to end soon after
/// the token was stopped. Waits 30 s at most for one answer.
using Fetch = std::function<Result<Factors>(std::stop_token)>;

/// Value of an environment variable; nothing where it is not set. The shell's empty variable is
/// set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

struct ProviderContext {
  const Clock* clock = nullptr;  ///< outlives the providers
  Environment environment;
};

/// Once a source has factors they are asked for again after `period`; after a failure sooner at
/// first, then with pauses that double up to `period`.
inline constexpr std::chrono::seconds kFirstRetry{10};
/// Factors older than this are not exported any more.
inline constexpr std::chrono::hours kMaxAge{24};

/// One value of the label `provider`.
class Provider {
 public:
  Provider(std::string key, std::string name) : key_(std::move(key)), name_(std::move(name)) {}
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;
  virtual ~Provider() = default;

  [[nodiscard]] const std::string& key() const { return key_; }    ///< label `provider`
  [[nodiscard]] const std::string& name() const { return name_; }  ///< label `provider_name`
  /// Starts its thread, if it has one. Never waits.
  virtual void start() {}
  /// What is known now; null where nothing is. Never waits.
  virtual std::shared_ptr<const Factors> factors() = 0;
  /// How old that is; nothing for what is compiled in.
  [[nodiscard]] virtual std::optional<std::chrono::nanoseconds> age() const { return {}; }

 private:
  std::string key_;
  std::string name_;
};

/// A provider with factors that never change.
std::unique_ptr<Provider> fixed_provider(std::string key, std::string name, Factors factors);

/// A provider that asks a service by a thread of its own, first right after start().
std::unique_ptr<Provider> remote_provider(std::string key,
                                          std::string name,
                                          std::chrono::seconds period,
                                          const Clock& clock,
                                          Fetch fetch);

/// When to ask: calls `fetch` where the last answer is due for renewal and gives the last result
/// otherwise. Not thread-safe.
class Refresh {
 public:
  struct Fetched {
    std::shared_ptr<const Factors> factors;
    Clock::SteadyTime time;  ///< when they were asked for
  };

  Refresh(std::chrono::seconds period, const Clock& clock, Fetch fetch);
  Result<Fetched> step(const std::stop_token& stop);

 private:
  const std::chrono::seconds period_;
  const Clock& clock_;
  const Fetch fetch_;
  std::chrono::seconds pause_ = kFirstRetry;
  std::optional<Clock::SteadyTime> next_;
  Result<Fetched> last_;
};

/// Electricity Maps, zone by zone with at most four requests at once. A zone that fails keeps its
/// value for kMaxAge; an error only where no zone answers. kInvalidArgument: EMAPS_API_TOKEN is not
/// set. __EMAPS_BASE_URL replaces "https://api.electricitymap.org/v3".
Result<Fetch> emaps_fetch(const ProviderContext& context);
/// eCO2mix of RTE, the French grid operator; no token. __RTE_BASE_URL replaces
/// "https://reseaux-energies-rte.opendatasoft.com".
Result<Fetch> rte_fetch(const ProviderContext& context);
/// WattTime's marginal factor of the configured region. kInvalidArgument names those of
/// WT_USERNAME, WT_PASSWORD and WT_REGION that are not set or empty. __WT_BASE_URL replaces
/// "https://api.watttime.org".
Result<Fetch> watttime_fetch(const ProviderContext& context);
/// Yearly factors of countries, compiled in (data/emission-factors.csv); those above 0.
Result<Factors> country_factors();

/// Keys of all providers, in the order of the flag's help.
std::vector<std::string> provider_keys();

/// The providers with these keys; for none given all that can be used with what the environment
/// holds, the others are named in the log. kInvalidArgument: a provider that was asked for by its
/// key cannot be used.
Result<std::vector<std::unique_ptr<Provider>>> make_providers(const std::vector<std::string>& keys,
                                                              const ProviderContext& context);

}  // namespace ceems::exporter::emissions
