#pragma once

#include <cstdint>
#include <string_view>
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

}  // namespace ceems::exporter::profile
