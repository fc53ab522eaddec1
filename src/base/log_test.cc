#include "base/log.h"

#include <gtest/gtest.h>

namespace ceems::log {
namespace {

TEST(Log, WritesLogfmtAndQuotesWhatNeedsIt) {
  EXPECT_EQ(
      render(Format::kLogfmt, "2026-01-02T03:04:05.006Z", Level::kWarn, "a.cc:7", "source vanished",
             {{"collector", "rapl"}, {"path", "a b"}, {"n", 3}, {"empty", ""}}),
      "time=2026-01-02T03:04:05.006Z level=WARN source=a.cc:7 msg=\"source vanished\" "
      "collector=rapl path=\"a b\" n=3 empty=\"\"");
}

TEST(Log, WritesJson) {
  EXPECT_EQ(render(Format::kJson, "t", Level::kInfo, "a.cc:7", "say \"hi\"\n", {{"n", 1.5}}),
            R"({"time":"t","level":"INFO","source":"a.cc:7","msg":"say \"hi\"\n","n":"1.5"})");
}

TEST(Log, KeepsHostileValuesOnOneLine) {
  EXPECT_EQ(render(Format::kLogfmt, "t", Level::kInfo, "s", "m", {{"job", "a\nlevel=ERROR\x01"}}),
            "time=t level=INFO source=s msg=m job=\"a\\nlevel=ERROR\\x01\"");
  EXPECT_EQ(render(Format::kLogfmt, "t", Level::kInfo, "s", "m", {{"job", "\xFF<\x7F"}}),
            "time=t level=INFO source=s msg=m job=\"\\\\xff<\\\\x7f\"");
  EXPECT_EQ(render(Format::kJson, "t", Level::kInfo, "s", "m", {{"job", "\xFF<\x7F"}}),
            R"({"time":"t","level":"INFO","source":"s","msg":"m","job":"\\xff<\\x7f"})");
  EXPECT_EQ(render(Format::kJson, "t", Level::kInfo, "s", "m", {{"job", "<\x7F\x01\u00e9"}}),
            "{\"time\":\"t\",\"level\":\"INFO\",\"source\":\"s\",\"msg\":\"m\","
            "\"job\":\"<\\u007f\\u0001\u00e9\"}");
}

TEST(Log, NamesLevelsAndFormats) {
  EXPECT_EQ(parse_level("WARN").value(), Level::kWarn);
  EXPECT_EQ(parse_level("loud").error().message,
            "expected a log level (debug, info, warn, error), got 'loud'");
  EXPECT_FALSE(parse_format("JSON"));
}

}  // namespace
}  // namespace ceems::log
