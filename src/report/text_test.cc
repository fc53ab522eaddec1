// The text form of handmade sheets, at widths where a line just fits.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "report/sheet.h"

namespace ceems::report {
namespace {

std::string text_of(const Sheet& sheet, std::size_t width) {
  return text_form(sheet, {.width = width});
}

std::string times(std::size_t count, const std::string& text) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    all += text;
  }
  return all;
}

TEST(TextForm, PutsARemarkBesideAHeadingWhereItFits) {
  Sheet sheet;
  sheet.title = "T";
  sheet.cost_title = std::string(30, 't');
  sheet.cost_remark = std::string(28, 'r');
  sheet.costs = {{.label = "Energy", .value = "1 kWh"}, {.label = "CO", .value = "2 g"}};
  const std::string costs = "  Energy  1 kWh\n  CO      2 g\n";
  EXPECT_EQ(text_of(sheet, 60),
            "T\n\n" + sheet.cost_title + "  " + sheet.cost_remark + "\n" + costs);
  EXPECT_EQ(text_of(sheet, 61),
            "T\n\n" + sheet.cost_title + "   " + sheet.cost_remark + "\n" + costs);
  sheet.cost_remark += "r";
  EXPECT_EQ(text_of(sheet, 60),
            "T\n\n" + sheet.cost_title + "\n  " + sheet.cost_remark + "\n" + costs);
  sheet.cost_remark.clear();
  EXPECT_EQ(text_of(sheet, 60), "T\n\n" + sheet.cost_title + "\n" + costs);
}

TEST(TextForm, DrawsBarsAsLongAsThereIsRoom) {
  Sheet sheet;
  sheet.title = "T";
  sheet.used_title = "Used";
  sheet.bars = {{.label = "CPU", .share = 0.5, .value = "50 %", .usual = "40 %"},
                {.label = "Memory", .share = 2.0, .value = "200 %", .usual = "100 to 120 %"},
                {.label = "GPU", .share = -1.0, .value = "0 %"},
                {.label = "Disk", .value = "not measured"}};
  // 60 columns less two margins, the label and a blank, brackets, 6 for the value, and the usual.
  const auto line = [](const std::string& begin, std::size_t full, std::size_t rest,
                       const std::string& end) {
    return "  " + begin + " [" + times(full, "█") + std::string(rest, ' ') + "]" + end + "\n";
  };
  EXPECT_EQ(text_of(sheet, 60), "T\n\nUsed\n" + line("CPU   ", 14, 14, "  50 %  40 %") +
                                    line("Memory", 28, 0, " 200 %  100 to 120 %") +
                                    line("GPU   ", 0, 28, "   0 %") + "  Disk   not measured\n");
  for (Bar& bar : sheet.bars) {
    bar.usual.clear();
  }
  EXPECT_EQ(text_of(sheet, 59), "T\n\nUsed\n" + line("CPU   ", 20, 20, "  50 %") +
                                    line("Memory", 40, 0, " 200 %") +
                                    line("GPU   ", 0, 40, "   0 %") + "  Disk   not measured\n");
}

TEST(TextForm, PutsARemarkOnABarBelowWhereItDoesNotFit) {
  Sheet sheet;
  sheet.title = "T";
  sheet.used_title = "Used";
  sheet.bars = {{.label = "CPU", .share = 1.0, .value = "100 %", .remark = std::string(40, 'r')}};
  const std::string bar = "  CPU [" + times(40, "█") + "] 100 %";
  EXPECT_EQ(text_of(sheet, 96), "T\n\nUsed\n" + bar + "  " + sheet.bars[0].remark + "\n");
  EXPECT_EQ(text_of(sheet, 95), "T\n\nUsed\n" + bar + "\n      " + sheet.bars[0].remark + "\n");
}

TEST(TextForm, AlignsNodesAndShortensLongNames) {
  Sheet sheet;
  sheet.title = "T";
  sheet.used_title = "Used";
  sheet.node_columns = {"Node", "CPU", "Note"};
  sheet.nodes = {{"n1", "100 %", ""}, {"node-2", "5 %", ""}};
  EXPECT_EQ(text_of(sheet, 60), "T\n\nUsed\n  Node    CPU\n  n1      100 %\n  node-2  5 %\n");
  sheet.nodes[1][2] = std::string(44, 'x');
  EXPECT_EQ(text_of(sheet, 61),
            "T\n\nUsed\n  Node    CPU    Note\n  n1      100 %\n  node-2  5 %    " +
                sheet.nodes[1][2] + "\n");
  EXPECT_EQ(text_of(sheet, 60),
            "T\n\nUsed\n  Node    CPU    Note\n  n1      100 %\n  node-2  5 %\n    " +
                sheet.nodes[1][2] + "\n");
  // 60 columns less the margins and the other column.
  sheet.nodes = {{std::string(49, 'n'), "100 %", ""}};
  EXPECT_EQ(text_of(sheet, 60), "T\n\nUsed\n  Node" + std::string(47, ' ') + "CPU\n  " +
                                    sheet.nodes[0][0] + "  100 %\n");
  sheet.nodes[0][0] += "n";
  EXPECT_EQ(text_of(sheet, 60), "T\n\nUsed\n  Node" + std::string(47, ' ') + "CPU\n  " +
                                    std::string(48, 'n') + "…  100 %\n");
  // At least 8 columns are left of a name.
  sheet.node_columns = {"Node", std::string(60, 'c'), "Note"};
  EXPECT_EQ(text_of(sheet, 60),
            "T\n\nUsed\n  Node      " + std::string(60, 'c') + "\n  nnnnnnn…  100 %\n");
}

TEST(TextForm, NumbersWhatItSuggests) {
  Sheet sheet;
  sheet.title = "T";
  sheet.about = {"relax", "ada"};
  sheet.when = {"today", "1 h"};
  sheet.partly = "Only a part is known.";
  sheet.advice_title = "Advice";
  sheet.nothing = "Nothing.";
  sheet.more = "2 more";
  sheet.help = "Ask us.";
  sheet.suggestions = {
      {.text = "Ask for less.", .confidence = "sure", .saves = "1 kWh"},
      {.text = "Stop.", .saves = "2 kWh"},
      {.text = "Go.", .confidence = "likely"},
      {.text = "Wait.", .lines = {{.type = "#SBATCH --mem=1G", .was = "was --mem=2G"}}}};
  const std::string begin =
      "T · relax · ada\ntoday · 1 h\n\nOnly a part is known.\n\nAdvice\n  Nothing.\n"
      "  1. Ask for less. (sure; 1 kWh)\n  2. Stop. (2 kWh)\n  3. Go. (likely)\n  4. Wait.\n";
  const std::string end = "  2 more\n\nAsk us.\n";
  EXPECT_EQ(text_of(sheet, 60),
            begin + "       #SBATCH --mem=1G              (was --mem=2G)\n" + end);
  sheet.suggestions[3].lines[0].was = std::string(21, 'w');
  EXPECT_EQ(text_of(sheet, 60),
            begin + "       #SBATCH --mem=1G              (" + std::string(21, 'w') + ")\n" + end);
  sheet.suggestions[3].lines[0].was += "w";
  EXPECT_EQ(text_of(sheet, 60),
            begin + "       #SBATCH --mem=1G\n         (" + std::string(22, 'w') + ")\n" + end);
}

TEST(TextForm, CountsColumnsOfWhatAsciiShows) {
  Sheet sheet;
  sheet.title = "größe";
  sheet.cost_title = "Kosten";
  sheet.costs = {{.label = "ö", .value = "é…"}, {.label = "abc", .value = "x"}};
  EXPECT_EQ(text_form(sheet, {.width = 60, .ascii = true}),
            "groesse\n\nKosten\n  oe   e...\n  abc  x\n");
}

}  // namespace
}  // namespace ceems::report
