#include "api/accounting/options.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "config/section.h"

namespace ceems::api {
namespace {

/// The document of the file that the key names, or of the default one if it exists; an absent value
/// otherwise.
Result<config::Node> load(const std::string& named,
                          const std::string& directory,
                          std::string_view otherwise) {
  if (!named.empty()) {
    return config::load_yaml(named);
  }
  const std::string path =
      fmt::format("{}{}{}", directory, directory.empty() ? "" : "/", otherwise);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return config::Node();
  }
  return config::load_yaml(path);
}

Result<> read_price_file(const config::Node& file,
                         const SiteOptions& site,
                         const TimeZone& zone,
                         AccountingOptions& options) {
  if (!file.present()) {
    return {};
  }
  if (site.prices.any()) {
    return fail(
        file.error("the block ui of the configuration file has prices, too (price_kwh,"
                   " price_core_hour, price_gpu_hour): leave one of the two out"));
  }
  CEEMS_TRY(prices, read_prices(file, zone));
  if (prices.any() && site.currency.empty()) {
    return fail(file.error("prices need a currency: set ui.currency in the configuration file"));
  }
  options.prices = std::move(prices);
  options.prices.pue = site.pue.value_or(1);
  return {};
}

}  // namespace

Result<AccountingOptions> read_accounting(const config::Node& node,
                                          const std::string& directory,
                                          const SiteOptions& site,
                                          const TimeZone& zone) {
  AccountingOptions options;
  std::string prices;
  std::string budgets;
  std::string resources;
  std::string facility;
  std::string embodied;
  std::string reconcile = "none";
  config::Section section(node);
  section
      .only({"prices", "budgets", "resources", "other_power", "cooling_power", "series_cluster",
             "reconcile", "idle_exempt_partitions", "market", "facility", "embodied"})
      .file("prices", prices, directory)
      .file("budgets", budgets, directory)
      .file("resources", resources, directory)
      .file("facility", facility, directory)
      .file("embodied", embodied, directory)
      .text("other_power", options.other_power)
      .text("cooling_power", options.cooling_power)
      .text("series_cluster", options.series_cluster)
      .text("reconcile", reconcile)
      .list("idle_exempt_partitions", options.idle_exempt_partitions)
      .refuse(reconcile != "none" && reconcile != "factor", "reconcile", "expected none or factor")
      .each("market", [&](const config::Node& item) -> Result<> {
        CEEMS_TRY(rule, read_market_rule(item, zone));
        options.market.push_back(std::move(rule));
        return {};
      });
  options.billed = reconcile == "factor";
  if (section.ok()) {
    const auto file = load(prices, directory, "prices.yml");
    section.also(file ? read_price_file(*file, site, zone, options) : Result<>(fail(file.error())));
  }
  if (section.ok()) {
    const auto file = load(budgets, directory, "budgets.yml");
    if (!file) {
      section.also(fail(file.error()));
    } else if (file->present()) {
      auto read = read_budgets(*file, site, zone);
      section.also(read ? Result<>() : fail(read.error()));
      options.budgets = std::move(read).value_or(std::vector<ProjectBudget>());
    }
  }
  if (section.ok()) {
    const auto file = load(resources, directory, "resources.yml");
    auto read = file ? read_resources(*file) : fail(file.error());
    section.also(read ? Result<>() : fail(read.error()));
    options.resources = std::move(read).value_or(std::vector<Resource>());
  }
  if (section.ok()) {
    const auto file = load(facility, directory, "facility.yml");
    auto read =
        file ? facility::read_facility(
                   *file, facility.empty() ? directory : config::directory_of(facility), zone)
             : fail(file.error());
    section.also(read ? Result<>() : fail(read.error()));
    options.facility = std::move(read).value_or(facility::FacilityOptions());
  }
  if (section.ok()) {
    const auto file = load(embodied, directory, "embodied.yml");
    auto read = file ? facility::read_embodied(*file) : fail(file.error());
    section.also(read ? Result<>() : fail(read.error()));
    options.embodied = std::move(read).value_or(facility::EmbodiedOptions());
  }
  if (!section.ok()) {
    return fail(section.done().error());
  }
  return options;
}

}  // namespace ceems::api
