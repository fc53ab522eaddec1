#include "exporter/profile/symbol/cfi/go_rows.h"

#include <algorithm>
#include <limits>
#include <string>

#include "exporter/profile/symbol/byte_reader.h"
#include "exporter/profile/symbol/names/go_table.h"

namespace ceems::exporter::profile {
namespace {

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

}  // namespace

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

}  // namespace ceems::exporter::profile
