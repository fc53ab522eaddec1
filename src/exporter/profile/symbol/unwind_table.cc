#include "exporter/profile/symbol/unwind_table.h"

#include <elf.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "exporter/profile/symbol/byte_reader.h"
#include "exporter/profile/symbol/cfi/cfi.h"
#include "exporter/profile/symbol/names/symbols.h"

namespace ceems::exporter::profile {
namespace {

/// The rows of a Go program's own functions, which its line table gives even when it is stripped.
/// They cover one range without gaps.
struct GoRows {
  std::vector<UnwindRow> rows;
  std::uint32_t end = 0;  ///< of the range
  std::size_t functions = 0;
  bool truncated = false;
};

constexpr std::uint64_t kMaxTable = 64U << 20U;
constexpr std::int64_t kMaxFrame = 1 << 30;

UnwindRow rsp_row(std::int64_t frame) {
  if (frame < 0 || frame > kMaxFrame) {
    return {.pc = 0,
            .cfa = cfa_rule::kStop,
            .rbp = 0,
            .rbp_offset = stop_reason::kInexpressible,
            .cfa_offset = 0};
  }
  return {.pc = 0,
          .cfa = cfa_rule::kRsp,
          .rbp = rbp_rule::kSame,
          .rbp_offset = 0,
          .cfa_offset = static_cast<std::int32_t>(frame + 8)};
}

/// Calls `row` with each address from which a frame has another size, until it returns false. The
/// sizes are differences, and so are the program counters (runtime.pcvalue in Go).
template <class Row>
void each_size(std::string_view table, const GoFunction& function, const Row& row) {
  ByteReader reader(table, static_cast<std::size_t>(function.stack_sizes));
  std::int64_t frame = -1;
  std::uint64_t address = function.address;
  bool is_first = true;
  while (address < function.end) {
    const std::uint64_t change = reader.uleb();
    const std::uint64_t advance = reader.uleb();
    if (!reader.good() || advance == 0 || (change == 0 && !is_first)) {
      return;
    }
    is_first = false;
    const auto half = static_cast<std::int64_t>(change >> 1U);
    // Beyond kMaxFrame it stays there: such a table is malformed.
    frame = std::clamp<std::int64_t>(half > kMaxFrame     ? kMaxFrame + 1
                                     : (change & 1U) != 0 ? frame - half - 1
                                                          : frame + half,
                                     -1, kMaxFrame + 1);
    if (!row(address, rsp_row(frame))) {
      return;
    }
    address += std::min<std::uint64_t>(advance, function.end);
  }
}

class Collector {
 public:
  Collector(std::uint64_t base, std::size_t max_rows) : base_(base), max_rows_(max_rows) {}

  /// False if there is no room. Then the range ends here.
  bool add(std::uint64_t address, UnwindRow row) {
    row.pc = static_cast<std::uint32_t>(address - base_);
    if (!result.rows.empty()) {
      UnwindRow last = result.rows.back();
      last.pc = row.pc;
      if (last == row) {
        return true;
      }
    }
    if (result.rows.size() >= max_rows_) {
      result.truncated = true;
      result.end = row.pc;
      return false;
    }
    result.rows.push_back(row);
    return true;
  }

  GoRows result;

 private:
  std::uint64_t base_;
  std::size_t max_rows_;
};

GoRows go_rows(const ElfFile& elf, std::size_t max_rows) {
  const Section* section = go_line_table(elf);
  if (section == nullptr) {
    return {};
  }
  const auto table = elf.content(*section, kMaxTable);
  if (!table) {
    return {};
  }
  const std::uint64_t base = elf.base();
  Collector collector(base, max_rows);
  std::uint64_t previous_end = base;
  each_go_function(elf, [&](const GoFunction& function) {
    if (function.address < previous_end ||
        function.end - base > std::numeric_limits<std::uint32_t>::max()) {
      return true;
    }
    previous_end = function.end;
    const bool has_sizes = function.stack_sizes != 0 && !function.switches_stacks;
    if (function.is_outermost) {
      collector.add(function.address, UnwindRow{});  // kStop, kOutermost
    } else if (has_sizes) {
      each_size(*table, function, [&](std::uint64_t address, const UnwindRow& row) {
        return collector.add(address, row);
      });
    } else {
      // The Go compiler keeps frame pointers.
      collector.add(function.address, {.pc = 0,
                                       .cfa = cfa_rule::kFramePointer,
                                       .rbp = rbp_rule::kAtCfa,
                                       .rbp_offset = -16,
                                       .cfa_offset = 16});
    }
    if (collector.result.truncated) {
      return false;
    }
    ++collector.result.functions;
    collector.result.end = static_cast<std::uint32_t>(function.end - base);
    return true;
  });
  return std::move(collector.result);
}

constexpr std::uint64_t kMaxPadding = 16;
constexpr std::uint64_t kMaxOffset = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kCodeSample = 1U << 20U;

UnwindRow gap_row(bool uses_frame_pointers) {
  if (uses_frame_pointers) {
    return {.pc = 0,
            .cfa = cfa_rule::kFramePointer,
            .rbp = rbp_rule::kAtCfa,
            .rbp_offset = -16,
            .cfa_offset = 16};
  }
  return {.pc = 0,
          .cfa = cfa_rule::kStop,
          .rbp = 0,
          .rbp_offset = stop_reason::kNoTable,
          .cfa_offset = 0};
}

bool same_rule(UnwindRow left, UnwindRow right) {
  left.pc = right.pc;
  return left == right;
}

bool is_gap(const UnwindRow& row) {
  return row.cfa == cfa_rule::kStop && row.rbp_offset == stop_reason::kNoTable;
}

/// Collects the rows of functions in ascending order.
class Rows {
 public:
  explicit Rows(std::size_t limit) : limit_(std::max<std::size_t>(limit, 4)) {}

  void add(std::uint64_t pc, UnwindRow row) {
    if (full_ || pc > kMaxOffset) {
      return;
    }
    row.pc = static_cast<std::uint32_t>(pc);
    if (!rows_.empty() && rows_.back().pc == row.pc) {
      rows_.pop_back();  // of a gap or an empty range
    }
    if (!rows_.empty() && same_rule(rows_.back(), row)) {
      return;
    }
    if (rows_.size() + 2 >= limit_) {  // one is kept for what lies before the first function
      full_ = true;
      row = gap_row(false);
      row.pc = static_cast<std::uint32_t>(pc);
      if (is_gap(rows_.back())) {
        return;
      }
    }
    rows_.push_back(row);
  }

  [[nodiscard]] bool full() const { return full_; }
  std::vector<UnwindRow> take() { return std::move(rows_); }

 private:
  std::size_t limit_;
  bool full_ = false;
  std::vector<UnwindRow> rows_;
};

/// What the rules of a function say about frame pointers.
struct FramePointerUse {
  std::size_t with_frame = 0;    ///< functions that change the stack pointer
  std::size_t with_pointer = 0;  ///< of them, those that keep rbp as frame pointer

  void count(bool has_frame, bool has_pointer) {
    with_frame += has_frame ? 1 : 0;
    with_pointer += has_pointer ? 1 : 0;
  }
  /// Three quarters: start-up code and hand-written functions differ in any binary.
  [[nodiscard]] bool decide() const { return with_frame > 0 && with_pointer * 4 >= with_frame * 3; }
};

struct FunctionRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;  ///< up to 4 GiB - 1
  std::uint32_t entry = 0;
};

std::vector<FunctionRange> functions_of(CfiReader& reader,
                                        std::uint64_t base,
                                        const UnwindLimits& limits,
                                        UnwindTable& table) {
  std::vector<FunctionRange> functions;
  table.malformed += reader.each_function([&](const CfiReader::Function& function) {
    if (functions.size() == limits.functions) {
      table.truncated = true;
      return false;
    }
    if (function.begin < base || function.end - base > kMaxOffset) {
      ++table.malformed;
      return true;
    }
    functions.push_back({.begin = static_cast<std::uint32_t>(function.begin - base),
                         .end = static_cast<std::uint32_t>(function.end - base),
                         .entry = static_cast<std::uint32_t>(function.entry)});
    return true;
  });
  std::ranges::sort(functions, [](const FunctionRange& a, const FunctionRange& b) {
    return std::pair(a.begin, b.end) < std::pair(b.begin, a.end);  // the longest first
  });
  // Several descriptions of one address: linkers leave dropped functions at 0.
  const auto repeated = std::ranges::unique(functions, {}, &FunctionRange::begin);
  table.malformed += repeated.size();
  functions.erase(repeated.begin(), repeated.end());
  return functions;
}

/// Whether code that nothing describes keeps frame pointers: by its function prologues.
bool code_uses_frame_pointers(const ElfFile& elf) {
  if (go_line_table(elf) != nullptr) {
    return true;  // the Go compiler always does on x86-64
  }
  constexpr std::string_view kPrologue = "\x55\x48\x89\xe5";  // push %rbp; mov %rsp,%rbp
  constexpr std::size_t kBytesPerPrologue = 1024;
  std::size_t found = 0;
  std::size_t bytes = 0;
  for (const Segment& segment : elf.segments()) {
    if (segment.type != PT_LOAD || (segment.flags & PF_X) == 0 || bytes >= kCodeSample) {
      continue;
    }
    const auto code = elf.file().read(segment.offset, std::min(segment.file_size, kCodeSample));
    if (!code) {
      continue;
    }
    bytes += code->size();
    for (std::size_t at = code->find(kPrologue); at != std::string::npos;
         at = code->find(kPrologue, at + kPrologue.size())) {
      ++found;
    }
  }
  return found > 0 && found * kBytesPerPrologue >= bytes;
}

/// The address of .eh_frame by the segment that is loaded with it (PT_GNU_EH_FRAME).
std::optional<std::uint64_t> eh_frame_address(const ElfFile& elf) {
  const auto segment =
      std::ranges::find(elf.segments(), std::uint32_t{PT_GNU_EH_FRAME}, &Segment::type);
  if (segment == elf.segments().end()) {
    return std::nullopt;
  }
  const auto header = elf.content_at(segment->address, 12);
  if (!header) {
    return std::nullopt;
  }
  ByteReader reader(*header);
  const unsigned version = reader.u8();
  const unsigned encoding = reader.u8();
  reader.skip(2);
  const auto distance = static_cast<std::int32_t>(reader.u32());
  // Linkers write no other encoding: 4 bytes, signed, relative to themselves.
  if (!reader.good() || version != 1 || encoding != 0x1B) {
    return std::nullopt;
  }
  return segment->address + 4 + static_cast<std::uint64_t>(static_cast<std::int64_t>(distance));
}

struct Frames {
  std::string bytes;
  FrameSection section;
};

Result<Frames> read_frames(const ElfFile& elf, std::uint64_t max_size) {
  const auto of_section = [&](const Section& section, bool is_debug_frame) -> Result<Frames> {
    CEEMS_TRY(bytes, elf.content(section, max_size));
    return Frames{.bytes = std::move(bytes),
                  .section = {.address = section.address, .is_debug_frame = is_debug_frame}};
  };
  if (const Section* section = elf.find_section(".eh_frame")) {
    return of_section(*section, false);
  }
  if (const auto address = eh_frame_address(elf)) {
    if (auto bytes = elf.content_at(*address, max_size)) {
      return Frames{.bytes = std::move(*bytes), .section = {.address = *address, .has_end = false}};
    }
  }
  // That of Go programs says less than their line table.
  for (const std::string_view name : {".debug_frame", ".zdebug_frame"}) {
    if (go_line_table(elf) != nullptr) {
      break;
    }
    if (const Section* section = elf.find_section(name)) {
      return of_section(*section, true);
    }
  }
  return Frames{};
}

UnwindTable make_table(const FrameSection& section,
                       std::uint64_t base,
                       const UnwindLimits& limits,
                       bool frame_pointers_elsewhere) {
  UnwindTable table;
  CfiReader reader(section);
  const std::vector<FunctionRange> functions = functions_of(reader, base, limits, table);
  table.functions = functions.size();
  Rows rows(limits.rows);
  FramePointerUse use;
  for (std::size_t i = 0; i < functions.size() && !rows.full(); ++i) {
    const FunctionRange& function = functions[i];
    const bool is_last = i + 1 == functions.size();
    const std::uint64_t next = is_last ? kMaxOffset : functions[i + 1].begin;
    const std::uint64_t end = std::min<std::uint64_t>(function.end, next);
    bool has_frame = false;
    bool has_pointer = false;
    const bool good = reader.interpret(
        {.begin = base + function.begin, .end = base + function.end, .entry = function.entry},
        [&](std::uint64_t address, const CfiState& state) {
          const UnwindRow row = row_of(state);
          has_frame = has_frame || (row.cfa != cfa_rule::kStop && row.cfa_offset > 8);
          has_pointer = has_pointer || (row.cfa == cfa_rule::kRbp && row.cfa_offset == 16);
          if (address - base < end) {
            rows.add(address - base, row);
          }
        });
    table.malformed += good && function.end <= next ? 0 : 1;
    use.count(has_frame, has_pointer);
    if (is_last || next - end >= kMaxPadding) {
      rows.add(end, gap_row(false));
    }
  }
  table.truncated = table.truncated || rows.full();
  table.rows = rows.take();
  table.uses_frame_pointers = frame_pointers_elsewhere || use.decide();
  if (table.rows.empty() || table.rows.front().pc != 0) {
    table.rows.insert(table.rows.begin(), gap_row(false));
  }
  if (table.uses_frame_pointers) {
    for (UnwindRow& row : table.rows) {
      if (is_gap(row)) {
        const std::uint32_t pc = row.pc;
        row = gap_row(true);
        row.pc = pc;
      }
    }
  }
  return table;
}

/// Replaces the table's rows for a Go program's own code by rows that fit it.
void insert(GoRows go, UnwindTable& table) {
  table.truncated = table.truncated || go.truncated;
  table.functions += go.functions;
  if (go.rows.empty()) {
    return;
  }
  const auto first = std::ranges::lower_bound(table.rows, go.rows.front().pc, {}, &UnwindRow::pc);
  const auto last = std::ranges::upper_bound(table.rows, go.end, {}, &UnwindRow::pc);
  if (last != table.rows.begin()) {
    UnwindRow behind = *std::prev(last);
    behind.pc = go.end;
    go.rows.push_back(behind);
  }
  const auto place = table.rows.erase(first, last);
  table.rows.insert(place, go.rows.begin(), go.rows.end());
}

}  // namespace

const UnwindRow* UnwindTable::find(std::uint32_t pc) const {
  const auto after = std::ranges::upper_bound(rows, pc, {}, &UnwindRow::pc);
  return after == rows.begin() ? nullptr : &*std::prev(after);
}

UnwindTable unwind_rows(const FrameSection& section,
                        std::uint64_t base,
                        const UnwindLimits& limits) {
  return make_table(section, base, limits, false);
}

Result<UnwindTable> build_unwind_table(const ElfFile& elf, const UnwindLimits& limits) {
  if (elf.machine() != EM_X86_64) {
    return fail(ErrorCode::kInvalidArgument, "no x86-64 code");
  }
  CEEMS_TRY(frames, read_frames(elf, limits.section_bytes));
  frames.section.bytes = frames.bytes;
  const bool is_go = go_line_table(elf) != nullptr;
  UnwindTable table = make_table(frames.section, elf.base(), limits,
                                 is_go || (frames.bytes.empty() && code_uses_frame_pointers(elf)));
  if (is_go) {
    const std::size_t room = limits.rows - std::min(limits.rows, table.rows.size() + 1);
    insert(go_rows(elf, room), table);
  }
  return table;
}

}  // namespace ceems::exporter::profile
