// FOCUS 1.3, Cost and Usage (https://focus.finops.org/focus-specification/): a row a day (UTC),
// cluster, project and partition, for the tools of finance. A unit counts on the day of its end.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "base/text/cells.h"
#include "base/time/durations.h"
#include "export/all.h"

namespace ceems::exporting {
namespace {

constexpr std::array<std::string_view, 40> kFocusColumns{
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedCost",
    "ContractedUnitPrice",
    "EffectiveCost",
    "HostProviderName",
    "InvoiceIssuerName",
    "ListCost",
    "ListUnitPrice",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "ServiceCategory",
    "ServiceName",
    "ServiceProviderName",
    "SkuId",
    "SkuPriceId",
    "SubAccountId",
    "SubAccountName",
    "x_Cluster",
    "x_CpuHours",
    "x_GpuHours",
    "x_OperationalKgCO2e",
    "x_Partition",
    "x_Units",
    "x_UnitsWithoutEnergy",
};

/// The first day of the month of a day, or of the next month.
std::string month_of(std::int64_t day_ms, bool next) {
  constexpr int kMonths = 12;
  const std::string day = utc_text(std::max<std::int64_t>(day_ms, 1));  // "2026-01-31T…"
  int year = std::stoi(day.substr(0, 4));
  int month = std::stoi(day.substr(5, 2)) + (next ? 1 : 0);
  if (month > kMonths) {
    month = 1;
    ++year;
  }
  return fmt::format("{:04}-{:02}-01T00:00:00Z", year, month);
}

class Focus final : public Format {
 public:
  explicit Focus(const FormatOptions& options) : options_(options) {}

  void begin(std::string& out) override {
    for (const std::string_view column : kFocusColumns) {
      put(out, column);
    }
    end_row(out);
  }

  void add(const ExportedUnit& unit, std::string& out) override {
    const std::int64_t day = unit.ended_ms / kDayMs * kDayMs;
    if (day != day_) {
      end(out);
      day_ = day;
    }
    const auto seconds = [&unit](std::string_view name) {
      const auto found = unit.times.find(name);
      return found == unit.times.end() ? 0 : found->second;
    };
    Sum& sum =
        sums_[{unit.cluster, unit.project, std::string(unit.tags.first("partition", "queue"))}];
    ++sum.units;
    sum.unknown += unit.cpu_kwh || unit.gpu_kwh ? 0 : 1;
    sum.kwh += unit.cpu_kwh.value_or(0) + unit.gpu_kwh.value_or(0);
    sum.grams += unit.grams.value_or(0);
    sum.cpu_seconds += seconds("alloc_cputime");
    sum.gpu_seconds += seconds("alloc_gputime");
  }

  void end(std::string& out) override {
    for (const auto& [key, sum] : sums_) {
      add_row(key, sum, out);
    }
    sums_.clear();
  }

 private:
  struct Sum {
    std::int64_t units = 0, unknown = 0;
    double kwh = 0, grams = 0, cpu_seconds = 0, gpu_seconds = 0;
  };
  using Key = std::tuple<std::string, std::string, std::string>;  ///< cluster, project, partition

  void add_row(const Key& key, const Sum& sum, std::string& out) const {
    constexpr double kSecondsPerHour = 3600;
    constexpr double kKilo = 1e-3;
    const auto& [cluster, project, partition] = key;
    const std::string cost = number(sum.kwh * options_.price_per_kwh);
    const std::string price = number(options_.price_per_kwh);
    const std::string kwh = number(sum.kwh);
    const std::string provider = csv_cell(options_.provider);
    const std::string account = csv_cell(project.empty() ? "none" : project);
    const std::array<std::string, kFocusColumns.size()> cells{
        cost,
        provider,
        provider,
        csv_cell(options_.currency),
        month_of(day_, true),
        month_of(day_, false),
        "Usage",
        "",
        csv_cell(fmt::format("Energy of {} jobs of {} on {}", sum.units,
                             project.empty() ? "no project" : project, cluster)),
        "Usage-Based",
        utc_text(day_ + kDayMs),
        utc_text(day_),
        kwh,
        "kWh",
        cost,
        price,
        cost,
        provider,
        provider,
        cost,
        price,
        "Standard",
        kwh,
        "kWh",
        provider,
        provider,
        "Compute",
        "Compute energy",
        provider,
        "energy",
        "energy-kwh",
        account,
        account,
        csv_cell(cluster),
        number(sum.cpu_seconds / kSecondsPerHour),
        number(sum.gpu_seconds / kSecondsPerHour),
        number(sum.grams * kKilo),
        csv_cell(partition),
        fmt::format("{}", sum.units),
        fmt::format("{}", sum.unknown),
    };
    for (const std::string& cell : cells) {
      put(out, cell);
    }
    end_row(out);
  }

  static std::string number(double value) { return fmt::format("{:.9f}", value); }
  static void put(std::string& out, std::string_view cell) {
    out += cell;
    out += ',';
  }
  static void end_row(std::string& out) { out.replace(out.size() - 1, 1, "\r\n"); }

  const FormatOptions options_;
  std::int64_t day_ = 0;
  std::map<Key, Sum> sums_;
};

}  // namespace

FormatSpec focus_format() {
  return {.name = "focus",
          .help = "costs by day, project and partition in FOCUS 1.3, for the tools of finance",
          .needs_price = true,
          .create = [](const FormatOptions& options) -> std::unique_ptr<Format> {
            return std::make_unique<Focus>(options);
          }};
}

}  // namespace ceems::exporting
