#include "report/digest.h"

#include <algorithm>

#include <boost/json.hpp>
#include <gmock/gmock.h>

#include "advice/catalogue.h"

namespace ceems::report {
namespace {

namespace json = boost::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

RepeatedFinding finding(const std::string& rule, const std::string& unit) {
  return {.finding = {.rule = rule,
                      .severity = advice::Severity::kSuggest,
                      .confidence = advice::Confidence::kSure,
                      .runs = 8,
                      .text = {{"en", "Ask for " + rule + "."}},
                      .lines = {{.type = "#SBATCH --mem=10G", .was = "--mem=128G"}},
                      .saves_kwh = 2.6},
          .cluster_id = "hpc-a",
          .uuid = unit,
          .units = 14};
}

Digest some_digest() {
  Digest digest{.user = "ada", .method = "measured"};
  digest.months = {{.month = "2026-11",
                    .core_hours = 12345.6,
                    .gpu_hours = 82.123,
                    .kwh = 41.2789,
                    .grams = 1821.4,
                    .units = 214,
                    .idle_share = 0.1119,
                    .not_used_share = 0.0382},
                   {.month = "2026-10",
                    .core_hours = 14000,
                    .kwh = 44.9,
                    .grams = 2000,
                    .units = 190,
                    .idle_share = 0.17,
                    .not_used_share = 0.074},
                   {.month = "2026-09", .core_hours = 10}};
  digest.kwh_change = -0.0806;
  digest.hours_change = -0.118;
  digest.improvement =
      Improvement{.name = "relax-#", .runs = 20, .before = 0.312, .now = 0.11, .saved_kwh = 4.2345};
  digest.suggestions = {finding("mem-excess", "4711")};
  round_digest(digest);
  return digest;
}

TEST(Digest, IsOneTextWithOwnTrend) {
  EXPECT_EQ(to_text(some_digest(), {.help_url = "help@example.org"}),
            "Month 2026-11 · ada · 214 jobs ended\n"
            "\n"
            "What was used\n"
            "  Month    CPU hours  GPU hours  Energy    CO2e     Note\n"
            "  2026-11  12346      82.1       41.3 kWh  1.82 kg\n"
            "  2026-10  14000      0          44.9 kWh  2 kg\n"
            "  2026-09  10         0          –         –        not measured\n"
            "\n"
            "Compared with the month before        hours from the accounting; energy measured\n"
            "  Hours             12 % less than in 2026-10\n"
            "  Energy            8 % less than in 2026-10\n"
            "  Idle power        11 % of the energy, for what was reserved (2026-10: 17 %)\n"
            "  Not used          4 % of the energy (2026-10: 7 %)\n"
            "  Best improvement  relax-#: 11 % of the energy not used in 20 runs, 31 %\n"
            "                    before; about 4.2 kWh less\n"
            "\n"
            "Worth a look\n"
            "  1. Ask for mem-excess. (sure, in 14 jobs, the last one 4711; saves about 2.6\n"
            "     kWh a run)\n"
            "       #SBATCH --mem=10G             (was --mem=128G)\n"
            "\n"
            "Questions? help@example.org\n");
}

TEST(Digest, ShowsTheSameDigitsInEveryForm) {
  const Digest digest = some_digest();
  const json::object object = json::parse(to_json(digest, {})).as_object();
  EXPECT_EQ(object.at("month"), "2026-11");
  EXPECT_EQ(object.at("user"), "ada");
  EXPECT_TRUE(object.at("project").is_null());
  EXPECT_EQ(object.at("so_far"), false);
  EXPECT_EQ(object.at("band_only"), false);
  EXPECT_EQ(object.at("method"), "measured");
  EXPECT_TRUE(object.at("unmeasured").as_array().empty());
  EXPECT_EQ(object.at("hours_change"), -0.12);
  const json::object& month = object.at("months").as_array().at(0).as_object();
  EXPECT_EQ(month.at("kwh"), 41.3);
  EXPECT_EQ(month.at("core_hours").to_number<double>(), 12346);
  EXPECT_EQ(month.at("idle_share"), 0.11);
  EXPECT_EQ(month.at("not_used_share"), 0.04);
  EXPECT_TRUE(object.at("months").as_array().at(2).at("not_used_share").is_null()) << "not 0";
  EXPECT_TRUE(object.at("months").as_array().at(2).at("kwh").is_null()) << "not 0";
  EXPECT_EQ(object.at("kwh_change"), -0.08);
  EXPECT_EQ(object.at("improvement").at("saved_kwh"), 4.2);
  EXPECT_EQ(object.at("suggestions").at(0).at("uuid"), "4711");
  EXPECT_TRUE(object.at("band").is_null());
  for (const std::string& text :
       {to_text(digest, {}), to_markdown(digest, {}), to_html(digest, {})}) {
    EXPECT_THAT(text, AllOf(HasSubstr("41.3 kWh"), HasSubstr("12346"), HasSubstr("82.1"),
                            HasSubstr("not measured"), HasSubstr("#SBATCH --mem=10G")));
  }
  EXPECT_THAT(to_text(digest, {.language = "de"}), HasSubstr("8 % weniger als 2026-10"));
  EXPECT_THAT(to_text(digest, {.language = "fr"}), HasSubstr("41,3 kWh"));
  const std::string ascii = to_text(digest, {.language = "de", .ascii = true});
  EXPECT_TRUE(std::ranges::all_of(ascii, [](char c) { return c == '\n' || (c >= ' ' && c < 127); }))
      << ascii;
}

TEST(Digest, SaysWhatIsNotKnown) {
  Digest digest{.user = "ada"};
  digest.months = {{.month = "2026-11", .core_hours = 3}, {.month = "2026-10", .core_hours = 2}};
  digest.unmeasured = {"hpc-b"};
  const std::string text = to_text(digest, {});
  EXPECT_THAT(text, HasSubstr("by meters or a model, which is not recorded"));
  EXPECT_THAT(text, HasSubstr("not of hpc-b, where no energy is known"));
  EXPECT_THAT(text, HasSubstr("Energy  not known in both months"));
  EXPECT_THAT(text, HasSubstr("Nothing to suggest."));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("Idle power")), Not(HasSubstr("Not used"))));
  digest.months[0].idle_share = 0.3;  // of units from before the unused part was counted
  EXPECT_THAT(to_text(digest, {}),
              AllOf(HasSubstr("Idle power  30 % of the energy, for what was reserved\n"),
                    Not(HasSubstr("Not used"))));
  EXPECT_THAT(text, Not(HasSubstr("0 kWh")));
  digest.so_far = true;
  EXPECT_THAT(to_text(digest, {}), HasSubstr("the month has not ended, so it is not compared"));
  digest.method = "partly_modelled";
  digest.modelled_share = 0.125;
  round_digest(digest);
  EXPECT_THAT(to_text(digest, {}), HasSubstr("13 % of it modelled"));
}

TEST(Digest, ShowsMembersOnlyWhereTheirProjectStands) {
  Digest digest = some_digest();
  digest.user.clear();
  digest.project = "fluids";
  digest.band = Band{.place = "within", .low = 0.09, .high = 0.22, .projects = 23};
  keep_band(digest);
  const std::string text = to_text(digest, {.width = 120});
  EXPECT_THAT(text, HasSubstr("not used: in the middle half of 23 projects (9 % to 22 %)"));
  for (const std::string& form :
       {text, to_markdown(digest, {}), to_html(digest, {}), to_json(digest, {})}) {
    EXPECT_THAT(form, AllOf(Not(HasSubstr("41.3")), Not(HasSubstr("214 jobs"))));
  }
  digest.band.reset();
  EXPECT_THAT(to_text(digest, {}), HasSubstr("too few projects with measurements to compare"));
}

TEST(Digest, PrintsAtMostThreeSuggestionsAndEscapesNames) {
  Digest digest = some_digest();
  digest.project = "<script>alert(1)</script>";
  digest.improvement->name = "\x1b[31m<img src=x>";
  digest.suggestions.clear();
  for (const char* rule : {"a", "b", "c", "d"}) {
    digest.suggestions.push_back(finding(rule, "<i>"));
  }
  EXPECT_THAT(to_text(digest, {}),
              AllOf(HasSubstr("  3. Ask for c."), Not(HasSubstr("for d")), Not(HasSubstr("\x1b"))));
  EXPECT_EQ(json::parse(to_json(digest, {})).at("suggestions").as_array().size(), 3U);
  EXPECT_THAT(to_html(digest, {}), AllOf(Not(HasSubstr("<script>")), Not(HasSubstr("<img")),
                                         Not(HasSubstr("<i>")), HasSubstr("&lt;script&gt;")));
  EXPECT_THAT(to_markdown(digest, {}), Not(HasSubstr("<script>")));
}

TEST(Digest, HasNoWordOfBlame) {
  for (const std::string_view language : advice::kLanguages) {
    for (const auto& [key, text] : advice::catalogue(language).words) {
      if (key.starts_with("digest.") || key.starts_with("mail.")) {
        EXPECT_EQ(advice::tone_of(language, text), "") << key;
      }
    }
  }
}

}  // namespace
}  // namespace ceems::report
