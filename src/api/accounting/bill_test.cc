#include "api/accounting/bill.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/accounting/bill_file.h"
#include "base/time/durations.h"

namespace ceems::api {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kNovember = 1'793'491'200'000;  // 2026-11-01T00:00:00Z
constexpr BillPeriod kMonth{.from_ms = kNovember, .to_ms = kNovember + 30 * kDayMs};
constexpr std::int64_t kBillUnitsOfKwh = 1'000'000'000;

store::Bill bill(std::int64_t from, std::int64_t to, double kwh) {
  return {.cluster_id = "",
          .start_ms = from,
          .end_ms = to,
          .energy = static_cast<std::int64_t>(kwh * kBillUnitsOfKwh)};
}

/// Two nodes that are read all day: 10 kWh, of which 6 active, 2 idle, 1 system, 1 unallocated.
store::NodeDay day(int number, const std::string& node_class = "big") {
  return {.cluster_id = "hpc",
          .node_class = node_class,
          .day_ms = kNovember + number * kDayMs,
          .nodes = 2,
          .sum = {.node = "",
                  .energy = 10 * kBillUnitsOfKwh,
                  .idle = 2 * kBillUnitsOfKwh,
                  .system = 1 * kBillUnitsOfKwh,
                  .unallocated = 1 * kBillUnitsOfKwh,
                  .modelled = 0,
                  .covered_ms = 2 * kDayMs}};
}

BillInput whole_month() {
  BillInput input{.meter = read_meter({bill(kMonth.from_ms, kMonth.to_ms, 400)}, kMonth),
                  .now_ms = kMonth.to_ms + kDayMs};
  for (int number = 0; number < 30; ++number) {
    input.days.push_back(day(number));
  }
  for (const char* name : {"n1", "n2"}) {
    input.nodes.push_back({.cluster_id = "hpc",
                           .facts = {.node = name, .node_class = "big", .source = "redfish"},
                           .first_ms = kNovember - 99 * kDayMs,
                           .last_ms = kMonth.to_ms + kDayMs});
  }
  return input;
}

std::map<std::string, double> kwh_of(const BillTable& table) {
  std::map<std::string, double> parts;
  for (const BillPart& part : table.parts) {
    if (part.kwh) {
      parts[part.part] = *part.kwh;
    }
  }
  return parts;
}

/// Half a month of readings is not set against the bill of the whole month.
TEST(BillTable, ComparesTheSameHoursOnly) {
  BillInput input = whole_month();
  input.billed = true;
  input.days.resize(15);
  for (store::KnownNode& node : input.nodes) {
    node.first_ms = kNovember;
  }
  BillTable table = make_bill(input);
  EXPECT_NEAR(*table.hours, 0.5, 1e-9);
  EXPECT_FALSE(table.factor);
  EXPECT_TRUE(table.hints.empty());
  auto parts = kwh_of(table);
  EXPECT_FALSE(parts.contains("unexplained"));
  EXPECT_EQ(parts["meter"], 400);
  EXPECT_NEAR(*table.parts.front().share, 0.6, 1e-9);  // of the nodes, not of the meter
  EXPECT_FALSE(table.parts.back().share);
  input = whole_month();
  input.days.resize(24);
  table = make_bill(input);
  EXPECT_NEAR(*table.hours, 0.8, 1e-9);
  EXPECT_NEAR(*table.parts.front().share, 6.0 * 24 / 400, 1e-9);
  EXPECT_NEAR(*table.parts.back().share, 1, 1e-12);
}

TEST(BillTable, ClosesTheSum) {
  BillInput input = whole_month();
  input.other = SeriesEnergy{.kwh = 30, .covered = 1};
  input.pue = 1.1;
  const BillTable table = make_bill(input);
  auto parts = kwh_of(table);
  EXPECT_NEAR(parts["active"] + parts["reserved_idle"] + parts["system"] + parts["unallocated"],
              parts["nodes"], 1e-6);
  EXPECT_NEAR(parts["nodes"], 300, 1e-9);
  EXPECT_NEAR(parts["active"], 180, 1e-9);
  EXPECT_NEAR(parts["cooling"], 33, 1e-9);
  EXPECT_NEAR(parts["unexplained"], 400 - 300 - 30 - 33, 1e-9);
  EXPECT_EQ(parts["meter"], 400);
  EXPECT_NEAR(*table.parts.front().share, 180.0 / 400, 1e-12);
  EXPECT_EQ(table.parts.front().how, "measured");
  EXPECT_EQ(table.parts[6].how, "configured");
  EXPECT_NEAR(*table.coverage, 1, 1e-12);
  EXPECT_NEAR(*table.measured, 1, 1e-12);
  EXPECT_EQ(table.nodes, 2U);
  EXPECT_EQ(table.days.size(), 30U);
  EXPECT_NEAR(table.days.front().active, 6, 1e-9);
  EXPECT_FALSE(table.parts.front().billed_kwh);
  // Nothing speaks for any cause that is known.
  EXPECT_TRUE(table.hints.empty());
  input.cooling = SeriesEnergy{.kwh = 60, .covered = 1};
  EXPECT_NEAR(kwh_of(make_bill(input))["unexplained"], 10, 1e-9);
}

TEST(BillTable, ScalesOnlyInAColumnOfItsOwn) {
  BillInput input = whole_month();
  input.billed = true;
  const BillTable table = make_bill(input);
  EXPECT_NEAR(*table.factor, 400.0 / 300, 1e-12);
  EXPECT_NEAR(*table.parts.front().kwh, 180, 1e-9);
  EXPECT_NEAR(*table.parts.front().billed_kwh, 240, 1e-9);
  double billed = 0;
  for (int part = 0; part < 4; ++part) {
    billed += table.parts[static_cast<std::size_t>(part)].billed_kwh.value_or(0);
  }
  EXPECT_NEAR(billed, 400, 1e-6);
  EXPECT_EQ(table.parts[7].billed_kwh, 0);
  EXPECT_EQ(table.parts[8].billed_kwh, 400);
}

TEST(BillTable, RanksWhatMayExplainTheRest) {
  BillInput input = whole_month();
  // A sixth of the days is missing; the energy of the others is modelled and has no meter.
  input.days.resize(25);
  for (store::NodeDay& one : input.days) {
    one.sum.modelled = one.sum.energy;
  }
  for (store::KnownNode& node : input.nodes) {
    node.facts.source = "rapl";
  }
  BillTable table = make_bill(input);
  EXPECT_NEAR(*table.coverage, 5.0 / 6, 1e-9);
  EXPECT_EQ(table.parts.front().how, "modelled");
  ASSERT_EQ(table.hints.size(), 3U);
  EXPECT_EQ(table.hints[0].kind, "modelled_nodes");
  EXPECT_NEAR(table.hints[0].kwh, 62.5, 1e-6);
  EXPECT_EQ(table.hints[1].kind, "uncovered_nodes");
  EXPECT_NEAR(table.hints[1].kwh, 50, 1e-6);
  EXPECT_NEAR(table.hints[1].hours, 2 * 5 * 24, 1e-6);
  EXPECT_EQ(table.hints[2].kind, "psu_losses");
  EXPECT_NEAR(table.hints[2].kwh, 23.75, 1e-6);
  // Up to 5 %, no explanation is looked for.
  input.meter = read_meter({bill(kMonth.from_ms, kMonth.to_ms, 262)}, kMonth);
  EXPECT_TRUE(make_bill(input).hints.empty());
  input.meter = read_meter({bill(kMonth.from_ms, kMonth.to_ms, 190)}, kMonth);  // less than that
  EXPECT_FALSE(make_bill(input).hints.empty());
}

TEST(BillTable, HasThePeriodOfTheBill) {
  BillInput input = whole_month();
  // The meter is read at 06:00.
  input.meter =
      read_meter({bill(kMonth.from_ms + 6 * kHourMs, kMonth.to_ms + 6 * kHourMs, 500)}, kMonth);
  EXPECT_EQ(input.meter.period.from_ms, kMonth.from_ms + 6 * kHourMs);
  input.days.push_back(day(30));
  const BillTable table = make_bill(input);
  auto parts = kwh_of(table);
  EXPECT_NEAR(parts["nodes"], 300, 1e-9);  // three quarters of the first day, one of the last
  EXPECT_NEAR(table.days.front().active, 4.5, 1e-9);
  EXPECT_NEAR(table.days.back().active, 1.5, 1e-9);
  ASSERT_EQ(table.hints.size(), 1U);
  EXPECT_EQ(table.hints[0].kind, "bill_clock");
  EXPECT_NEAR(table.hints[0].kwh, 500.0 / 720, 1e-9);
}

TEST(BillTable, TakesAPartOfLongBillsAndAddsShortOnes) {
  // Of a quarter, October to December, in proportion to the time.
  const auto quarter =
      read_meter({bill(kNovember - 31 * kDayMs, kNovember + 61 * kDayMs, 920)}, kMonth);
  EXPECT_TRUE(quarter.kwh && !quarter.in_proportion);  // its middle is in November
  const BillPeriod december{.from_ms = kMonth.to_ms, .to_ms = kMonth.to_ms + 31 * kDayMs};
  const auto part =
      read_meter({bill(kNovember - 31 * kDayMs, kNovember + 61 * kDayMs, 920)}, december);
  ASSERT_TRUE(part.kwh);
  EXPECT_TRUE(part.in_proportion);
  EXPECT_NEAR(*part.kwh, 310, 1e-9);
  EXPECT_EQ(part.period.to_ms, december.to_ms);
  const auto halves = read_meter(
      {bill(kNovember, kNovember + 15 * kDayMs, 1), bill(kNovember + 15 * kDayMs, kMonth.to_ms, 2)},
      kMonth);
  EXPECT_NEAR(*halves.kwh, 3, 1e-9);
  EXPECT_EQ(halves.period.to_ms, kMonth.to_ms);
  // A bill that ends in the month says too little of it.
  EXPECT_FALSE(read_meter({bill(kNovember - 31 * kDayMs, kNovember + kDayMs, 9)}, kMonth).kwh);
  EXPECT_FALSE(read_meter({}, kMonth).kwh);
}

TEST(BillTable, SaysWhatIsNotKnown) {
  BillInput input{.meter = read_meter({}, kMonth), .now_ms = kMonth.to_ms};
  const BillTable empty = make_bill(input);
  ASSERT_EQ(empty.parts.size(), 9U);
  for (const BillPart& part : empty.parts) {
    EXPECT_FALSE(part.kwh) << part.part;
    EXPECT_EQ(part.how, "") << part.part;
  }
  EXPECT_FALSE(empty.coverage);
  // This month so far.
  input = whole_month();
  input.meter = read_meter({}, kMonth);
  input.days.resize(10);
  input.now_ms = kNovember + 10 * kDayMs;
  const BillTable table = make_bill(input);
  EXPECT_NEAR(*table.coverage, 1, 1e-9);
  EXPECT_NEAR(*table.parts.front().share, 0.6, 1e-9);
  EXPECT_FALSE(table.factor);
  // A node that was taken away is missed for a week.
  input.nodes.back().last_ms = kNovember + kDayMs;
  EXPECT_NEAR(*make_bill(input).coverage, 1, 1e-9);
}

Result<std::vector<store::Bill>> parse_bill(const std::string& text) {
  return parse_bills(text, "bill.csv", "hpc", TimeZone::find("Europe/Paris").value());
}

TEST(BillFile, IsReadInTheZoneOfTheServer) {
  const auto bills = parse_bill(
      "\xEF\xBB\xBFperiod_start,period_end,kwh,cost,currency,kgco2_market\r\n"
      "2026-11-01,2026-12-01,118000,28320.5,EUR,0\r\n"
      "\r\n"
      "2026-12-01T06:00,2027-01-01T06:00:00+01:00,\"1.5\",,\"E\"\"UR\",\r\n");
  ASSERT_TRUE(bills) << bills.error().message;
  ASSERT_EQ(bills->size(), 2U);
  EXPECT_EQ(bills->at(0), (store::Bill{.cluster_id = "hpc",
                                       .start_ms = kNovember - kHourMs,
                                       .end_ms = kMonth.to_ms - kHourMs,
                                       .energy = 118000 * kBillUnitsOfKwh,
                                       .cost = "28320.5",
                                       .currency = "EUR",
                                       .kgco2 = "0"}));
  EXPECT_EQ(bills->at(1).start_ms, kMonth.to_ms + 5 * kHourMs);
  EXPECT_EQ(bills->at(1).end_ms, kMonth.to_ms + 31 * kDayMs + 5 * kHourMs);
  EXPECT_EQ(bills->at(1).energy, kBillUnitsOfKwh * 3 / 2);
  EXPECT_EQ(bills->at(1).currency, "E\"UR");
  EXPECT_EQ(parse_bill("kwh,period_end,period_start\n1,2026-12-01,2026-11-01\n")->size(), 1U);
}

TEST(BillFile, NamesTheLineOfAMistake) {
  const std::string head = "period_start,period_end,kwh\n";
  for (const auto& [text, message] : std::map<std::string, std::string>{
           {"", "names of the columns"},
           {head, "names of the columns"},
           {"period_start,kwh\n1,2\n", "bill.csv:1: the column period_end is missing"},
           {"period_start,period_end,kwh,kwh\n", "twice"},
           {"period_start,period_end,KWH\n", "unknown column 'KWH'"},
           {head + "2026-11-01,2026-12-01\n", "bill.csv:2: expected 3 cells, got 2"},
           {head + "01.11.2026,2026-12-01,1\n", "period_start"},
           {head + "2026-11-01,2026-11-01,1\n", "after period_start"},
           {head + "2026-11-01,2026-12-01,\"1,5\"\n", "kwh: expected a number"},
           {head + "2026-11-01,2026-12-01,-1\n", "kwh"},
           {head + "2026-11-01,2026-12-01,nan\n", "kwh"},
           {head + "2026-11-01,2026-12-01,1e99\n", "kwh"},
           {head + "2026-11-01,2026-12-01,\"1\n", "quote"},
           {"period_start,period_end,kwh,cost\n2026-11-01,2026-12-01,1,much\n", "cost"},
           {"period_start,period_end,kwh,currency\n2026-11-01,2026-12-01,1,\x1b[31m\n",
            "currency"}}) {
    const auto bills = parse_bill(text);
    ASSERT_FALSE(bills) << text;
    EXPECT_EQ(bills.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(bills.error().message, HasSubstr(message)) << text;
  }
}

}  // namespace
}  // namespace ceems::api
