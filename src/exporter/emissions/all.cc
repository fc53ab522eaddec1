#include <algorithm>
#include <array>
#include <utility>

#include "base/log.h"
#include "exporter/emissions/provider.h"

namespace ceems::exporter::emissions {
namespace {

/// Of the world in 2024 (International Energy Agency, Electricity 2025), as CEEMS has it since
/// 0.11.2.
constexpr double kWorldGramsPerKwh = 445;

using Made = Result<std::unique_ptr<Provider>>;

Made make_remote(const char* key,
                 const char* name,
                 std::chrono::seconds period,
                 const ProviderContext& context,
                 Result<Fetch> fetch) {
  if (!fetch) {
    return fail(std::move(fetch).error());
  }
  return remote_provider(key, name, period, *context.clock, *std::move(fetch));
}

Made make_owid(const ProviderContext& /*context*/) {
  CEEMS_TRY_IN("emission factors of countries", factors, country_factors());
  return fixed_provider("owid", "OWID", std::move(factors));
}

Made make_emaps(const ProviderContext& context) {
  return make_remote("emaps", "Electricity Maps", std::chrono::minutes(30), context,
                     emaps_fetch(context));
}

Made make_rte(const ProviderContext& context) {
  return make_remote("rte", "RTE eCO2 Mix", std::chrono::minutes(30), context, rte_fetch(context));
}

Made make_watttime(const ProviderContext& context) {
  return make_remote("wt", "Watt Time", std::chrono::minutes(2), context, watttime_fetch(context));
}

Made make_global(const ProviderContext& /*context*/) {
  return fixed_provider("global", "World Average", {{"ZZ", "World", kWorldGramsPerKwh}});
}

struct Known {
  const char* key;
  Made (*make)(const ProviderContext&);
};

constexpr std::array kKnown{Known{"owid", make_owid}, Known{"emaps", make_emaps},
                            Known{"rte", make_rte}, Known{"wt", make_watttime},
                            Known{"global", make_global}};

}  // namespace

std::vector<std::string> provider_keys() {
  std::vector<std::string> keys;
  keys.reserve(kKnown.size());
  for (const Known& known : kKnown) {
    keys.emplace_back(known.key);
  }
  return keys;
}

Result<std::vector<std::unique_ptr<Provider>>> make_providers(const std::vector<std::string>& keys,
                                                              const ProviderContext& context) {
  std::vector<std::unique_ptr<Provider>> providers;
  for (const Known& known : kKnown) {
    if (!keys.empty() && std::ranges::find(keys, known.key) == keys.end()) {
      continue;
    }
    auto made = known.make(context);
    if (made) {
      providers.push_back(*std::move(made));
    } else if (keys.empty() && made.error().code == ErrorCode::kInvalidArgument) {
      log::info(
          "emission provider not used",
          {{"collector", "emissions"}, {"provider", known.key}, {"why", made.error().message}});
    } else {
      return fail(
          std::move(made).error().with_context(std::string("emission provider ") + known.key));
    }
  }
  return providers;
}

}  // namespace ceems::exporter::emissions
