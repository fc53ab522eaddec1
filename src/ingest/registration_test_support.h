#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ingest/manager/manager.h"
#include "ingest/updater/updater.h"

namespace ceems::ingest {

/// Where each manager or updater must be registered in addition to its spec. Paths are relative to
/// the repository.
struct Registration {
  std::string type;    ///< "ManagerSpec"
  std::string suffix;  ///< "manager": NAME_manager() is defined in folder/NAME.cc
  std::string folder;  ///< "src/ingest/manager"
  std::string page;    ///< "docs/api/resource-managers.md"
};

/// Returns the row of the table on the page, as the spec describes it.
inline std::string row_of(const ManagerSpec& spec) {
  std::string sections;
  for (const auto& [read, name] :
       {std::pair(spec.reads_cli, "`cli`"), std::pair(spec.reads_web, "`web`"),
        std::pair(!spec.extra_keys.empty(), "`extra_config`")}) {
    if (read) {
      sections += (sections.empty() ? "" : ", ") + std::string(name);
    }
  }
  return fmt::format("| `{0}` | {1} | {2} | {3} | [below](#{0}) |", spec.name, spec.units,
                     spec.source, sections);
}
inline std::string row_of(const UpdaterSpec& spec) {
  std::string sections = spec.needs_url ? "`web`" : "";
  if (!spec.extra_keys.empty()) {
    sections += std::string(sections.empty() ? "" : ", ") + "`extra_config`";
  }
  return fmt::format("| `{0}` | {1} | {2} | [below](#{0}) |", spec.name, spec.source, sections);
}

inline std::string text_of(const std::string& path) {
  const std::string whole = std::string(CEEMS_TEST_ROOT) + "/../" + path;
  std::ifstream file(whole);
  EXPECT_TRUE(file) << "cannot open " << whole;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Expects that the page has the row of the spec and a section "## NAME" that mentions every key of
/// extra_config.
template <typename Spec>
void expect_documented(const Registration& registration, const Spec& spec) {
  const std::string page = text_of(registration.page);
  const std::string row = row_of(spec);
  EXPECT_TRUE(page.contains("\n" + row + "\n"))
      << registration.page << ": the table lacks the row of '" << spec.name << "', which its "
      << registration.type << " makes:\n"
      << row;
  const std::size_t begin = page.find("\n## " + spec.name + "\n");
  ASSERT_NE(begin, std::string::npos)
      << registration.page << ": the section '## " << spec.name << "' is missing";
  const std::string section = page.substr(begin, page.find("\n## ", begin + 1) - begin);
  for (const std::string_view key : spec.extra_keys) {
    EXPECT_TRUE(section.contains(fmt::format("`{}`", key)) ||
                section.contains(fmt::format(" {}:", key)))
        << registration.page << ": the section '## " << spec.name
        << "' does not mention extra_config." << key;
  }
}

/// Returns the names of the specs that the sources define, whether or not they are listed in all.h.
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
