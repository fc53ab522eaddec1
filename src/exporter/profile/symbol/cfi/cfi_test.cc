#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/profile/symbol/unwind_table.h"

namespace ceems::exporter::profile {
namespace {

using ::testing::ElementsAre;

constexpr std::uint64_t kBase = 0x400000;
constexpr std::uint64_t kSectionAddress = kBase + 0x100000;

std::string little_endian(std::uint64_t value, unsigned bytes) {
  std::string out;
  for (unsigned i = 0; i < bytes; ++i) {
    out += static_cast<char>(value >> (8 * i));
  }
  return out;
}

/// Writes an .eh_frame section as GCC does: 4-byte lengths, pointers relative to themselves.
class FrameSection {
 public:
  FrameSection() { cie("zR", std::string("\x01\x1b", 2)); }

  /// Code alignment 1, data alignment -8, CFA rsp + 8, return address at CFA - 8.
  void cie(std::string_view augmentation,
           std::string_view augmentation_data,
           std::string_view more = {}) {
    cie_ = bytes.size();
    std::string body = little_endian(0, 4) + '\x01' + std::string(augmentation) + '\0';
    body += "\x01\x78\x10";
    body += augmentation_data;
    body += std::string("\x0c\x07\x08\x90\x01", 5);
    body += more;
    add(body);
  }

  void function(std::uint64_t begin, std::uint64_t size, std::string_view instructions) {
    const std::uint64_t at = bytes.size() + 4;
    std::string body = little_endian(at - cie_, 4);
    body += little_endian(kBase + begin - (kSectionAddress + at + 4), 4);
    body += little_endian(size, 4) + '\0';
    body += instructions;
    add(body);
  }

  void add(std::string body) {
    body.resize((body.size() + 3) / 4 * 4);  // DW_CFA_nop
    bytes += little_endian(body.size(), 4) + body;
  }

  [[nodiscard]] UnwindTable table(const UnwindLimits& limits = {}) const {
    return unwind_rows({.bytes = bytes, .address = kSectionAddress}, kBase, limits);
  }

  std::string bytes;

 private:
  std::size_t cie_ = 0;
};

constexpr UnwindRow kGap{0, cfa_rule::kStop, 0, stop_reason::kNoTable, 0};

UnwindRow gap(std::uint32_t pc) {
  UnwindRow row = kGap;
  row.pc = pc;
  return row;
}
UnwindRow rsp(std::uint32_t pc, std::int32_t offset) {
  return {pc, cfa_rule::kRsp, rbp_rule::kSame, 0, offset};
}

TEST(Cfi, FollowsAPrologueAndAnEpilogue) {
  FrameSection section;
  // push %rbp; mov %rsp,%rbp; …; leave; ret
  section.function(0x1000, 0x40,
                   std::string_view("\x41\x0e\x10\x86\x02\x43\x0d\x06\x70\x0c\x07\x08", 12));
  const auto table = section.table();
  EXPECT_THAT(
      table.rows,
      ElementsAre(UnwindRow{0, cfa_rule::kFramePointer, rbp_rule::kAtCfa, -16, 16}, rsp(0x1000, 8),
                  UnwindRow{0x1001, cfa_rule::kRsp, rbp_rule::kAtCfa, -16, 16},
                  UnwindRow{0x1004, cfa_rule::kRbp, rbp_rule::kAtCfa, -16, 16},
                  UnwindRow{0x1034, cfa_rule::kRsp, rbp_rule::kAtCfa, -16, 8},
                  UnwindRow{0x1040, cfa_rule::kFramePointer, rbp_rule::kAtCfa, -16, 16}));
  EXPECT_TRUE(table.uses_frame_pointers);
  EXPECT_EQ(table.functions, 1U);
  EXPECT_EQ(table.malformed, 0U);
  EXPECT_EQ(table.find(0x1003)->pc, 0x1001U);
  EXPECT_EQ(table.find(0x1033)->cfa, cfa_rule::kRbp);
}

TEST(Cfi, RemembersAndRestores) {
  FrameSection section;
  // +1: CFA 16, rbp saved; +1: remember; CFA 8, restore rbp; +1: restore state
  section.function(0, 0x10,
                   std::string_view("\x41\x0e\x10\x86\x02\x41\x0a\x0e\x08\xc6\x41\x0b", 12));
  EXPECT_THAT(
      section.table().rows,
      ElementsAre(rsp(0, 8), UnwindRow{1, cfa_rule::kRsp, rbp_rule::kAtCfa, -16, 16}, rsp(2, 8),
                  UnwindRow{3, cfa_rule::kRsp, rbp_rule::kAtCfa, -16, 16}, gap(0x10)));
}

TEST(Cfi, ReadsEachWayToAdvanceAndToDefine) {
  FrameSection section;
  section.function(0, 0x2000000,
                   std::string_view("\x02\x05\x13\x7e"          // +5: def_cfa_offset_sf -2 * -8
                                    "\x03\x00\x01\x12\x07\x7d"  // +0x100: def_cfa_sf rsp, -3 * -8
                                    "\x04\x00\x00\x01\x00\x0e\x28"  // +0x10000: def_cfa_offset 40
                                    "\x05\x06\x05"                  // offset_extended rbp, 5
                                    "\x1d\x00\x00\x00\x01\x00\x00\x00\x00\x07\x06"  // undefined rbp
                                    "\x41\x11\x06\x03"          // offset_extended_sf rbp, 3
                                    "\x41\x2f\x06\x04"          // negative offset rbp: + 4 * 8
                                    "\x41\x06\x06"              // restore_extended rbp
                                    "\x41\x08\x06\x2e\x08\x2d"  // same value; no effect on rows
                                    "\x41\x09\x06\x03"          // rbp in another register
                                    "\x41\x14\x06\x02\x16\x03\x01\x30",  // rbp is CFA - 16
                                    4 + 6 + 7 + 3 + 11 + 4 + 4 + 3 + 6 + 4 + 8));
  const auto rows = section.table().rows;
  EXPECT_THAT(rows, ElementsAre(rsp(0, 8), rsp(5, 16), rsp(0x105, 24),
                                UnwindRow{0x10105, cfa_rule::kRsp, rbp_rule::kAtCfa, -40, 40},
                                UnwindRow{0x1010105, cfa_rule::kRsp, rbp_rule::kUndefined, 0, 40},
                                UnwindRow{0x1010106, cfa_rule::kRsp, rbp_rule::kAtCfa, -24, 40},
                                UnwindRow{0x1010107, cfa_rule::kRsp, rbp_rule::kAtCfa, 32, 40},
                                rsp(0x1010108, 40),
                                UnwindRow{0x101010a, cfa_rule::kRsp, rbp_rule::kUndefined, 0, 40},
                                gap(0x2000000)));
}

UnwindRow row_with(std::string_view instructions) {
  FrameSection section;
  section.function(0, 0x10, instructions);
  return section.table().rows.front();
}

TEST(Cfi, DecodesTheExpressionsThatToolchainsWrite) {
  // The lazy linkage table of GNU ld, with its thresholds of 11, and of 9 with IBT.
  EXPECT_EQ(row_with(std::string_view("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22", 13)),
            (UnwindRow{0, cfa_rule::kPlt, rbp_rule::kSame, 0, 11}));
  EXPECT_EQ(row_with(std::string_view("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x39\x2a\x33\x24\x22", 13)),
            (UnwindRow{0, cfa_rule::kPlt, rbp_rule::kSame, 0, 9}));
  // glibc's return from signal handlers: CFA *(rsp + 160), rbp at rsp + 120, rip at rsp + 168.
  EXPECT_EQ(row_with(std::string_view("\x0f\x04\x77\xa0\x01\x06\x10\x06\x03\x77\xf8\x00"
                                      "\x10\x10\x03\x77\xa8\x01",
                                      18)),
            (UnwindRow{0, cfa_rule::kSignal, rbp_rule::kAtRsp, 120, 160}));
  // GCC where it aligns the stack: CFA *(rbp - 8), rbp at rbp + 0.
  EXPECT_EQ(row_with(std::string_view("\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x00", 10)),
            (UnwindRow{0, cfa_rule::kRbpDeref, rbp_rule::kAtRbp, 0, -8}));
  // OpenSSL: CFA *(rsp + 40) + 8.
  EXPECT_EQ(row_with(std::string_view("\x0f\x05\x77\x28\x06\x23\x08", 7)),
            (UnwindRow{0, cfa_rule::kRspDerefPlus8, rbp_rule::kSame, 0, 40}));
}

TEST(Cfi, StopsWhereARowCannotSayMore) {
  constexpr UnwindRow kInexpressible{0, cfa_rule::kStop, 0, stop_reason::kInexpressible, 0};
  // The return address is undefined: _start.
  EXPECT_EQ(row_with(std::string_view("\x07\x10", 2)),
            (UnwindRow{0, cfa_rule::kStop, 0, stop_reason::kOutermost, 0}));
  // CFA of r10; an unknown expression; a return address elsewhere; an offset beyond 31 bits.
  EXPECT_EQ(row_with(std::string_view("\x0c\x0a\x00", 3)), kInexpressible);
  EXPECT_EQ(row_with(std::string_view("\x0f\x03\x70\x10\x06", 5)), kInexpressible);
  EXPECT_EQ(row_with(std::string_view("\x90\x02", 2)), kInexpressible);
  EXPECT_EQ(row_with(std::string_view("\x0e\x80\x80\x80\x80\x08", 6)), kInexpressible);
  // rbp too far away for a row: only rbp is lost.
  EXPECT_EQ(row_with(std::string_view("\x86\x80\x20", 3)),
            (UnwindRow{0, cfa_rule::kRsp, rbp_rule::kAtCfa, -32768, 8}));
  EXPECT_EQ(row_with(std::string_view("\x86\x81\x20", 3)),
            (UnwindRow{0, cfa_rule::kRsp, rbp_rule::kUndefined, 0, 8}));
}

TEST(Cfi, SaysWhereNothingIsDescribed) {
  FrameSection section;
  section.function(0x200, 0x10, "");
  section.function(0x100, 0x15, "");  // 11 bytes of padding up to the next one
  section.function(0x120, 0x10, std::string_view("\x0e\x10", 2));
  EXPECT_THAT(section.table().rows, ElementsAre(gap(0), rsp(0x100, 8), rsp(0x120, 16), gap(0x130),
                                                rsp(0x200, 8), gap(0x210)));
}

TEST(Cfi, CutsFunctionsThatOverlap) {
  FrameSection section;
  section.function(0x100, 0x100, std::string_view("\x0e\x10", 2));
  section.function(0x140, 0x10, "");
  section.function(0x140, 0x08, std::string_view("\x0e\x18", 2));
  const auto table = section.table();
  EXPECT_THAT(table.rows, ElementsAre(gap(0), rsp(0x100, 16), rsp(0x140, 8), gap(0x150)));
  EXPECT_EQ(table.malformed, 2U);
}

TEST(Cfi, StaysBelowItsLimits) {
  FrameSection section;
  for (std::uint64_t i = 0; i < 100; ++i) {
    section.function(0x100 * i, 0x80, "");
  }
  auto table = section.table({.rows = 10});
  EXPECT_TRUE(table.truncated);
  EXPECT_EQ(table.rows.size(), 8U);  // two more could have been needed at the ends
  EXPECT_EQ(table.rows.back(), gap(0x380));
  table = section.table({.functions = 7});
  EXPECT_TRUE(table.truncated);
  EXPECT_EQ(table.functions, 7U);
  EXPECT_FALSE(section.table().truncated);
}

TEST(Cfi, LeavesOutWhatIsMalformed) {
  {  // An unknown instruction: what came before it holds.
    FrameSection section;
    section.function(0, 0x20, std::string_view("\x44\x0e\x10\x44\x3f", 5));
    const auto table = section.table();
    EXPECT_THAT(
        table.rows,
        ElementsAre(rsp(0, 8), rsp(4, 16),
                    UnwindRow{8, cfa_rule::kStop, 0, stop_reason::kInexpressible, 0}, gap(0x20)));
    EXPECT_EQ(table.malformed, 1U);
  }
  {  // Instructions beyond the end of the function, and a state that nothing remembered.
    FrameSection section;
    section.function(0, 0x20, std::string_view("\x7f\x0e\x10", 3));
    section.function(0x20, 0x20, std::string_view("\x0b", 1));
    EXPECT_EQ(section.table().malformed, 2U);
    EXPECT_EQ(section.table().find(0x1f)->cfa_offset, 8);
  }
  {  // A function that refers to itself, or to another function, as its common part.
    FrameSection section;
    section.add(little_endian(4, 4) + std::string(16, '\0'));
    section.function(0x100, 0x10, "");
    section.add(little_endian(24, 4) + std::string(16, '\0'));
    const auto table = section.table();
    EXPECT_EQ(table.malformed, 2U);
    EXPECT_EQ(table.functions, 1U);
  }
  {  // A length beyond the end.
    FrameSection section;
    section.function(0, 0x10, "");
    section.bytes += little_endian(4000, 4);
    EXPECT_EQ(section.table().malformed, 1U);
    EXPECT_EQ(section.table().functions, 1U);
  }
  {  // Augmentations: unknown ones, indirect pointers, and sizes beyond the end.
    for (const auto& [augmentation, data] :
         std::vector<std::pair<std::string, std::string>>{{"zX", "\x01\x1b"},
                                                          {"zR", "\x01\x9b"},
                                                          {"zR", "\x01\x2b"},
                                                          {"R", "\x1b"},
                                                          {"zR", "\x7f\x1b"}}) {
      FrameSection section;
      section.cie(augmentation, data);
      section.function(0, 0x10, "");
      EXPECT_EQ(section.table().functions, 0U) << augmentation;
      EXPECT_EQ(section.table().malformed, 1U) << augmentation;
    }
  }
  {  // A function below the binary, and one that wraps around.
    FrameSection section;
    section.function(0 - std::uint64_t{0x10}, 0x8, "");
    EXPECT_EQ(section.table().functions, 0U);
    EXPECT_EQ(section.table().malformed, 1U);
  }
  EXPECT_THAT(unwind_rows({.bytes = ""}, 0).rows, ElementsAre(kGap));
  EXPECT_THAT(unwind_rows({.bytes = std::string_view("\xff\xff\xff\xff\xff\xff", 6)}, 0).rows,
              ElementsAre(kGap));
}

TEST(Cfi, RemembersABoundedNumberOfStates) {
  FrameSection section;
  section.function(0, 0x10, std::string(1000, '\x0a'));
  EXPECT_EQ(section.table().malformed, 1U);
  FrameSection fits;
  fits.function(0, 0x10, std::string(32, '\x0a'));
  EXPECT_EQ(fits.table().malformed, 0U);
}

TEST(Cfi, SkipsThePersonalityAndReadsSignalFrames) {
  FrameSection section;
  // "zPLRS": personality pcrel|sdata4|indirect, LSDA pcrel|sdata4, addresses pcrel|sdata4
  section.cie("zPLRS", std::string_view("\x07\x9b\x01\x02\x03\x04\x1b\x1b", 8));
  section.function(0x10, 0x10, std::string_view("\x0e\x20", 2));
  EXPECT_THAT(section.table().rows, ElementsAre(gap(0), rsp(0x10, 32), gap(0x20)));
}

TEST(Cfi, ReadsDebugFrames) {
  // Lengths of 8 bytes, an identifier of all ones, absolute addresses, version 4.
  std::string cie = little_endian(~0ULL, 8) + '\x04' + '\0' + "\x08" + '\0' + "\x01\x78\x10";
  cie += std::string("\x0c\x07\x08\x90\x01", 5);
  std::string bytes = little_endian(0xFFFFFFFF, 4) + little_endian(cie.size(), 8) + cie;
  const std::string function =
      little_endian(0, 8) + little_endian(kBase + 0x40, 8) + little_endian(0x10, 8) + "\x0e\x10";
  bytes += little_endian(0xFFFFFFFF, 4) + little_endian(function.size(), 8) + function;
  const auto table = unwind_rows({.bytes = bytes, .is_debug_frame = true}, kBase);
  EXPECT_THAT(table.rows, ElementsAre(gap(0), rsp(0x40, 16), gap(0x50)));
  EXPECT_EQ(table.malformed, 0U);
}

TEST(Cfi, EndsAtAZeroLengthOnlyWhereTheSizeIsUnknown) {
  FrameSection section;
  section.function(0x10, 0x10, "");
  section.bytes += little_endian(0, 4);
  section.function(0x100, 0x10, "");
  EXPECT_EQ(section.table().functions, 2U);
  const auto table =
      unwind_rows({.bytes = section.bytes, .address = kSectionAddress, .has_end = false}, kBase);
  EXPECT_EQ(table.functions, 1U);
}

}  // namespace
}  // namespace ceems::exporter::profile
