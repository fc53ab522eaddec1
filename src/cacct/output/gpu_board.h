#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::cacct {

/// What a unit did on a GPU in a period: shares of the period from 0 to 1. Texts are safe for a
/// terminal.
struct GpuUnit {
  std::string uuid = {}, user = {};
  std::string array = {};  ///< the id that SLURM shows, where it is not the uuid
  std::optional<double> busy = {}, sm = {};
};

/// One GPU in one period.
struct GpuCell {
  bool known = false;
  std::vector<GpuUnit> units = {};
  bool others = false;  ///< units that the caller may not see used the GPU
};

struct GpuLine {
  std::string cluster = {}, host = {}, gpu = {}, instance = {};
  std::vector<GpuCell> cells = {};  ///< one for each period
};

/// The answer of api/v1/gpus.
struct GpuBoard {
  std::vector<std::int64_t> ends_ms = {};  ///< of the periods
  std::vector<GpuLine> lines = {};
  std::vector<std::string> missing = {};  ///< why clusters are not in it
};

/// Parses the body of an answer. kParse for anything else.
Result<GpuBoard> parse_gpu_board(const std::string& body);

/// How a board is drawn.
struct GpuLook {
  bool ascii = false;   ///< no other characters
  bool colour = false;  ///< with escape sequences; symbols tell the same
  std::size_t width = 80;
};

/// A table with as many of the last periods as fit, and what its symbols mean.
std::string draw_gpu_board(const GpuBoard& board, const GpuLook& look);
/// One line for each unit in each period, and one for each period without units. Texts that a
/// spreadsheet would take for a formula get a ' before them.
std::string gpu_board_csv(const GpuBoard& board);
std::string gpu_board_json(const GpuBoard& board);

}  // namespace ceems::cacct
