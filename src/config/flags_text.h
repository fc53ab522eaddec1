#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "config/flags.h"

namespace ceems::config {

// Shared by flags.cc and flags_text.cc only.

enum class FlagKind { kBool, kString, kInt, kList };

struct FlagEntry {
  std::string name;
  FlagKind kind = FlagKind::kBool;
  FlagInfo info;
  std::vector<std::string> choices;
  std::vector<std::string> defaults;
  bool* bool_target = nullptr;
  std::string* string_target = nullptr;
  long* int_target = nullptr;
  std::vector<std::string>* list_target = nullptr;
};

struct HelpSource {
  std::string_view program;
  std::string_view description;
  std::string_view positional;
  std::string_view positional_help;
  const std::deque<FlagEntry>& entries;
};

/// Columns of help: $COLUMNS, else the terminal's, else 80.
std::size_t help_width();
/// The text of --help: usage, description, flags in two columns, wrapped.
std::string help_text(const HelpSource& source, std::size_t width);
/// A man page in roff, section 8.
std::string man_page(const HelpSource& source);
std::string completion_bash(const HelpSource& source);
std::string completion_zsh(const HelpSource& source);

}  // namespace ceems::config
