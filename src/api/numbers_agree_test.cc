// The definitions of docs/numbers.md: each count and each sum is the same in every answer, digest,
// mail and report, on a generated site with gaps.
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "api/mail/report_source.h"
#include "api/server.h"
#include "api/test_request.h"
#include "base/time/time_text.h"
#include "mail/letter.h"
#include "store/test_database.h"

namespace ceems::api {
namespace {

namespace json = boost::json;
using store::kDay;
using store::kHour;
using store::kMinute;
using store::kNow;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::int64_t kDecemberBegins = kNow - 31 * kDay;
constexpr std::int64_t kFirstDay = kDecemberBegins - 6 * kDay;  // the accounting begins in November
constexpr const char* kDecemberPeriod = "from=1764547200&to=1767225599";
/// A cluster without measurements of energy.
constexpr const char* kDark = "dark";
constexpr double kKwhPrice = 0.5;
constexpr double kCoreHourPrice = 0.25;

/// A run of which everything is within a window of an hour.
struct JobRun {
  std::string cluster, uuid, user, project;
  std::int64_t end_ms = 0;
  double core_hours = 0;
  std::optional<double> kwh = {}, idle_kwh = {}, not_used_kwh = {};
};

struct Sums {
  double units = 0, core_hours = 0, kwh = 0, idle = 0, idle_of = 0, not_used = 0, not_used_of = 0;
  double measured = 0, hours_with_energy = 0, cost = 0;

  void add(const JobRun& run) {
    units += 1;
    core_hours += run.core_hours;
    kwh += run.kwh.value_or(0);
    if (run.kwh) {
      measured += 1;
      hours_with_energy += run.core_hours;
      cost += *run.kwh * kKwhPrice + run.core_hours * kCoreHourPrice;
    }
    if (run.idle_kwh) {
      idle += *run.idle_kwh;
      idle_of += run.kwh.value_or(0);
    }
    if (run.not_used_kwh) {
      not_used += *run.not_used_kwh;
      not_used_of += run.kwh.value_or(0);
    }
  }
};

double number_at(const json::value& object, std::string_view name) {
  const json::value& value = object.at(name);
  return value.is_null() ? 0 : value.to_number<double>();
}

class NumbersAgree : public store::EveryDatabase {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(EveryDatabase::SetUp());
    if (IsSkipped()) {
      return;
    }
    ASSERT_TRUE(db_->writer().write_admins("ceems", {"root"}));
    generate();
    clock_.step_to(Clock::SystemTime(std::chrono::milliseconds(kNow - kMinute)));
    ApiOptions options;
    options.site.budgets = {{.cluster = "", .project = "fluids", .kwh_per_month = 1000}};
    options.site.prices = {.kwh = kKwhPrice, .core_hour = kCoreHourPrice};
    options.accounting.budgets = {{.project = "fluids",
                                   .unit = BudgetUnit::kCost,
                                   .amount = 1000,
                                   .period = ProjectBudget::Period::kMonth}};
    auto server = ApiServer::create(std::move(options), db_->reader(), nullptr, registry_, clock_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }

  /// Two clusters, three users, days without jobs, and parts that were not measured.
  void generate() {
    std::mt19937 random(7);
    const auto one_of = [&random](unsigned count) {
      return static_cast<unsigned>(random() % count);
    };
    for (std::int64_t day = kFirstDay; day < kNow; day += kDay) {
      for (const std::string cluster : {"lit", kDark}) {
        store::ClusterUpdate update = store::update(day, day + kDay, {}, cluster);
        update.users = std::vector<model::User>{{.name = "ada", .projects = {"fluids"}},
                                                {.name = "bob", .projects = {"fluids"}},
                                                {.name = "eve", .projects = {"optics"}}};
        update.projects = std::vector<model::Project>{{.name = "fluids", .users = {"ada", "bob"}},
                                                      {.name = "optics", .users = {"eve"}}};
        const bool jobs = (day - kFirstDay) / kDay % 9 != 8;
        for (unsigned i = 0; jobs && i < 2 + one_of(3); ++i) {
          const unsigned who = one_of(3);
          JobRun run{.cluster = cluster,
                     .uuid = fmt::format("{}{}", (day - kFirstDay) / kDay + 10, i),
                     .user = std::vector<std::string>{"ada", "bob", "eve"}[who],
                     .project = who < 2 ? "fluids" : "optics",
                     .end_ms = day + kHour * (2 + one_of(20)),
                     .core_hours = 2.0 * (1 + one_of(8))};
          if (cluster != kDark && one_of(5) != 0) {
            run.kwh = 4.0 * (1 + one_of(16));
            if (one_of(6) != 0) {
              run.idle_kwh = *run.kwh / 4;
            }
            if (run.idle_kwh && one_of(4) != 0) {
              run.not_used_kwh = *run.kwh / (i == 0 ? 8 : 16);
            }
          }
          update.units.push_back(unit_of(run));
          runs_.push_back(std::move(run));
        }
        write(update);
      }
    }
  }
  static model::Unit unit_of(const JobRun& run) {
    model::Unit unit = store::job(run.uuid, run.end_ms - kHour, run.end_ms);
    unit.name = "relax-" + run.uuid;
    unit.started_at = std::string(TimeZone().local_with_offset(run.end_ms - kHour));
    unit.username = run.user;
    unit.project = run.project;
    unit.tags = R"({"partition":"cpu"})";
    store::with_times(unit, 3600, run.core_hours * 3600);
    if (run.kwh) {
      store::with(unit, model::Metric::kTotalCpuEnergyUsageKwh, {{"total", *run.kwh}});
      store::with(unit, model::Metric::kTotalCpuEmissionsGms, {{"rte_total", *run.kwh * 50}});
    }
    unit.idle_kwh = run.idle_kwh;
    unit.not_used_kwh = run.not_used_kwh;
    return unit;
  }
  [[nodiscard]] Sums december(const std::function<bool(const JobRun&)>& chosen) const {
    Sums sums;
    for (const JobRun& run : runs_) {
      if (run.end_ms >= kDecemberBegins && chosen(run)) {
        sums.add(run);
      }
    }
    return sums;
  }

  std::string body(const std::string& target, const std::string& user) {
    net::Response response;
    server_->handle(request_for("GET", "/api/v1/" + target, {{"X-Grafana-User", user}}), response);
    read_whole(response);
    EXPECT_EQ(response.status, 200) << target << response.body;
    return response.body;
  }
  json::value data(const std::string& target, const std::string& user = "root") {
    return json::parse(body(target, user)).at("data");
  }
  /// The totals of usage/series, added up over the groups.
  std::map<std::string, double> series(const std::string& more) {
    std::map<std::string, double> sums;
    const json::value found =
        data(fmt::format("usage/series/admin?{}&top=50&field=kwh,core_hours,units,idle_kwh,"
                         "idle_of_kwh,not_used_kwh,not_used_of_kwh,core_hours_with_energy,"
                         "cost&{}",
                         kDecemberPeriod, more));
    for (const auto& [name, totals] : found.at("totals").as_object()) {
      for (const json::value& total : totals.as_array()) {
        sums[std::string(name)] += total.is_null() ? 0 : total.to_number<double>();
      }
    }
    return sums;
  }

  /// What each answer says of the units that ended, against what was written.
  void expect_ended(const Sums& want, const std::string& filter) {
    const auto check = [&](const std::string& what, const Sums& got) {
      EXPECT_EQ(got.units, want.units) << what << filter;
      EXPECT_NEAR(got.kwh, want.kwh, 1e-6) << what << filter;
      EXPECT_NEAR(got.idle, want.idle, 1e-6) << what << filter;
      EXPECT_NEAR(got.not_used, want.not_used, 1e-6) << what << filter;
    };
    const auto check_cost = [&](const std::string& what, double got) {
      EXPECT_NEAR(got, want.cost, 1e-6) << what << filter;
    };
    const std::string query = fmt::format("?{}{}", kDecemberPeriod, filter);
    const json::value summary = data("units/summary/admin" + query);
    check("summary", {.units = number_at(summary, "count"),
                      .kwh = number_at(summary, "kwh"),
                      .idle = number_at(summary, "idle_kwh"),
                      .not_used = number_at(summary, "not_used_kwh")});
    EXPECT_NEAR(number_at(summary, "core_hours"), want.core_hours, 1e-6) << filter;
    EXPECT_NEAR(number_at(summary, "not_used_of_kwh"), want.not_used_of, 1e-6) << filter;
    EXPECT_NEAR(number_at(summary, "idle_of_kwh"), want.idle_of, 1e-6) << filter;
    EXPECT_NEAR(number_at(summary, "core_hours_with_energy"), want.hours_with_energy, 1e-6)
        << filter;
    EXPECT_EQ(number_at(summary, "measured"), want.measured) << filter;
    EXPECT_EQ(number_at(summary, "running"), 0) << filter;
    check_cost("summary", number_at(summary, "cost"));
    Sums listed;
    const json::value list =
        data("units/list/admin" + query + "&columns=kwh,unused,not_used,cost&limit=1000");
    for (const json::value& row : list.at("rows").as_array()) {
      const auto cell = [&row](std::size_t at) {
        return row.at(at).is_null() ? 0 : row.at(at).to_number<double>();
      };
      listed.units += 1;
      listed.kwh += cell(0);
      listed.idle += cell(1);
      listed.not_used += cell(2);
      listed.cost += cell(3);
    }
    check("list", listed);
    check_cost("list", listed.cost);
    Sums kinds;
    const json::value kinds_found = data("units/kinds/admin" + query + "&top=100");
    for (const json::value& kind : kinds_found.at("kinds").as_array()) {
      kinds.units += number_at(kind, "units");
      kinds.kwh += number_at(kind, "kwh");
      kinds.idle += number_at(kind, "unused");
      kinds.not_used += number_at(kind, "not_used");
      kinds.not_used_of += number_at(kind, "not_used_of");
      kinds.idle_of += number_at(kind, "unused_of");
      kinds.measured += number_at(kind, "measured");
    }
    check("kinds", kinds);
    EXPECT_NEAR(kinds.idle_of, want.idle_of, 1e-6) << filter;
    EXPECT_EQ(kinds.measured, want.measured) << filter;
    EXPECT_NEAR(kinds.not_used_of, want.not_used_of, 1e-6) << filter;
    if (filter.find("user=") == std::string::npos) {  // insight/idle has no such parameter
      for (const char* by : {"project", "user", "cluster", "partition"}) {
        Sums groups;
        const json::value found = data("insight/idle/admin" + query + "&by=" + by);
        for (const json::value& group : found.as_array()) {
          groups.units += number_at(group, "units");
          groups.kwh += number_at(group, "kwh");
          groups.idle += number_at(group, "idle_kwh");
          groups.idle_of += number_at(group, "measured_kwh");
          groups.not_used += number_at(group, "not_used_kwh");
          groups.not_used_of += number_at(group, "not_used_of_kwh");
        }
        check(by, groups);
        EXPECT_NEAR(groups.idle_of, want.idle_of, 1e-6) << by << filter;
        EXPECT_NEAR(groups.not_used_of, want.not_used_of, 1e-6) << by << filter;
      }
    }
    // What cacct lists.
    Sums units;
    const json::value unit_rows = data("units/admin" + query);
    for (const json::value& unit : unit_rows.as_array()) {
      units.units += 1;
      if (const auto* energy = unit.as_object().if_contains("total_cpu_energy_usage_kwh");
          energy != nullptr && energy->is_object() && energy->as_object().contains("total")) {
        units.kwh += energy->at("total").to_number<double>();
      }
    }
    EXPECT_EQ(units.units, want.units) << filter;
    EXPECT_NEAR(units.kwh, want.kwh, 1e-6) << filter;
  }

  std::vector<JobRun> runs_;
  metrics::Registry registry_{"ceems_api_server", "the API server"};
  std::unique_ptr<ApiServer> server_;
};

TEST_P(NumbersAgree, OnUnitsThatEnded) {
  const auto all = [](const JobRun&) { return true; };
  ASSERT_GT(december(all).not_used, 0);
  ASSERT_LT(december(all).not_used_of, december(all).idle_of) << "of some it is not known";
  ASSERT_LT(december(all).idle_of, december(all).kwh);
  expect_ended(december(all), "");
  expect_ended(december([](const JobRun& run) { return run.cluster == "lit"; }), "&cluster_id=lit");
  expect_ended(december([](const JobRun& run) { return run.cluster == kDark; }),
               "&cluster_id=dark");
  expect_ended(december([](const JobRun& run) { return run.project == "fluids"; }),
               "&project=fluids");
  expect_ended(december([](const JobRun& run) { return run.user == "ada"; }), "&user=ada");
}

TEST_P(NumbersAgree, OnDaysAndMonths) {
  const Sums all = december([](const JobRun&) { return true; });
  for (const char* step : {"day", "month"}) {
    for (const char* by : {"none", "project", "user", "cluster"}) {
      const std::string which = fmt::format("step={}&by={}", step, by);
      auto sums = series(which);
      EXPECT_EQ(sums["units"], all.units) << which;
      EXPECT_NEAR(sums["core_hours"], all.core_hours, 1e-4) << which;
      EXPECT_NEAR(sums["kwh"], all.kwh, 1e-4) << which;
      EXPECT_NEAR(sums["idle_kwh"], all.idle, 1e-4) << which;
      EXPECT_NEAR(sums["idle_of_kwh"], all.idle_of, 1e-4) << which;
      EXPECT_NEAR(sums["not_used_kwh"], all.not_used, 1e-4) << which;
      EXPECT_NEAR(sums["not_used_of_kwh"], all.not_used_of, 1e-4) << which;
      EXPECT_NEAR(sums["core_hours_with_energy"], all.hours_with_energy, 1e-4) << which;
      EXPECT_NEAR(sums["cost"], all.cost, 1e-4) << which;
    }
  }
  // A file has the same numbers.
  const std::string csv =
      body(fmt::format("usage/series/admin?{}&step=month&field=units,core_hours&format=csv",
                       kDecemberPeriod),
           "root");
  EXPECT_THAT(csv, HasSubstr(fmt::format("2025-12-01,{},{}\r\n", all.units, all.core_hours)));
  // Budgets count the same energy of a project, whatever the cluster.
  const Sums fluids = december([](const JobRun& run) { return run.project == "fluids"; });
  const json::value budgets = data("insight/budgets");
  for (const json::value& budget : budgets.as_array()) {
    EXPECT_NEAR(number_at(budget, "used"), budget.at("unit") == "kwh" ? fluids.kwh : fluids.cost,
                1e-4);
  }
  EXPECT_EQ(budgets.as_array().size(), 2U);
  // The report's share of the month is of that sum.
  for (const JobRun& run : runs_) {
    if (run.project == "fluids" && run.end_ms >= kDecemberBegins && run.kwh) {
      Sums lit = december(
          [](const JobRun& one) { return one.project == "fluids" && one.cluster == "lit"; });
      const json::value report =
          data(fmt::format("units/report/admin?cluster_id=lit&uuid={}", run.uuid)).at(0);
      EXPECT_NEAR(number_at(report.at("compared"), "project_month_share"), *run.kwh / lit.kwh,
                  0.005);
      EXPECT_EQ(number_at(report.at("energy"), "kwh"), *run.kwh);
      break;
    }
  }
}

TEST_P(NumbersAgree, OnTheMonthOfAUserAndOnWhatIsNotKnown) {
  const Sums ada = december([](const JobRun& run) { return run.user == "ada"; });
  const json::value digest = data("usage/digest?month=2025-12", "ada");
  const json::value& month = digest.at("months").at(0);
  EXPECT_EQ(number_at(month, "units"), ada.units);
  EXPECT_NEAR(number_at(month, "core_hours"), ada.core_hours, 0.5) << "whole hours";
  EXPECT_NEAR(number_at(month, "kwh"), ada.kwh, ada.kwh / 100) << "three digits";
  EXPECT_NEAR(number_at(month, "idle_share"), ada.idle / ada.idle_of, 0.0051);
  EXPECT_NEAR(number_at(month, "not_used_share"), ada.not_used / ada.not_used_of, 0.0051);
  EXPECT_EQ(digest.at("unmeasured"), json::parse(R"(["dark"])"));
  auto sums = series("step=month&user=ada");
  EXPECT_EQ(sums["units"], ada.units);
  EXPECT_NEAR(sums["kwh"], ada.kwh, 1e-4);
  EXPECT_NEAR(sums["core_hours"], ada.core_hours, 1e-4);
  EXPECT_NEAR(sums["not_used_kwh"], ada.not_used, 1e-4);
  // The mail is the same text.
  MailReports mails{db_->reader(), server_->reports(), server_->digests(), MailReports::Setup{},
                    clock_};
  const auto made = mails.digest("ada", "2025-12", {});
  ASSERT_TRUE(made && *made);
  EXPECT_THAT(mail::month_letter("ada", **made, {}).text,
              StartsWith(body("usage/digest?month=2025-12&format=text&width=78", "ada")));
  // Unknown is not 0.
  const std::string dark = "&cluster_id=dark";
  const json::value summary = data(fmt::format("units/summary/admin?{}{}", kDecemberPeriod, dark));
  EXPECT_EQ(summary.at("measured"), 0);
  const json::value dark_digest = data("usage/digest?month=2025-12&cluster_id=dark", "ada");
  const json::value totals =
      data(fmt::format("usage/series/admin?{}&step=month&field=kwh,grams,idle_kwh,not_used_kwh{}",
                       kDecemberPeriod, dark))
          .at("totals");
  for (const char* name : {"kwh", "grams", "idle_kwh", "not_used_kwh"}) {
    EXPECT_TRUE(totals.at(name).at(0).is_null()) << name;
  }
  for (const char* name : {"kwh", "g", "idle_share", "not_used_share"}) {
    EXPECT_TRUE(dark_digest.at("months").at(0).at(name).is_null()) << name;
  }
  for (const char* name : {"idle_kwh", "not_used_kwh"}) {
    EXPECT_TRUE(summary.at(name).is_null()) << name;
  }
  const json::value groups =
      data(fmt::format("insight/idle/admin?{}&by=project{}", kDecemberPeriod, dark));
  for (const json::value& group : groups.as_array()) {
    EXPECT_TRUE(group.at("idle_kwh").is_null() && group.at("not_used_kwh").is_null());
  }
  // Days before the first one are a gap, and a day without jobs among the others is 0.
  const json::value days =
      data("usage/series/admin?step=day&field=core_hours&from=1762646400&to=1767225599")
          .at("values")
          .at("core_hours")
          .at(0);
  const auto first = static_cast<std::size_t>((kFirstDay - 1762646400000) / kDay);
  EXPECT_TRUE(days.at(first - 1).is_null());
  EXPECT_FALSE(days.at(first).is_null());
  EXPECT_EQ(days.at(first + 8), 0);
}

INSTANTIATE_TEST_SUITE_P(,
                         NumbersAgree,
                         ::testing::Values(store::Backend::kSqlite, store::Backend::kPostgres),
                         store::backend_name);

}  // namespace
}  // namespace ceems::api
