#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace ceems::ingest {

/// What all kinds of managers have to have besides their spec, or all kinds of updaters. Paths are
/// relative to the repository.
struct Registration {
  std::string type;    ///< "ManagerSpec"
  std::string suffix;  ///< "manager": NAME_manager() is defined in folder/NAME.cc
  std::string folder;  ///< "src/ingest/manager"
  std::string page;    ///< "docs/api/resource-managers.md"
};

inline std::string text_of(const std::string& path) {
  const std::string whole = std::string(CEEMS_TEST_ROOT) + "/../" + path;
  std::ifstream file(whole);
  EXPECT_TRUE(file) << "cannot open " << whole;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The row stands on the page, and the section ## NAME there names every key of extra_config.
inline void expect_documented(const Registration& registration,
                              const std::string& name,
                              const std::string& row,
                              const std::vector<std::string_view>& extra_keys) {
  const std::string page = text_of(registration.page);
  EXPECT_TRUE(page.contains("\n" + row + "\n"))
      << registration.page << ": the table needs this row, as the " << registration.type << " of '"
      << name << "' says:\n"
      << row;
  const std::size_t begin = page.find("\n## " + name + "\n");
  ASSERT_NE(begin, std::string::npos)
      << registration.page << ": there is no section '## " << name << "'";
  const std::string section = page.substr(begin, page.find("\n## ", begin + 1) - begin);
  for (const std::string_view key : extra_keys) {
    EXPECT_TRUE(section.contains(fmt::format("`{}`", key)) ||
                section.contains(fmt::format(" {}:", key)))
        << registration.page << ": section '## " << name << "' does not mention extra_config."
        << key;
  }
}

/// There is a test NAME_test.cc beside the source, and the build knows it.
inline void expect_tested(const Registration& registration, const std::string& name) {
  const std::string folder = registration.folder.substr(registration.folder.rfind('/') + 1);
  const std::string build = text_of("src/ingest/CMakeLists.txt");
  EXPECT_TRUE(build.contains(fmt::format("{}/{}_test.cc", folder, name)) ||
              build.contains(fmt::format("{}/{}/{}_test.cc", folder, name, name)))
      << "src/ingest/CMakeLists.txt lists no test " << folder << "/" << name << "_test.cc";
}

/// The names of the specs that the sources define, listed in all.cc or not.
inline std::vector<std::string> defined_names(const Registration& registration) {
  const std::string root = std::string(CEEMS_TEST_ROOT) + "/../";
  const std::string begin = registration.type + " ";
  const std::string end = "_" + registration.suffix + "() {";
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(root + registration.folder)) {
    if (entry.path().extension() != ".cc") {
      continue;
    }
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(begin) && line.ends_with(end)) {
        names.push_back(line.substr(begin.size(), line.size() - begin.size() - end.size()));
      }
    }
  }
  return names;
}

}  // namespace ceems::ingest
