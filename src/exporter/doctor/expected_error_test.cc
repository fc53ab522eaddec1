#include <vector>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "exporter/doctor/validation.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

constexpr std::string_view kTable =
    "# note\n"
    "class;a;b;c;d\n"
    "compute;1;2;3;4\n"
    "single thread;5;6;7;8\n"
    "10 s;9;10;11;12\n"
    "0.35 s;13;14;15;16\n"
    "long jobs;1.5;2.5;3.5;4.5\n";

std::string text_of(std::string_view table, MeterSet meters) {
  const auto text = expected_error(table, meters);
  return text ? *text : text.error().message;
}

TEST(ExpectedError, NamesTheClassesOfOneSetOfMeters) {
  EXPECT_EQ(text_of(kTable, MeterSet::kPackagesAndWall),
            "long jobs 1.5 % (compute 1, single thread 5), jobs of 10 s 9, 0.35 s 13");
  EXPECT_EQ(text_of(kTable, MeterSet::kPackages),
            "long jobs 4.5 % (compute 4, single thread 8), jobs of 10 s 12, 0.35 s 16");
}

TEST(ExpectedError, RefusesOtherTables) {
  const auto error = [](const std::string& row) {
    return text_of("class;a;b;c;d\n" + row + "\n", MeterSet::kBmc);
  };
  const std::string expected = "table of errors, line 2: expected a class and 4 numbers";
  EXPECT_EQ(error("compute;1;2;3"), expected);
  EXPECT_EQ(error("compute;1;2;x;4"), expected);
  EXPECT_EQ(error("compute;1;2;-3;4"), expected);
  EXPECT_EQ(error("compute;1;2;3;4"),
            "table of errors: expected long jobs, their classes and others");
  EXPECT_EQ(text_of("", MeterSet::kBmc),
            "table of errors: expected long jobs, their classes and others");
}

/// The rows of the table, of which `separator` stands between the fields.
std::vector<std::vector<std::string>> rows_of(std::string_view text, char separator) {
  std::vector<std::vector<std::string>> rows;
  while (!text.empty()) {
    std::string_view line = trim(take_until(text, '\n'));
    if (line.empty() || line.starts_with('#') || line.starts_with("|---")) {
      continue;
    }
    if (separator == '|') {
      line.remove_prefix(1);
      line.remove_suffix(1);
    }
    std::vector<std::string>& row = rows.emplace_back();
    for (const std::string_view field : split(line, separator)) {
      row.emplace_back(trim(field));
    }
  }
  return rows;
}

TEST(ExpectedError, IsThatOfTheDocumentation) {
  const auto page = host::read_file(CEEMS_TEST_ROOT "/../docs/energy.md").value();
  const std::string begin = "<!-- begin errors -->";
  const std::size_t from = page.find(begin);
  const std::size_t to = page.find("<!-- end errors -->");
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  const std::string_view shown =
      std::string_view(page).substr(from + begin.size(), to - from - begin.size());
  EXPECT_EQ(rows_of(shown, '|'), rows_of(kEnergyErrorsCsv, ';'));
  EXPECT_GT(rows_of(kEnergyErrorsCsv, ';').size(), 4U);
}

}  // namespace
}  // namespace ceems::exporter
