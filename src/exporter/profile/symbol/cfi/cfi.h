#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "exporter/profile/symbol/byte_reader.h"
#include "exporter/profile/symbol/cfi/cfi_interpreter.h"
#include "exporter/profile/symbol/unwind_table.h"

namespace ceems::exporter::profile {

/// Reads the entries of one section.
class CfiReader {
 public:
  explicit CfiReader(const FrameSection& section) : section_(section) {}

  /// The description of a function (frame description entry), found but not interpreted.
  struct Function {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::size_t entry = 0;  ///< offset of the entry in the section
  };

  /// Calls `found` for each function until it returns false. Returns how many entries are
  /// malformed.
  std::size_t each_function(const std::function<bool(const Function&)>& found);

  /// Calls `row` with each state of a function and the address from which it holds. False if the
  /// function's instructions are malformed or unknown; the states up to there were passed on.
  bool interpret(const Function& function,
                 const std::function<void(std::uint64_t address, const CfiState& state)>& row);

 private:
  struct Entry {
    std::size_t start = 0;  ///< of the content, behind the length
    std::size_t end = 0;
    bool is_cie = false;
    std::size_t cie = 0;  ///< offset of the entry that it refers to
    std::size_t body = 0;
  };

  [[nodiscard]] std::optional<Entry> entry_at(std::size_t offset) const;
  const Cie* cie_at(std::size_t offset);
  [[nodiscard]] Cie read_cie(std::size_t offset) const;
  bool read_augmentation(ByteReader& reader, std::string_view augmentation, Cie& cie) const;
  std::optional<std::uint64_t> pointer(ByteReader& reader, std::uint8_t encoding) const;
  bool read_range(const Cie& cie, ByteReader& reader, Function& function) const;

  FrameSection section_;
  /// By offset, sorted. Each is read once: a hostile one could be long and shared by all functions.
  std::vector<std::pair<std::size_t, Cie>> cies_;
};

}  // namespace ceems::exporter::profile
