#include "exporter/collectors/emissions.h"

#include <cstdlib>
#include <optional>
#include <utility>

namespace ceems::exporter {
namespace {

class EmissionsCollector final : public Collector {
 public:
  explicit EmissionsCollector(std::vector<std::unique_ptr<emissions::Provider>> providers)
      : providers_(std::move(providers)) {}

  Result<> collect(metrics::Sink& sink) override {
    for (const auto& provider : providers_) {
      const auto factors = provider->factors();  // its thread logs why there are none
      if (!factors) {
        continue;
      }
      for (const emissions::Factor& factor : *factors) {
        if (factor.grams_per_kwh > 0) {
          sink.add(factor_, factor.grams_per_kwh,
                   {provider->key(), provider->name(), factor.code, factor.country});
        }
      }
    }
    return {};
  }

  [[nodiscard]] std::vector<SourceAge> source_ages() const override {
    std::vector<SourceAge> ages;
    for (const auto& provider : providers_) {
      if (const auto age = provider->age()) {
        ages.push_back({provider->key(), *age});
      }
    }
    return ages;
  }

  void start() override {
    for (const auto& provider : providers_) {
      provider->start();
    }
  }

 private:
  // The mixed case and the missing hostname come from the reference. Rules join on provider and
  // country.
  metrics::Desc factor_{"ceems_emissions_gCo2_kWh",
                        "Emission factor of electricity in grams of CO2 equivalent per kWh.",
                        metrics::Type::kGauge,
                        {"provider", "provider_name", "country_code", "country"}};
  std::vector<std::unique_ptr<emissions::Provider>> providers_;
};

std::optional<std::string> environment_variable(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread is started
  const char* value = std::getenv(name);
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace

Result<std::unique_ptr<Collector>> make_emissions_collector(const CollectorContext& context,
                                                            const std::vector<std::string>& keys,
                                                            emissions::Environment environment) {
  CEEMS_TRY(providers, emissions::make_providers(
                           keys, {.clock = context.clock, .environment = std::move(environment)}));
  return std::make_unique<EmissionsCollector>(std::move(providers));
}

/// --collector.emissions: emission factors of electricity by provider and country. Services are
/// queried in the background; their last factors are served for up to a day.
CollectorSpec emissions_collector() {
  auto keys = std::make_shared<std::vector<std::string>>();
  return {.name = "emissions",
          .help = "Enable the emissions collector (emission factors of electricity)",
          .add_flags =
              [keys](config::FlagSet& flags) {
                flags.add_enums("collector.emissions.provider", *keys, emissions::provider_keys(),
                                {.help = "Provider of emission factors; may be repeated. "
                                         "Default: all usable ones"});
              },
          .create =
              [keys](const CollectorContext& context, const Sources&) {
                return make_emissions_collector(context, *keys, environment_variable);
              }};
}

}  // namespace ceems::exporter
