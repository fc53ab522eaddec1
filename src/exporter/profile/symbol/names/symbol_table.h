#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/profile/symbol/names/file_window.h"

namespace ceems::exporter::profile {

/// The functions of one binary by address, in little memory. Immutable, so safe for concurrent use.
class SymbolTable {
 public:
  /// The name of the function at an offset from the binary's lowest PT_LOAD address, as the binary
  /// spells it (mangled); nothing between functions.
  [[nodiscard]] std::optional<std::string_view> find(std::uint32_t pc) const;

  [[nodiscard]] std::size_t size() const { return symbols_.size(); }
  /// How many functions were left out, because there are too many or their names are too long.
  [[nodiscard]] std::size_t dropped() const { return dropped_; }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  friend class SymbolTableBuilder;
  struct Symbol {
    std::uint32_t start = 0;
    std::uint32_t size = 0;  ///< 0: up to the next one
    std::uint32_t name = 0;  ///< offset in names_
  };
  [[nodiscard]] bool covers(std::size_t index, std::uint32_t pc) const;

  std::vector<Symbol> symbols_;  ///< by start, each start once
  std::string names_;            ///< with a NUL behind each
  std::size_t dropped_ = 0;
};

struct SymbolLimits {
  std::size_t symbols = 500'000;
  std::size_t name_bytes = 16U << 20U;
};

/// Collects functions from several sources. The first source that names an address wins.
class SymbolTableBuilder {
 public:
  explicit SymbolTableBuilder(const SymbolLimits& limits = {}) : limits_(limits) {}

  struct Function {
    std::uint32_t start = 0;
    std::uint32_t size = 0;
    std::uint64_t name = 0;  ///< offset in the file's table of names
    bool is_local = false;   ///< other names of the same function are better
  };
  /// Adds the functions of one source, reading their names from `names`.
  void add(std::vector<Function> functions, FileWindow& names);
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  /// How many functions a source may add.
  [[nodiscard]] std::size_t room() const { return limits_.symbols - entries_.size(); }
  void drop(std::size_t count) { dropped_ += count; }
  SymbolTable finish();

 private:
  struct Entry {
    std::uint32_t start = 0;
    std::uint32_t size = 0;
    std::uint32_t name = 0;
    std::uint16_t length = 0;
    std::uint16_t rank = 0;  ///< the lowest is the best
  };

  SymbolLimits limits_;
  std::vector<Entry> entries_;
  std::string names_;
  std::uint16_t sources_ = 0;
  std::size_t dropped_ = 0;
};

}  // namespace ceems::exporter::profile
