// Digests of months by the server, on every kind of database.
#include <boost/json.hpp>
#include <gmock/gmock.h>

#include "api/server.h"
#include "api/test_request.h"
#include "report/stored.h"
#include "store/nodes.h"
#include "store/reports.h"
#include "store/test_database.h"

namespace ceems::api {
namespace {

namespace json = boost::json;
using store::kDay;
using store::kHour;
using store::kNow;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kMidNovember = kNow - 51 * kDay;  // the 11th
constexpr std::int64_t kMidDecember = kNow - 21 * kDay;  // the 11th

/// A run of half an hour with 16 CPUs.
model::Unit run(const std::string& uuid,
                const std::string& user,
                const std::string& project,
                std::int64_t end_ms,
                double kwh,
                double not_used_kwh) {
  model::Unit unit = store::job(uuid, end_ms - kHour / 2, end_ms);
  unit.name = (user == "ada" ? "relax-" : "secret-") + uuid.substr(1);
  unit.username = user;
  unit.project = project;
  unit.allocation = R"({"cpus":16,"nodes":1})";
  store::with_times(unit, 1800, 28800);
  if (kwh > 0) {
    store::with(unit, model::Metric::kTotalCpuEnergyUsageKwh, {{"total", kwh}});
    store::with(unit, model::Metric::kTotalCpuEmissionsGms, {{"rte_total", kwh * 50}});
    // Twice as much is idle power, which is not what counts.
    unit.idle_kwh = 2 * not_used_kwh;
    unit.not_used_kwh = not_used_kwh;
  }
  return unit;
}

class Digests : public store::EveryDatabase {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(EveryDatabase::SetUp());
    ASSERT_TRUE(db_->writer().write_admins("ceems", {"root"}));
    std::vector<model::Unit> units;
    for (int i = 0; i < 8; ++i) {
      units.push_back(
          run("n" + std::to_string(i), "ada", "fluids", kMidNovember + kHour / 2, 0.5, 0.2));
    }
    write_window(kMidNovember, units);
    units.clear();
    for (int i = 0; i < 6; ++i) {
      const std::string id = std::to_string(i);
      units.push_back(run("d" + id, "ada", "fluids", kMidDecember + kHour / 2 + i, 0.5, 0.05));
      units.push_back(run("b" + id, "bob", "fluids", kMidDecember + kHour / 2, 1, 0));
    }
    for (int group = 1; group <= 4; ++group) {
      const std::string id = std::to_string(group);
      for (int i = 0; i < 5; ++i) {
        units.push_back(run("g" + id + std::to_string(i), "u" + id, "g" + id,
                            kMidDecember + kHour / 2, 1, 0.1 * group));
      }
    }
    write_window(kMidDecember, units);
    at(kNow + kDay);
    ApiOptions options;
    options.roles.support = {"sue"};
    options.roles.project_leads = {{.cluster_id = "hpc", .project = "fluids", .users = {"lea"}}};
    options.site.help_url = "mailto:help@example.org";
    auto server = ApiServer::create(std::move(options), db_->reader(), nullptr, registry_, clock_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  void at(std::int64_t ms) { clock_.step_to(Clock::SystemTime(std::chrono::milliseconds(ms))); }

  /// A window of an hour, after an empty one that closes the time since the last.
  void write_window(std::int64_t start_ms,
                    std::vector<model::Unit> units,
                    const std::string& cluster = "hpc") {
    auto& until = until_[cluster];
    if (until > 0) {
      write(store::update(until, start_ms, {}, cluster));
    }
    store::ClusterUpdate window =
        store::update(start_ms, start_ms + kHour, std::move(units), cluster);
    window.users = std::vector<model::User>{{.name = "ada", .projects = {"fluids"}},
                                            {.name = "bob", .projects = {"fluids"}}};
    window.projects = std::vector<model::Project>{{.name = "fluids", .users = {"ada", "bob"}}};
    for (const std::string id : {"1", "2", "3", "4"}) {
      window.users->push_back({.name = "u" + id, .projects = {"g" + id}});
      window.projects->push_back({.name = "g" + id, .users = {"u" + id}});
    }
    write(window);
    until = start_ms + kHour;
  }

  /// The final report of a unit, with a finding.
  void store_report(const std::string& uuid,
                    const std::string& rule,
                    std::int64_t ended_ms,
                    advice::Confidence confidence = advice::Confidence::kSure) {
    report::Report report{.cluster_id = "hpc",
                          .uuid = uuid,
                          .started_ms = ended_ms - kHour / 2,
                          .ended_ms = ended_ms,
                          .state = report::State::kFinal,
                          .coverage = 1};
    report.findings = {{.rule = rule,
                        .confidence = confidence,
                        .runs = 6,
                        .text = {{"en", "Ask for less " + rule + "."}},
                        .lines = {{.type = "#SBATCH --" + rule + "=1", .was = "--" + rule + "=2"}},
                        .saves_kwh = 0.25}};
    const auto stored = db_->writer().store_reports(
        {{.key = {.cluster_id = "hpc", .uuid = uuid, .started_at_ts = report.started_ms},
          .ended_at_ts = ended_ms,
          .final = true,
          .made_ms = kNow,
          .version = report::kStoredVersion,
          .body = report::to_stored(report),
          .findings = {{.rule = rule,
                        .severity = 2,
                        .confidence = static_cast<int>(confidence),
                        .runs = 6,
                        .saves_kwh = 0.25,
                        .numbers = "{}"}}}});
    ASSERT_TRUE(stored) << stored.error().message;
    ASSERT_EQ(*stored, 1U);
  }

  net::Response get(const std::string& query, const std::string& user) {
    net::Headers headers;
    if (!user.empty()) {
      headers.emplace_back("X-Grafana-User", user);
    }
    net::Response response;
    server_->handle(request_for("GET", "/api/v1/usage/digest" + query, headers), response);
    read_whole(response);
    return response;
  }
  json::object digest(const std::string& query, const std::string& user) {
    const auto response = get(query, user);
    EXPECT_EQ(response.status, 200) << query << response.body;
    return response.status == 200 ? json::parse(response.body).at("data").as_object()
                                  : json::object();
  }

  std::map<std::string, std::int64_t> until_;
  metrics::Registry registry_{"ceems_api_server", "the API server"};
  std::unique_ptr<ApiServer> server_;
};

TEST_P(Digests, ShowTheOwnMonthAgainstTheOneBefore) {
  const json::object own = digest("?month=2025-12", "ada");
  EXPECT_EQ(own.at("user"), "ada");
  EXPECT_TRUE(own.at("project").is_null());
  const json::array& months = own.at("months").as_array();
  ASSERT_EQ(months.size(), 2U) << "October has no use";
  EXPECT_EQ(months[0], json::parse(R"({"month":"2025-12","core_hours":48,"gpu_hours":0,"kwh":3,)"
                                   R"("g":150,"units":6,"idle_share":0.2,"not_used_share":0.1})"));
  EXPECT_EQ(months[1].at("month"), "2025-11");
  EXPECT_EQ(months[1].at("kwh"), 4);
  EXPECT_EQ(months[1].at("idle_share"), 0.8);
  EXPECT_EQ(months[1].at("not_used_share"), 0.4);
  EXPECT_EQ(own.at("kwh_change"), -0.25);
  EXPECT_EQ(own.at("hours_change"), -0.25);
  EXPECT_EQ(own.at("improvement"),
            json::parse(R"({"name":"relax-#","runs":6,"before":0.4,"now":0.1,"saved_kwh":0.9})"));
  EXPECT_TRUE(own.at("band").is_null()) << "users are not compared";
  EXPECT_EQ(own.at("so_far"), false);
  const json::object running = digest("", "ada");
  EXPECT_EQ(running.at("so_far"), true);
  EXPECT_EQ(running.at("months").at(0).at("month"), "2026-01");
  EXPECT_TRUE(running.at("months").at(0).at("kwh").is_null()) << "nothing is known, which is not 0";
  EXPECT_TRUE(running.at("kwh_change").is_null());
}

TEST_P(Digests, SayHowEnergyIsKnown) {
  EXPECT_TRUE(digest("?month=2025-12", "ada").at("method").is_null());
  const auto nodes = [this](std::int64_t from_ms, std::int64_t modelled) {
    ASSERT_TRUE(db_->writer().write_nodes(
        {.cluster_id = "hpc",
         .start_ms = from_ms,
         .end_ms = from_ms + kHour,
         .day_ms = kMidDecember / kDay * kDay,
         .energies = {{.node = "n1", .energy = 1000, .modelled = modelled}}}));
  };
  nodes(kMidDecember, 0);
  EXPECT_EQ(digest("?month=2025-12", "ada").at("method"), "measured");
  nodes(kMidDecember + kHour, 500);
  const json::object part = digest("?month=2025-12", "ada");
  EXPECT_EQ(part.at("method"), "partly_modelled");
  EXPECT_EQ(part.at("modelled_share"), 0.25);
  EXPECT_THAT(get("?month=2025-12&format=text", "ada").body, HasSubstr("25 % of it modelled"));
}

TEST_P(Digests, DoNotTakeWhatWasNotCountedForUsed) {
  // Two units of each kind from before it was counted: the shares are of the others.
  std::vector<model::Unit> units;
  for (int i = 0; i < 4; ++i) {
    const std::string id = (i % 2 == 0 ? "d1" : "g41") + std::to_string(i);
    units.push_back(run(id, i % 2 == 0 ? "ada" : "u4", i % 2 == 0 ? "fluids" : "g4",
                        kMidDecember + kHour / 2 + 9, 10, 1));
    units.back().not_used_kwh.reset();
  }
  write_window(kMidDecember, units, "old");
  const json::object own = digest("?month=2025-12", "ada");
  EXPECT_EQ(own.at("months").at(0).at("units"), 8);
  EXPECT_EQ(own.at("months").at(0).at("not_used_share"), 0.1);
  EXPECT_EQ(own.at("months").at(0).at("idle_share"), 0.2);
  EXPECT_EQ(own.at("improvement").at("saved_kwh"), 0.9);
  const json::object old = digest("?month=2025-12&cluster_id=old", "ada");
  EXPECT_TRUE(old.at("months").at(0).at("not_used_share").is_null()) << "unknown, not 0";
  EXPECT_EQ(old.at("months").at(0).at("idle_share"), 0.2);
  EXPECT_TRUE(old.at("improvement").is_null());
  const std::string text = get("?month=2025-12&cluster_id=old&format=text", "ada").body;
  EXPECT_THAT(text, AllOf(HasSubstr("Idle power"), Not(HasSubstr("Not used"))));
  EXPECT_TRUE(digest("?month=2025-12&project=fluids&cluster_id=old", "root").at("band").is_null());
}

TEST_P(Digests, DoNotTakeMissingEnergyForNone) {
  write_window(kMidDecember, {run("x", "ada", "fluids", kMidDecember + kHour / 2, 0, 0)}, "dark");
  const json::object own = digest("?month=2025-12", "ada");
  EXPECT_EQ(own.at("months").at(0).at("core_hours").to_number<double>(), 56);
  EXPECT_EQ(own.at("months").at(0).at("kwh").to_number<double>(), 3);
  EXPECT_EQ(own.at("unmeasured"), json::parse(R"(["dark"])"));
  EXPECT_TRUE(own.at("kwh_change").is_null()) << "of other clusters than in the month before";
  const json::object dark = digest("?month=2025-12&cluster_id=dark", "ada");
  EXPECT_TRUE(dark.at("months").at(0).at("kwh").is_null());
  EXPECT_TRUE(dark.at("months").at(0).at("g").is_null());
  EXPECT_THAT(get("?month=2025-12&cluster_id=dark&format=text", "ada").body,
              AllOf(HasSubstr("not measured"), Not(HasSubstr("0 Wh"))));
}

TEST_P(Digests, CompareNoEnergyThatIsKnownForTooFewHours) {
  // On the same day as runs with energy.
  const auto more = [this](const std::string& uuid, std::int64_t start_ms) {
    write_window(start_ms, {run(uuid, "ada", "fluids", start_ms + kHour / 2, 0, 0)});
    return digest("?month=2025-12", "ada");
  };
  EXPECT_EQ(more("y", kMidDecember + 2 * kHour).at("kwh_change"), -0.25) << "6 of 7 runs";
  const json::object own = more("z", kMidDecember + 4 * kHour);
  EXPECT_TRUE(own.at("kwh_change").is_null()) << "6 of 8 runs";
  EXPECT_EQ(own.at("months").at(0).at("kwh"), 3);
  EXPECT_FALSE(own.at("hours_change").is_null());
}

TEST_P(Digests, RepeatWhatReportsSuggest) {
  store_report("d0", "mem", kMidDecember + kHour / 2);
  store_report("d1", "mem", kMidDecember + kHour / 2 + 1);
  store_report("d2", "time", kMidDecember + kHour / 2 + 2, advice::Confidence::kLikely);
  store_report("d3", "once", kMidDecember + kHour / 2 + 3, advice::Confidence::kMaybe);
  store_report("b0", "others", kMidDecember + kHour / 2);
  store_report("n0", "old", kMidNovember + kHour / 2);
  const json::object own = digest("?month=2025-12", "ada");
  const json::array& suggestions = own.at("suggestions").as_array();
  ASSERT_EQ(suggestions.size(), 2U) << own;
  EXPECT_EQ(suggestions[0],
            json::parse(R"({"rule":"mem","severity":"suggest","confidence":"sure","units":2,)"
                        R"("cluster_id":"hpc","uuid":"d1","text":"Ask for less mem.",)"
                        R"("lines":[{"type":"#SBATCH --mem=1","was":"--mem=2"}],)"
                        R"("sbatch":["--mem=1"],"was":["--mem=2"],"saves":{"kwh":0.25}})"));
  EXPECT_EQ(suggestions[1].at("rule"), "time");
}

TEST_P(Digests, ShowAProjectToThoseWhoLeadIt) {
  store_report("b0", "mem", kMidDecember + kHour / 2);
  const std::string query = "?month=2025-12&project=fluids";
  const json::object led = digest(query, "lea");
  EXPECT_EQ(led.at("months").at(0).at("kwh").to_number<double>(), 9);
  EXPECT_EQ(led.at("months").at(0).at("units").to_number<double>(), 12);
  EXPECT_EQ(led.at("suggestions").at(0).at("sbatch"), json::parse(R"(["--mem=1"])"));
  const json::value band = json::parse(R"({"place":"below","low":0.1,"high":0.3,"projects":5})");
  EXPECT_EQ(led.at("band"), band);
  EXPECT_EQ(digest(query, "root"), led);
  json::object support = digest(query, "sue");
  EXPECT_TRUE(support.at("suggestions").at(0).at("sbatch").as_array().empty());
  EXPECT_TRUE(support.at("suggestions").at(0).at("lines").as_array().empty());
  EXPECT_TRUE(support.at("improvement").is_null() ||
              support.at("improvement").at("name").is_null());
  EXPECT_EQ(support.at("months"), led.at("months"));
  // Members see where it stands, but not what others use.
  const json::object member = digest(query, "ada");
  EXPECT_EQ(member.at("band"), band);
  EXPECT_EQ(member.at("band_only"), true);
  EXPECT_TRUE(member.at("months").as_array().empty());
  EXPECT_TRUE(member.at("suggestions").as_array().empty());
  EXPECT_EQ(get(query, "u1").status, 404);
  EXPECT_EQ(get("?project=none", "lea").status, 404);
  EXPECT_EQ(get(query + "&cluster_id=other", "lea").status, 404) << "which she does not lead there";
  EXPECT_EQ(get(query, "").status, 401);
}

TEST_P(Digests, HaveNoBandOfFewProjectsOrOneThatOutweighsAll) {
  const std::string query = "?month=2025-11&project=fluids";
  EXPECT_TRUE(digest(query, "lea").at("band").is_null()) << "it is alone";
  EXPECT_THAT(get(query + "&format=text", "ada").body,
              HasSubstr("too few projects with measurements to compare"));
  std::vector<model::Unit> units;
  for (int i = 0; i < 5; ++i) {
    units.push_back(run("h" + std::to_string(i), "ada", i == 0 ? "fluids" : "g" + std::to_string(i),
                        kMidDecember + kHour / 2, i == 0 ? 50 : 1, 0.1));
  }
  write_window(kMidDecember, units, "uneven");
  EXPECT_TRUE(
      digest("?month=2025-12&project=fluids&cluster_id=uneven", "root").at("band").is_null());
}

TEST_P(Digests, ComeInEveryFormAndRefuseBadQuestions) {
  const std::string text = get("?month=2025-12&format=text", "ada").body;
  EXPECT_THAT(text, HasSubstr("Energy            25 % less than in 2025-11\n"));
  EXPECT_THAT(text, HasSubstr("Questions? help@example.org\n"));
  EXPECT_THAT(get("?month=2025-12&format=markdown", "ada").body, HasSubstr("# Month 2025-12"));
  EXPECT_THAT(get("?month=2025-12&format=ascii&lang=de", "ada").body, HasSubstr("Monat 2025-12"));
  const auto page = get("?month=2025-12&format=html", "ada");
  EXPECT_THAT(page.body, HasSubstr("<h1>Month 2025-12</h1>"));
  const std::string* policy = net::find_header(page.headers, "Content-Security-Policy");
  ASSERT_NE(policy, nullptr);
  EXPECT_THAT(*policy, HasSubstr("default-src 'none'"));
  for (const char* bad : {"?month=2025-13", "?month=x", "?month=2099-01", "?format=pdf",
                          "?format=js1", "?width=3", "?project=a&project=b"}) {
    EXPECT_EQ(get(bad, "ada").status, 400) << bad;
  }
}

INSTANTIATE_TEST_SUITE_P(,
                         Digests,
                         ::testing::Values(store::Backend::kSqlite, store::Backend::kPostgres),
                         store::backend_name);

}  // namespace
}  // namespace ceems::api
