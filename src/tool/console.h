#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ceems::tool {

/// Where a command reads and writes; tests replace it. Not thread-safe.
class Console {
 public:
  virtual ~Console() = default;
  /// Writes to stdout, for programs that read the output.
  virtual void print(std::string_view text) = 0;
  /// Writes a line or several to stderr, for people. Characters that a terminal would obey are
  /// replaced.
  virtual void say(std::string_view line) = 0;
  /// The next line of stdin without its end; nothing at the end of the input.
  virtual std::optional<std::string> read_line() = 0;
};

/// The streams of this process.
class StandardConsole final : public Console {
 public:
  void print(std::string_view text) override;
  void say(std::string_view line) override;
  std::optional<std::string> read_line() override;
};

}  // namespace ceems::tool
