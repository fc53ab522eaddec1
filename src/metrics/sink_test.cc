#include "metrics/sink.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "metrics/counting_new_test_support.h"

namespace ceems::metrics {
namespace {

using std::string_view_literals::operator""sv;

const Desc kUnits{"ceems_units", "Units.", Type::kGauge, {"manager", "hostname"}};
const Desc kJoules{"ceems_joules_total", "Energy.", Type::kCounter, {"uuid"}};
const Desc kUp{"ceems_up", "Always one.", Type::kGauge, {}};

std::string page(Sink& sink, Exposition exposition = Exposition::kText) {
  std::string text;
  sink.render(exposition, text);
  return text;
}

TEST(Sink, WritesFamiliesByNameAndSeriesByLabelValues) {
  Sink sink;
  sink.add(kUp, 1);
  sink.add(kUnits, 3, {"slurm", "b"});
  sink.add(kUnits, 2, {"slurm", ""});
  sink.add(kUnits, 1, {"cgroup", "b"});
  EXPECT_EQ(page(sink),
            "# HELP ceems_units Units.\n"
            "# TYPE ceems_units gauge\n"
            "ceems_units{hostname=\"\",manager=\"slurm\"} 2\n"
            "ceems_units{hostname=\"b\",manager=\"cgroup\"} 1\n"
            "ceems_units{hostname=\"b\",manager=\"slurm\"} 3\n"
            "# HELP ceems_up Always one.\n"
            "# TYPE ceems_up gauge\n"
            "ceems_up 1\n");
  EXPECT_EQ(sink.samples(), 4U);
  EXPECT_EQ(sink.dropped(), 0U);
}

TEST(Sink, ComparesValuesNotTheirQuotedForm) {
  Sink sink;
  sink.add(kJoules, 2, {"a!"});
  sink.add(kJoules, 3, {"ab"});
  sink.add(kJoules, 1, {"a"});
  EXPECT_EQ(page(sink),
            "# HELP ceems_joules_total Energy.\n"
            "# TYPE ceems_joules_total counter\n"
            "ceems_joules_total{uuid=\"a\"} 1\n"
            "ceems_joules_total{uuid=\"a!\"} 2\n"
            "ceems_joules_total{uuid=\"ab\"} 3\n");
}

TEST(Sink, EscapesLabelValuesAndHelp) {
  Sink sink;
  const Desc desc("ceems_x", "A \\ and a\nline \"end\".", Type::kGauge, {"v"});
  sink.add(desc, 1, {"back\\slash \"quote\"\nline"});
  EXPECT_EQ(page(sink),
            "# HELP ceems_x A \\\\ and a\\nline \"end\".\n"
            "# TYPE ceems_x gauge\n"
            "ceems_x{v=\"back\\\\slash \\\"quote\\\"\\nline\"} 1\n");
  EXPECT_EQ(page(sink, Exposition::kOpenMetrics),
            "# HELP ceems_x A \\\\ and a\\nline \\\"end\\\".\n"
            "# TYPE ceems_x gauge\n"
            "ceems_x{v=\"back\\\\slash \\\"quote\\\"\\nline\"} 1\n"
            "# EOF\n");
}

TEST(Sink, ReplacesBytesThatAreNotText) {
  Sink sink;
  sink.add(kJoules, 1, {"\xC3\xA9|\xFF|\xED\xA0\x80|a\0b|\xF0\x9F\x98\x80|\xE2\x82"sv});
  EXPECT_EQ(page(sink),
            "# HELP ceems_joules_total Energy.\n"
            "# TYPE ceems_joules_total counter\n"
            "ceems_joules_total{uuid=\"\xC3\xA9|\xEF\xBF\xBD|\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD|a"
            "\xEF\xBF\xBD"
            "b|\xF0\x9F\x98\x80|\xEF\xBF\xBD\xEF\xBF\xBD\"} 1\n");
}

TEST(Sink, KeepsTheFirstOfTwoEqualSeriesAndCountsTheOther) {
  Sink sink;
  sink.add(kJoules, 5, {"b"});
  sink.add(kJoules, 1, {"a"});
  sink.add(kJoules, 2, {"a"});
  EXPECT_EQ(sink.dropped(), 1U);
  EXPECT_EQ(sink.samples(), 2U);
  sink.add(kJoules, 3, {"a"});
  EXPECT_EQ(sink.dropped(), 2U);
  EXPECT_NE(page(sink).find("ceems_joules_total{uuid=\"a\"} 1\n"), std::string::npos);
  sink.clear();
  EXPECT_EQ(sink.dropped(), 0U);
  EXPECT_EQ(sink.samples(), 0U);
  EXPECT_EQ(page(sink), "");
}

TEST(Sink, DropsASeriesThatContradictsItsFamily) {
  const Desc other_type("ceems_up", "Always one.", Type::kCounter, {});
  const Desc other_help("ceems_up", "Sometimes one.", Type::kGauge, {});
  Sink sink;
  sink.add(kUp, 1);
  sink.add(other_type, 2);
  sink.add(other_help, 3);
  EXPECT_EQ(sink.dropped(), 2U);
  EXPECT_EQ(page(sink), "# HELP ceems_up Always one.\n# TYPE ceems_up gauge\nceems_up 1\n");
  sink.clear();
  sink.add(other_type, 2);
  EXPECT_EQ(page(sink), "# HELP ceems_up Always one.\n# TYPE ceems_up counter\nceems_up 2\n");
}

TEST(Sink, AcceptsSeveralSetsOfLabelsInOneFamily) {
  const Desc labelled("ceems_up", "Always one.", Type::kGauge, {"x"});
  const Desc other("ceems_up", "Always one.", Type::kGauge, {"y"});
  Sink sink;
  sink.add(other, 1, {"a"});
  sink.add(labelled, 2, {"a"});
  sink.add(kUp, 3);
  sink.add(labelled, 4, {"a"});
  EXPECT_EQ(sink.dropped(), 1U);
  EXPECT_EQ(page(sink),
            "# HELP ceems_up Always one.\n"
            "# TYPE ceems_up gauge\n"
            "ceems_up 3\n"
            "ceems_up{y=\"a\"} 1\n"
            "ceems_up{x=\"a\"} 2\n");
}

TEST(Sink, NamesOpenMetricsCountersWithoutTheirSuffix) {
  const Desc odd("ceems_read_total_bytes", "Bytes.", Type::kCounter, {});
  Sink sink;
  sink.add(kJoules, 1.5, {"7"});
  sink.add(odd, 2);
  EXPECT_EQ(page(sink, Exposition::kOpenMetrics),
            "# HELP ceems_joules Energy.\n"
            "# TYPE ceems_joules counter\n"
            "ceems_joules_total{uuid=\"7\"} 1.5\n"
            "# HELP ceems_read_total_bytes Bytes.\n"
            "# TYPE ceems_read_total_bytes unknown\n"
            "ceems_read_total_bytes 2\n"
            "# EOF\n");
}

TEST(Sink, MarksACounterUnknownIfItsShortNameIsTaken) {
  const Desc gauge("ceems_joules", "Gauge.", Type::kGauge, {});
  Sink sink;
  sink.add(kJoules, 1, {"7"});
  sink.add(gauge, 2);
  EXPECT_EQ(page(sink, Exposition::kOpenMetrics),
            "# HELP ceems_joules Gauge.\n"
            "# TYPE ceems_joules gauge\n"
            "ceems_joules 2\n"
            "# HELP ceems_joules_total Energy.\n"
            "# TYPE ceems_joules_total unknown\n"
            "ceems_joules_total{uuid=\"7\"} 1\n"
            "# EOF\n");
}

TEST(Sink, DoesNotAllocateInTheSteadyState) {
  Sink sink;
  std::string text;
  std::vector<std::string> names;
  names.reserve(500);
  for (int i = 0; i < 500; ++i) {
    names.push_back("job-with-a-long-name-" + std::to_string((i * 37) % 500) +
                    (i % 2 == 0 ? "\xFF" : ""));
  }
  const auto scrape = [&] {
    sink.clear();
    text.clear();
    for (const auto& name : names) {
      sink.add(kJoules, 1.25e7 / static_cast<double>(name.size()), {name});
      sink.add(kUnits, 3, {name, "host"});
    }
    sink.render(Exposition::kText, text);
    sink.render(Exposition::kOpenMetrics, text);
  };
  scrape();
  const std::string first = text;
  const std::size_t before = allocation_count();
  scrape();
  EXPECT_EQ(allocation_count(), before);
  EXPECT_EQ(text, first);
}

TEST(Sink, ForgetsUnusedFamiliesWithNamesFromInput) {
  Sink sink;
  for (int i = 0; i < 300; ++i) {
    sink.add(Desc("ceems_zone_" + std::to_string(i), "Zone.", Type::kGauge, {}), 1);
  }
  sink.clear();
  sink.add(kUp, 1);
  sink.clear();
  sink.add(kUp, 2);
  EXPECT_EQ(page(sink), "# HELP ceems_up Always one.\n# TYPE ceems_up gauge\nceems_up 2\n");
}

TEST(SinkDeathTest, RequiresOneValuePerLabel) {
  Sink sink;
  EXPECT_DEATH(sink.add(kUnits, 1, {"slurm"}), "label_values");
}

}  // namespace
}  // namespace ceems::metrics
