#include "statement/document.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::statement {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Document sample() {
  Document document{.kind = "ghg",
                    .title = "Greenhouse gas inventory",
                    .site = "=<b>Centre</b>|",
                    .period = "2026",
                    .from = "2026-01-01T00:00:00+0000",
                    .to = "2027-01-01T00:00:00+0000",
                    .written = "2027-01-02T00:00:00+0000",
                    .by = "ceems_tool 1"};
  document.add({.id = "energy",
                .section = "Energy",
                .label = "All energy",
                .value = 1234567.8912345678,
                .unit = "kWh",
                .how = How::kMeasured,
                .note = "of the meter",
                .formula = "sum(days.kwh)",
                .coverage = 1.0 / 3});
  document.add({.id = "water",
                .section = "Water",
                .label = "Water",
                .unit = "m³",
                .how = How::kMeasured,
                .note = "no meter",
                .formula = "sum(days.water)"});
  document.add_table({.name = "days",
                      .columns = {"day", "kwh"},
                      .rows = {{"2026-01-01", 1234567.8912345678}, {"2026-01-02", {}}}},
                     "SELECT");
  return document;
}

TEST(Statement, HasTheSameNumbersInAllFormats) {
  const Document document = sample();
  for (const std::string& text :
       {to_markdown(document), to_csv(document), to_json(document), to_html(document)}) {
    EXPECT_THAT(text, HasSubstr("1234567.89123"));
    EXPECT_THAT(text, Not(HasSubstr("1234567.891234")));
    EXPECT_THAT(text, HasSubstr("0.333333333333"));
    EXPECT_THAT(text, Not(HasSubstr("0.3333333333333")));
    EXPECT_THAT(text, HasSubstr("missing"));
    EXPECT_THAT(text, HasSubstr("no meter"));
    EXPECT_THAT(text, HasSubstr("days.kwh"));
    EXPECT_THAT(text, Not(HasSubstr("days.water")));  // nothing to compute
  }
  const auto workbook = to_xlsx(document);
  ASSERT_TRUE(workbook) << workbook.error().message;
  EXPECT_TRUE(workbook->starts_with("PK"));
}

TEST(Statement, TextsAreNoMarkup) {
  const Document document = sample();
  EXPECT_THAT(to_html(document), HasSubstr("=&lt;b&gt;Centre&lt;/b&gt;|"));
  EXPECT_THAT(to_html(document), Not(HasSubstr("<b>")));
  EXPECT_THAT(to_markdown(document), Not(HasSubstr("<b>")));
  EXPECT_THAT(to_csv(document), HasSubstr("Site,'=<b>Centre</b>|"));
}

TEST(Statement, HtmlTablesHaveHeadings) {
  const std::string html = to_html(sample());
  EXPECT_THAT(html, HasSubstr("<html lang=\"en\">"));
  EXPECT_THAT(html, HasSubstr("<caption>Energy</caption>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"col\">value</th>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">All energy</th>"));
}

TEST(Statement, SourcesHaveHashes) {
  const Document document = sample();
  ASSERT_EQ(document.sources.size(), 1U);
  EXPECT_EQ(document.sources[0].what, "table days");
  // printf 'day,kwh\r\n2026-01-01,1234567.89123\r\n2026-01-02,\r\n' | sha256sum
  EXPECT_EQ(document.sources[0].sha256,
            "5f93a94f30303e1485e5056fc3c7845504d37a0019df4cd25e4c840d04fc4688");
}

TEST(Statement, NumbersAreRoundedOnce) {
  EXPECT_EQ(rounded(0.1 + 0.2), 0.3);
  EXPECT_EQ(rounded(1e308), 1e308);
  EXPECT_EQ(rounded(-123456789.0123456), -123456789.012);
  EXPECT_EQ(rounded(0.0 / 1.0), 0);
  EXPECT_EQ(number_text(rounded(2.0 / 3)), "0.666666666667");
  Document document;
  document.add(
      {.id = "x", .value = std::numeric_limits<double>::quiet_NaN(), .how = How::kMeasured});
  EXPECT_FALSE(document.lines[0].value);  // missing, and not 0
  EXPECT_EQ(document.lines[0].how, How::kMissing);
  EXPECT_EQ(find_format("xlsx"), Format::kXlsx);
  EXPECT_EQ(find_format("pdf"), std::nullopt);
}

}  // namespace
}  // namespace ceems::statement
