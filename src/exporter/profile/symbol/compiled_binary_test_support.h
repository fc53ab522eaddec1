#pragma once

// Binaries that tests compile, because their properties must be known.

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "os/command.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::profile {

/// The path of a tool; nothing if it is not installed.
inline std::optional<std::string> program(std::string_view name) {
  auto found = os::find_program(name, "/usr/bin:/usr/local/go/bin");
  return found ? std::optional(*found) : std::nullopt;
}

/// Runs a tool on files; false, with a failed expectation, if it fails.
inline bool run_tool(const testing::TempDir& directory,
                     const std::string& tool,
                     const std::vector<std::string>& arguments) {
  const auto done = os::real_runner().run({.path = tool,
                                           .arguments = arguments,
                                           .environment = {{"PATH", "/usr/bin:/bin"},
                                                           {"HOME", directory.path()},
                                                           {"GOCACHE", directory.path() / "cache"},
                                                           {"GO111MODULE", "off"}},
                                           .timeout = std::chrono::minutes(4)});
  EXPECT_TRUE(done && done->exit_status == 0) << (done ? done->error_text : done.error().message);
  return done && done->exit_status == 0;
}

/// Compiles `source` to DIRECTORY/program; an empty path if the compiler is missing or fails.
inline std::string compiled(const testing::TempDir& directory,
                            const std::string& compiler,
                            const std::string& file,
                            std::string_view source,
                            std::vector<std::string> options) {
  const auto path = program(compiler);
  const std::string out = directory.path() / "program";
  const std::string input = directory.write(file, source);
  options.insert(options.end(), {"-o", out, input});
  return path && run_tool(directory, *path, options) ? out : std::string{};
}

inline std::string compiled_go(const testing::TempDir& directory,
                               std::string_view source,
                               const std::string& linker_options) {
  const auto go = program("go");
  const std::string out = directory.path() / "program";
  const std::string input = directory.write("main.go", source);
  return go && run_tool(directory, *go, {"build", "-ldflags=" + linker_options, "-o", out, input})
             ? out
             : std::string{};
}

}  // namespace ceems::exporter::profile
