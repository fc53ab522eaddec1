#include <map>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "export/all.h"
#include "export/test_unit.h"

namespace ceems::exporting {
namespace {

constexpr std::int64_t kDay = 86'400'000;

/// The rows by their columns. No cell has a comma.
std::vector<std::map<std::string, std::string>> rows_of(const std::vector<ExportedUnit>& units) {
  const auto format =
      focus_format().create({.provider = "HPC Centre", .currency = "EUR", .price_per_kwh = 0.2});
  std::string out;
  format->begin(out);
  for (const ExportedUnit& unit : units) {
    format->add(unit, out);
  }
  format->end(out);
  std::vector<std::vector<std::string>> lines;
  for (std::size_t begin = 0; begin < out.size();) {
    const std::size_t end = out.find("\r\n", begin);
    std::vector<std::string>& cells = lines.emplace_back(1);
    for (const char c : out.substr(begin, end - begin)) {
      if (c == ',') {
        cells.emplace_back();
      } else {
        cells.back() += c;
      }
    }
    begin = end + 2;
  }
  std::vector<std::map<std::string, std::string>> rows;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].size(), lines[0].size());
    std::map<std::string, std::string>& row = rows.emplace_back();
    for (std::size_t column = 0; column < lines[i].size(); ++column) {
      row[lines[0][column]] = lines[i][column];
    }
  }
  return rows;
}

TEST(ExportFocus, HasARowADayProjectAndPartition) {
  ExportedUnit one = test_unit();
  one.ended_ms -= kDay;  // 2025-12-31T00:00:00Z
  one.times = {{"walltime", 3600}, {"alloc_cputime", 7200}, {"alloc_gputime", 1800}};
  ExportedUnit other = one;
  other.project = "astro";
  ExportedUnit unknown = one;
  unknown.ended_ms += kDay - 1;
  unknown.cpu_kwh = unknown.gpu_kwh = unknown.grams = std::nullopt;
  ExportedUnit later = one;
  later.ended_ms += kDay;
  const auto rows = rows_of({one, other, one, unknown, later});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].at("SubAccountId"), "astro");
  EXPECT_EQ(rows[0].at("ConsumedQuantity"), "1.350000000");
  const std::map<std::string, std::string> wanted{
      {"BilledCost", "0.540000000"},
      {"BillingAccountId", "HPC Centre"},
      {"BillingCurrency", "EUR"},
      {"BillingPeriodEnd", "2026-01-01T00:00:00Z"},
      {"BillingPeriodStart", "2025-12-01T00:00:00Z"},
      {"ChargeCategory", "Usage"},
      {"ChargeClass", ""},
      {"ChargeDescription", "Energy of 3 jobs of fluids on hpc-a"},
      {"ChargePeriodEnd", "2026-01-01T00:00:00Z"},
      {"ChargePeriodStart", "2025-12-31T00:00:00Z"},
      {"ConsumedQuantity", "2.700000000"},
      {"ConsumedUnit", "kWh"},
      {"ContractedUnitPrice", "0.200000000"},
      {"EffectiveCost", "0.540000000"},
      {"HostProviderName", "HPC Centre"},
      {"ListCost", "0.540000000"},
      {"PricingQuantity", "2.700000000"},
      {"ServiceCategory", "Compute"},
      {"SubAccountId", "fluids"},
      {"x_Cluster", "hpc-a"},
      {"x_CpuHours", "6.000000000"},
      {"x_GpuHours", "1.500000000"},
      {"x_OperationalKgCO2e", "0.141000000"},
      {"x_Partition", "gpu"},
      {"x_Units", "3"},
      {"x_UnitsWithoutEnergy", "1"}};
  for (const auto& [column, value] : wanted) {
    EXPECT_EQ(rows[1].at(column), value) << column;
  }
  EXPECT_EQ(rows[2].at("ChargePeriodStart"), "2026-01-01T00:00:00Z");
  EXPECT_EQ(rows[2].at("BillingPeriodStart"), "2026-01-01T00:00:00Z");
  EXPECT_EQ(rows[2].at("BillingPeriodEnd"), "2026-02-01T00:00:00Z");
}

TEST(ExportFocus, HasTheMandatoryColumns) {
  const auto rows = rows_of({test_unit()});
  ASSERT_EQ(rows.size(), 1U);
  for (const char* const column :
       {"BilledCost",        "BillingAccountId",   "BillingAccountName", "BillingCurrency",
        "BillingPeriodEnd",  "BillingPeriodStart", "ChargeCategory",     "ChargeClass",
        "ChargeDescription", "ChargePeriodEnd",    "ChargePeriodStart",  "ContractedCost",
        "EffectiveCost",     "HostProviderName",   "InvoiceIssuerName",  "ListCost",
        "PricingQuantity",   "PricingUnit",        "ProviderName",       "PublisherName",
        "ServiceCategory",   "ServiceName",        "ServiceProviderName"}) {
    EXPECT_TRUE(rows[0].contains(column)) << column;
    EXPECT_EQ(rows[0].at(column).empty(), column == std::string_view("ChargeClass")) << column;
  }
}

TEST(ExportFocus, AUnitWithoutAProjectHasAnAccount) {
  const auto rows = rows_of({{.cluster = "hpc", .uuid = "7", .ended_ms = kDay}});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].at("SubAccountId"), "none");
  EXPECT_EQ(rows[0].at("BilledCost"), "0.000000000");
  EXPECT_EQ(rows[0].at("x_UnitsWithoutEnergy"), "1");
  EXPECT_TRUE(rows_of({}).empty());
}

}  // namespace
}  // namespace ceems::exporting
