#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "exporter/profile/symbol/byte_reader.h"
#include "exporter/profile/symbol/unwind_table.h"

namespace ceems::exporter::profile {

/// The number of the return address' column: System V ABI for x86-64, figure 3.36.
inline constexpr std::uint64_t kReturnAddress = 16;

/// Where a register of the caller is.
struct RegisterRule {
  enum class Kind : std::uint8_t { kSame, kUndefined, kAtCfa, kAtRbp, kAtRsp, kOther };
  Kind kind = Kind::kSame;
  std::int64_t offset = 0;

  friend bool operator==(const RegisterRule&, const RegisterRule&) = default;
};

/// The rules that hold at one instruction.
struct CfiState {
  enum class Cfa : std::uint8_t { kRegister, kPlt, kRspDeref, kRspDerefPlus8, kRbpDeref, kOther };
  Cfa cfa = Cfa::kOther;
  std::uint64_t cfa_register = 0;
  std::int64_t cfa_offset = 0;
  RegisterRule rbp;
  RegisterRule return_address = {.kind = RegisterRule::Kind::kOther};
};

/// The row for a state, with pc 0.
UnwindRow row_of(const CfiState& state);

/// A common information entry: what the descriptions of several functions share.
struct Cie {
  bool good = false;
  std::uint64_t code_align = 1;
  std::int64_t data_align = 1;
  std::uint8_t pointer_encoding = 0;
  bool has_augmentation_data = false;
  CfiState initial;
};

/// Executes the instructions of a common entry or of a function (DW_CFA_*).
class CfiInterpreter {
 public:
  /// `cie` must outlive it.
  CfiInterpreter(const Cie& cie, CfiState state) : cie_(cie), state_(state) {}

  [[nodiscard]] const CfiState& state() const { return state_; }

  enum class Step : std::uint8_t {
    kDone,
    kAdvanced,     ///< the rules up to now hold for `advance` bytes of code
    kSetLocation,  ///< an encoded address follows, up to which they hold
    kBroken,       ///< the instruction is unknown or malformed
  };

  /// Executes one instruction.
  Step step(ByteReader& reader, std::uint64_t& advance);

 private:
  bool advances(std::uint8_t code, ByteReader& reader, std::uint64_t& advance) const;
  bool defines_cfa(std::uint8_t code, ByteReader& reader);
  std::int64_t cfa_offset(bool is_signed, ByteReader& reader) const;
  bool defines_register(std::uint8_t code, ByteReader& reader);
  bool others(std::uint8_t code, ByteReader& reader);
  void set(std::uint64_t number, RegisterRule rule);
  void restore(std::uint64_t number);

  const Cie& cie_;
  CfiState state_;
  std::vector<CfiState> remembered_;
};

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
