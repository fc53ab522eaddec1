#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exporter/profile/symbol/elf_file.h"

namespace ceems::exporter::profile {

/// How to find the caller's frame from the instructions at and behind `pc`, up to the next row
/// (x86-64). The layout is shared with the program in the kernel that looks rows up.
///
/// CFA (canonical frame address): the value of rsp before the call. Except with kSignal, the return
/// address is at CFA - 8, and the caller's rsp is the CFA.
struct UnwindRow {
  std::uint32_t pc;         ///< counted from the lowest PT_LOAD address of the binary
  std::uint8_t cfa;         ///< CfaRule
  std::uint8_t rbp;         ///< RbpRule
  std::int16_t rbp_offset;  ///< with CfaRule::kStop a StopReason
  std::int32_t cfa_offset;

  friend bool operator==(const UnwindRow&, const UnwindRow&) = default;
};
static_assert(sizeof(UnwindRow) == 12);

namespace cfa_rule {
inline constexpr std::uint8_t kStop = 0;  ///< the frame is the last one; see StopReason
inline constexpr std::uint8_t kRsp = 1;   ///< rsp + cfa_offset
inline constexpr std::uint8_t kRbp = 2;   ///< rbp + cfa_offset
/// rsp + 8 + ((rip & 15) >= cfa_offset ? 8 : 0), in procedure linkage tables
inline constexpr std::uint8_t kPlt = 3;
/// In the return from a signal handler. CFA: *(rsp + cfa_offset), return address:
/// *(rsp + cfa_offset + 8). The latter is the interrupted instruction, not the one behind a call.
inline constexpr std::uint8_t kSignal = 4;
inline constexpr std::uint8_t kFramePointer = 5;  ///< rbp + 16, rbp at CFA - 16; no table says so
inline constexpr std::uint8_t kRbpDeref = 6;  ///< *(rbp + cfa_offset), where the stack is realigned
inline constexpr std::uint8_t kRspDerefPlus8 = 7;  ///< *(rsp + cfa_offset) + 8, hand-written code
}  // namespace cfa_rule

namespace rbp_rule {
inline constexpr std::uint8_t kSame = 0;
inline constexpr std::uint8_t kAtCfa = 1;      ///< *(CFA + rbp_offset)
inline constexpr std::uint8_t kUndefined = 2;  ///< the caller's value is lost
inline constexpr std::uint8_t kAtRbp = 3;  ///< *(rbp + rbp_offset), where the stack is realigned
inline constexpr std::uint8_t kAtRsp = 4;  ///< *(rsp + rbp_offset), with CfaRule kSignal
}  // namespace rbp_rule

namespace stop_reason {
inline constexpr std::int16_t kOutermost = 0;      ///< the end of the stack, such as _start
inline constexpr std::int16_t kNoTable = 1;        ///< code that the binary does not describe
inline constexpr std::int16_t kInexpressible = 2;  ///< a rule that a row cannot hold
}  // namespace stop_reason

/// The rows of one binary.
struct UnwindTable {
  /// By pc, each pc once. A row that says the same as the one before it is left out, and so is the
  /// end of a function if the next one begins within 16 bytes, which are padding.
  std::vector<UnwindRow> rows;
  bool truncated = false;            ///< the limit was reached; code behind the last row is unknown
  bool uses_frame_pointers = false;  ///< code without a description is unwound by rbp
  std::size_t functions = 0;
  std::size_t malformed = 0;  ///< descriptions of functions that were left out or cut short

  /// The row for an offset; null before the first one.
  [[nodiscard]] const UnwindRow* find(std::uint32_t pc) const;
};

struct UnwindLimits {
  std::size_t rows = 500'000;
  std::size_t functions = 500'000;
  std::uint64_t section_bytes = 32U << 20U;
};

/// A section of call frame information (DWARF 5 section 6.4, Linux Standard Base 5 section 10.6).
struct FrameSection {
  std::string_view bytes = {};
  std::uint64_t address = 0;
  bool is_debug_frame = false;  ///< .debug_frame instead of .eh_frame
  bool has_end = true;          ///< its size is known; otherwise it ends at the first zero length
};

/// Makes a table of a section. Malformed parts are left out and counted.
/// @param base  the lowest PT_LOAD address
UnwindTable unwind_rows(const FrameSection& section,
                        std::uint64_t base,
                        const UnwindLimits& limits = {});

/// Makes the table of a binary, of its .eh_frame, or of its .debug_frame without it. The code of Go
/// programs is described by their line table, which stripped ones have as well. A binary without
/// any of these gives one row that says whether its code keeps frame pointers. kInvalidArgument for
/// other machines than x86-64.
Result<UnwindTable> build_unwind_table(const ElfFile& elf, const UnwindLimits& limits = {});

}  // namespace ceems::exporter::profile
