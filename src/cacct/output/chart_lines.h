#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ceems::cacct {

/// A line of a chart of units/series. Texts are safe for a terminal.
struct ChartLine {
  std::string chart = {};              ///< cpu, gpu_use, …
  std::string host = {}, device = {};  ///< device: 0, or 0/1 for an instance
  std::string quantile = {};           ///< in place of the lines of very many devices
  std::string collector = {};          ///< what would measure it, if nothing does
  std::optional<double> limit = {};    ///< what was reserved
  std::vector<std::pair<std::int64_t, double>> points = {};  ///< milliseconds and value, by time
};

/// Parses the body of an answer. kParse for anything else.
Result<std::vector<ChartLine>> parse_chart_lines(const std::string& body);

/// How a strip is drawn.
struct StripLook {
  std::int64_t from_ms = 0, to_ms = 0;
  std::size_t cells = 40;
  double top = 100;  ///< the value of a full block
  bool ascii = false;
};

/// A line over time: "_" means zero, blocks have eight heights, a blank means unknown.
std::string strip_text(const ChartLine& line, const StripLook& look);

/// A line for each GPU, the least used first, with its mean: "g14 GPU 0  ▁▆▇▇  46%". `width` is
/// that of the terminal; `cells` of the look are as many as fit.
std::vector<std::string> gpu_strips(std::vector<ChartLine> lines,
                                    StripLook look,
                                    std::size_t width);

}  // namespace ceems::cacct
