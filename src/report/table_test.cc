#include "report/table.h"

#include <zlib.h>

#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Table usage() {
  return {.name = "Usage by day",
          .columns = {"day", "project", "energy (kWh)"},
          .rows = {{Date{2026, 11, 1}, "fluids", 12.5},
                   {Date{2026, 11, 2}, "=cmd|' /C calc'!A0", {}},
                   {Date{2026, 2, 29}, "a,\"b\" <c> & \x01", 1e-7}}};
}

std::uint32_t number_at(const std::string& zip, std::size_t at, int bytes) {
  std::uint32_t number = 0;
  for (int i = bytes - 1; i >= 0; --i) {
    number = number << 8U | static_cast<unsigned char>(zip.at(at + static_cast<std::size_t>(i)));
  }
  return number;
}

/// The content of a file in a ZIP archive, by its central directory; empty if it is not there.
std::string file_in(const std::string& zip, const std::string& name) {
  std::size_t at = number_at(zip, zip.rfind("PK\5\6") + 16, 4);
  while (zip.compare(at, 4, "PK\1\2") == 0) {
    const std::size_t length = number_at(zip, at + 28, 2);
    if (zip.substr(at + 46, length) == name) {
      const std::size_t begin = number_at(zip, at + 42, 4);
      const std::size_t data =
          begin + 30 + number_at(zip, begin + 26, 2) + number_at(zip, begin + 28, 2);
      std::string packed = zip.substr(data, number_at(zip, at + 20, 4));
      std::string plain(number_at(zip, at + 24, 4), '\0');
      z_stream stream{};
      ::inflateInit2(&stream, -MAX_WBITS);
      stream.next_in = reinterpret_cast<Bytef*>(packed.data());
      stream.avail_in = static_cast<uInt>(packed.size());
      stream.next_out = reinterpret_cast<Bytef*>(plain.data());
      stream.avail_out = static_cast<uInt>(plain.size());
      EXPECT_EQ(::inflate(&stream, Z_FINISH), Z_STREAM_END) << name;
      ::inflateEnd(&stream);
      return plain;
    }
    at += 46 + length + number_at(zip, at + 30, 2) + number_at(zip, at + 32, 2);
  }
  return "";
}

TEST(Table, AsCsv) {
  EXPECT_EQ(to_csv(usage()),
            "day,project,energy (kWh)\r\n"
            "2026-11-01,fluids,12.5\r\n"
            "2026-11-02,'=cmd|' /C calc'!A0,\r\n"
            "2026-02-29,\"a,\"\"b\"\" <c> & \x01\",1e-07\r\n");
}

TEST(Table, AsWorkbook) {
  const auto workbook = to_xlsx(usage(), {{"Energy", "=1+1"}, {"Empty cells", "Not known."}});
  ASSERT_TRUE(workbook) << workbook.error().message;
  const std::string book = file_in(*workbook, "xl/workbook.xml");
  EXPECT_THAT(book, HasSubstr(R"(name="Usage by day")"));
  EXPECT_THAT(book, HasSubstr(R"(name="Notes")"));
  const std::string sheet = file_in(*workbook, "xl/worksheets/sheet1.xml");
  EXPECT_THAT(sheet, HasSubstr("<v>12.5</v>"));
  EXPECT_THAT(sheet, HasSubstr("<v>46327</v>"));       // 2026-11-01
  EXPECT_THAT(sheet, Not(HasSubstr("r=\"C3\"")));      // not known
  EXPECT_THAT(sheet, HasSubstr(R"(state="frozen")"));  // the head
  EXPECT_THAT(sheet, HasSubstr(R"(ySplit="1")"));
  EXPECT_THAT(sheet, Not(HasSubstr("xSplit")));
  const std::string notes = file_in(*workbook, "xl/worksheets/sheet2.xml");
  for (const std::string& xml : {sheet, notes}) {
    EXPECT_THAT(xml, Not(HasSubstr("<f>")));  // no formula
  }
  const std::string texts = file_in(*workbook, "xl/sharedStrings.xml");
  EXPECT_THAT(texts, HasSubstr("=cmd|' /C calc'!A0"));
  EXPECT_THAT(texts, HasSubstr("a,\"b\" &lt;c&gt; &amp; _x0001_"));
  EXPECT_THAT(texts, HasSubstr("Not known."));
}

TEST(Table, WithoutRows) {
  const auto workbook = to_xlsx({.name = "Usage", .columns = {"day"}}, {});
  ASSERT_TRUE(workbook) << workbook.error().message;
  EXPECT_THAT(file_in(*workbook, "xl/sharedStrings.xml"), HasSubstr("<t>day</t>"));
  EXPECT_EQ(to_csv({.name = "Usage", .columns = {"day"}}), "day\r\n");
}

TEST(Table, OfWhichANameIsTooLongIsAnError) {
  const auto workbook = to_xlsx({.name = std::string(32, 'x'), .columns = {"day"}}, {});
  ASSERT_FALSE(workbook);
  EXPECT_THAT(workbook.error().message, HasSubstr("cannot write a workbook"));
}

TEST(Table, LongTextsAreCut) {
  const auto workbook =
      to_xlsx({.name = "Usage", .columns = {"a"}, .rows = {{std::string(100'000, 'x')}}}, {});
  ASSERT_TRUE(workbook) << workbook.error().message;
  EXPECT_THAT(file_in(*workbook, "xl/sharedStrings.xml"), HasSubstr(std::string(8000, 'x')));
}

TEST(Table, OfSeveralThreads) {
  std::vector<std::string> books(4);
  std::vector<std::thread> threads;
  for (std::string& book : books) {
    threads.emplace_back([&book] { book = to_xlsx(usage(), {}).value_or(""); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::string& book : books) {
    EXPECT_EQ(file_in(book, "xl/worksheets/sheet1.xml"),
              file_in(books.front(), "xl/worksheets/sheet1.xml"));
  }
  EXPECT_THAT(books.front(), HasSubstr("PK"));
}

}  // namespace
}  // namespace ceems::report
