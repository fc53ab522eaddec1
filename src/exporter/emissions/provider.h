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

/// The CO2 equivalent of a kilowatt-hour of electricity in one place.
struct Factor {
  std::string code;     ///< label `country_code`: ISO 3166-1 alpha-2 or a zone of the provider
  std::string country;  ///< label `country`
  double grams_per_kwh = 0;

  bool operator==(const Factor&) const = default;
};
using Factors = std::vector<Factor>;

/// Gets all factors of a service once. Called by one thread at a time. Must end soon after a stop
/// is requested. Waits at most 30 s for one answer.
using Fetch = std::function<Result<Factors>(std::stop_token)>;

/// Value of an environment variable; nothing if it is not set. A variable that is set to an empty
/// text counts as set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

struct ProviderContext {
  const Clock* clock = nullptr;  ///< outlives the providers
  Environment environment;
};

/// Once a source has factors, they are requested again after `period`. After a failure this is the
/// first pause; it doubles each time up to `period`.
inline constexpr std::chrono::seconds kFirstRetryPause{10};
/// Factors older than this are no longer exported.
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
  /// The factors known now; null if there are none. Never waits.
  virtual std::shared_ptr<const Factors> factors() = 0;
  /// Their age; nothing for factors that are compiled in.
  [[nodiscard]] virtual std::optional<std::chrono::nanoseconds> age() const { return {}; }

 private:
  std::string key_;
  std::string name_;
};

/// A provider with constant factors.
std::unique_ptr<Provider> fixed_provider(std::string key, std::string name, Factors factors);

/// A provider that queries a service in a separate thread, first right after start().
std::unique_ptr<Provider> remote_provider(std::string key,
                                          std::string name,
                                          std::chrono::seconds period,
                                          const Clock& clock,
                                          Fetch fetch);

/// Decides when to query: calls `fetch` if the last answer is due for renewal, and otherwise
/// returns the last result. Not thread-safe.
class Refresh {
 public:
  struct Fetched {
    std::shared_ptr<const Factors> factors;
    Clock::SteadyTime time;  ///< when they were requested
  };

  Refresh(std::chrono::seconds period, const Clock& clock, Fetch fetch);
  Result<Fetched> step(const std::stop_token& stop);

 private:
  const std::chrono::seconds period_;
  const Clock& clock_;
  const Fetch fetch_;
  std::chrono::seconds pause_ = kFirstRetryPause;
  std::optional<Clock::SteadyTime> next_;
  Result<Fetched> last_;
};

/// Electricity Maps, zone by zone with at most four concurrent requests. A zone that fails keeps
/// its value for kMaxAge. It is an error only if no zone answers. kInvalidArgument: EMAPS_API_TOKEN
/// is not set. __EMAPS_BASE_URL replaces "https://api.electricitymap.org/v3".
Result<Fetch> emaps_fetch(const ProviderContext& context);
/// eCO2mix of RTE, the French grid operator, without a token. __RTE_BASE_URL replaces
/// "https://reseaux-energies-rte.opendatasoft.com".
Result<Fetch> rte_fetch(const ProviderContext& context);
/// WattTime's marginal factor of the configured region. kInvalidArgument names the unset or empty
/// ones among WT_USERNAME, WT_PASSWORD and WT_REGION. __WT_BASE_URL replaces
/// "https://api.watttime.org".
Result<Fetch> watttime_fetch(const ProviderContext& context);
/// Yearly factors of countries above 0, compiled in from data/emission-factors.csv.
Result<Factors> country_factors();

/// Keys of all providers, in the order of the flag's help.
std::vector<std::string> provider_keys();

/// The providers with these keys. If `keys` is empty, all providers whose settings are in the
/// environment; the log names the others. kInvalidArgument: a provider that was requested by its
/// key cannot be used.
Result<std::vector<std::unique_ptr<Provider>>> make_providers(const std::vector<std::string>& keys,
                                                              const ProviderContext& context);

/// The unchanged text of data/emission-factors.csv, embedded by the build.
extern const std::string_view kEmissionFactorsCsv;

/// Parses that text: lines that start with "#" are comments, the first other line is the heading,
/// followed by rows "alpha_2;alpha_3;name;grams_per_kwh;year;source". If a country has several
/// rows, the one with the latest year counts; a row without a year is the oldest. The result is
/// sorted by alpha_2. kParse with the line number.
Result<Factors> parse_country_table(std::string_view text);

}  // namespace ceems::exporter::emissions
