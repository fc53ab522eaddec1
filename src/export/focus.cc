// FOCUS 1.3, Cost and Usage (https://focus.finops.org/focus-specification/): a row a day (UTC),
// cluster, project and partition, for the tools of finance. A unit counts on the day of its end.
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text/cells.h"
#include "base/time/durations.h"
#include "export/all.h"

namespace ceems::exporting {
namespace {

/// The first day of the month of a day (UTC), or of the next month.
std::string month_of(std::int64_t day_ms, bool next) {
  const std::chrono::year_month_day date{std::chrono::floor<std::chrono::days>(
      std::chrono::sys_time(std::chrono::milliseconds(day_ms)))};
  const auto month = date.year() / date.month() + std::chrono::months(next ? 1 : 0);
  return fmt::format("{:04}-{:02}-01T00:00:00Z", static_cast<int>(month.year()),
                     static_cast<unsigned>(month.month()));
}

class Focus final : public Format {
 public:
  explicit Focus(const FormatOptions& options) : options_(options) {}

  void begin(std::string& out) override {
    for (const auto& [column, cell] : cells_of({}, {})) {
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
      for (const auto& [column, cell] : cells_of(key, sum)) {
        put(out, cell);
      }
      end_row(out);
    }
    sums_.clear();
  }

 private:
  struct Sum {
    std::int64_t units = 0, unknown = 0;
    double kwh = 0, grams = 0, cpu_seconds = 0, gpu_seconds = 0;
  };
  using Key = std::tuple<std::string, std::string, std::string>;  ///< cluster, project, partition

  [[nodiscard]] std::vector<std::pair<std::string_view, std::string>> cells_of(
      const Key& key, const Sum& sum) const {
    constexpr double kSecondsPerHour = 3600;
    constexpr double kKilo = 1e-3;
    const auto& [cluster, project, partition] = key;
    const std::string cost = number(sum.kwh * options_.price_per_kwh);
    const std::string price = number(options_.price_per_kwh);
    const std::string kwh = number(sum.kwh);
    const std::string provider = csv_cell(options_.provider);
    const std::string account = csv_cell(project.empty() ? "none" : project);
    return {
        {"BilledCost", cost},
        {"BillingAccountId", provider},
        {"BillingAccountName", provider},
        {"BillingCurrency", csv_cell(options_.currency)},
        {"BillingPeriodEnd", month_of(day_, true)},
        {"BillingPeriodStart", month_of(day_, false)},
        {"ChargeCategory", "Usage"},
        {"ChargeClass", ""},
        {"ChargeDescription",
         csv_cell(fmt::format("Energy of {} jobs of {} on {}", sum.units,
                              project.empty() ? "no project" : project, cluster))},
        {"ChargeFrequency", "Usage-Based"},
        {"ChargePeriodEnd", utc_text(day_ + kDayMs)},
        {"ChargePeriodStart", utc_text(day_)},
        {"ConsumedQuantity", kwh},
        {"ConsumedUnit", "kWh"},
        {"ContractedCost", cost},
        {"ContractedUnitPrice", price},
        {"EffectiveCost", cost},
        {"HostProviderName", provider},
        {"InvoiceIssuerName", provider},
        {"ListCost", cost},
        {"ListUnitPrice", price},
        {"PricingCategory", "Standard"},
        {"PricingQuantity", kwh},
        {"PricingUnit", "kWh"},
        {"ProviderName", provider},
        {"PublisherName", provider},
        {"ServiceCategory", "Compute"},
        {"ServiceName", "Compute energy"},
        {"ServiceProviderName", provider},
        {"SkuId", "energy"},
        {"SkuPriceId", "energy-kwh"},
        {"SubAccountId", account},
        {"SubAccountName", account},
        {"x_Cluster", csv_cell(cluster)},
        {"x_CpuHours", number(sum.cpu_seconds / kSecondsPerHour)},
        {"x_GpuHours", number(sum.gpu_seconds / kSecondsPerHour)},
        {"x_OperationalKgCO2e", number(sum.grams * kKilo)},
        {"x_Partition", csv_cell(partition)},
        {"x_Units", fmt::format("{}", sum.units)},
        {"x_UnitsWithoutEnergy", fmt::format("{}", sum.unknown)},
    };
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
