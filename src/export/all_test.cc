#include "export/all.h"

#include <set>

#include <gtest/gtest.h>

#include "host/read_file.h"

namespace ceems::exporting {
namespace {

TEST(ExportFormats, HaveARowInTheDocumentation) {
  const auto text = host::read_file(CEEMS_TEST_ROOT "/../docs/export.md");
  ASSERT_TRUE(text) << text.error().message;
  std::set<std::string_view> names;
  for (const FormatSpec& format : formats()) {
    EXPECT_TRUE(names.insert(format.name).second) << format.name;
    EXPECT_NE(text->find("| `" + std::string(format.name) + "` |"), std::string::npos)
        << format.name;
    EXPECT_FALSE(format.help.ends_with('.'));
  }
}

}  // namespace
}  // namespace ceems::exporting
