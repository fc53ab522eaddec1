#include "cacct/output/chart_lines.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "cacct/output/box.h"
#include "cacct/output/json_values.h"
#include "cacct/output/quantity.h"

namespace ceems::cacct {
namespace {

namespace sj = simdjson::dom;

constexpr std::int64_t kMaxChartMs = 253'402'300'799'999;  // the end of the year 9999

using Point = std::pair<std::int64_t, double>;

std::optional<Point> point_of(const sj::element& value) {
  sj::array pair;
  std::int64_t ms = 0;
  double number = 0;
  if (value.get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
      pair.at(0).get(ms) != simdjson::SUCCESS || pair.at(1).get(number) != simdjson::SUCCESS ||
      ms < 0 || ms > kMaxChartMs || !std::isfinite(number)) {
    return std::nullopt;
  }
  return Point(ms, number);
}

std::optional<double> mean_of(const ChartLine& line) {
  double sum = 0;
  for (const Point& point : line.points) {
    sum += point.second;
  }
  return line.points.empty() ? std::nullopt
                             : std::optional(sum / static_cast<double>(line.points.size()));
}

/// The shortest time between two points.
std::int64_t step_of(const ChartLine& line) {
  std::int64_t step = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 1; i < line.points.size(); ++i) {
    const std::int64_t apart = line.points[i].first - line.points[i - 1].first;
    step = apart > 0 ? std::min(step, apart) : step;
  }
  return line.points.size() < 2 ? 0 : step;
}

std::string name_of(const ChartLine& line) {
  if (!line.quantile.empty()) {
    return fmt::format("quantile {} of the GPUs", line.quantile);
  }
  return fmt::format("{} GPU {}", line.host, line.device);
}

}  // namespace

Result<std::vector<ChartLine>> parse_chart_lines(const std::string& body) {
  sj::parser parser;
  CEEMS_TRY(rows, data_in<sj::array>(parser, body));
  std::vector<ChartLine> lines;
  for (const sj::element each : rows) {
    sj::object row;
    if (each.get(row) != simdjson::SUCCESS) {
      return unexpected_answer();
    }
    ChartLine& line = lines.emplace_back();
    line.chart = text_of(row, "name");
    line.collector = text_of(row, "collector");
    sj::object labels;
    if (row["labels"].get(labels) == simdjson::SUCCESS) {
      line.host = text_of(labels, "hostname");
      line.quantile = text_of(labels, "quantile");
      line.device = text_of(labels, "index");
      const std::string instance = text_of(labels, "gpuiid");
      line.device += instance.empty() ? "" : "/" + instance;
    }
    double limit = 0;
    if (row["limit"].get(limit) == simdjson::SUCCESS && limit > 0) {
      line.limit = limit;
    }
    sj::array points;
    if (row["points"].get(points) == simdjson::SUCCESS) {
      for (const sj::element point : points) {
        if (const auto read = point_of(point)) {
          line.points.push_back(*read);
        }
      }
    }
    std::ranges::stable_sort(line.points, {}, &Point::first);
  }
  return lines;
}

std::string strip_text(const ChartLine& line, const StripLook& look) {
  constexpr std::array<std::string_view, 9> kBlocks{"_", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::array<std::string_view, 9> kAscii{"_", ".", ":", "-", "=", "+", "*", "#", "@"};
  constexpr double kNothing = 0.005;
  if (line.points.empty() || look.cells == 0 || look.to_ms <= look.from_ms) {
    return {};
  }
  const double cell =
      static_cast<double>(look.to_ms - look.from_ms) / static_cast<double>(look.cells);
  // The server was asked for a point a cell, so the nearest one is the cell's.
  const double reach = std::max(cell, static_cast<double>(step_of(line))) * 0.75;
  std::string out;
  for (std::size_t i = 0; i < look.cells; ++i) {
    const auto middle =
        look.from_ms + static_cast<std::int64_t>((static_cast<double>(i) + 0.5) * cell);
    const Point& nearest = *std::ranges::min_element(
        line.points, {}, [middle](const Point& point) { return std::abs(point.first - middle); });
    if (static_cast<double>(std::abs(nearest.first - middle)) > reach) {
      out += ' ';
      continue;
    }
    const double share = std::clamp(nearest.second / look.top, 0.0, 1.0);
    const std::size_t height =
        share < kNothing ? 0 : std::clamp<std::size_t>(std::llround(share * 8), 1, 8);
    out += (look.ascii ? kAscii : kBlocks).at(height);
  }
  return out;
}

std::vector<std::string> gpu_strips(std::vector<ChartLine> lines,
                                    StripLook look,
                                    std::size_t width) {
  constexpr std::size_t kRest = 10;  // the margin, the gaps and the mean
  std::erase_if(lines, [](const ChartLine& line) { return line.points.empty(); });
  std::ranges::stable_sort(lines, {}, [](const ChartLine& line) {
    return std::tuple(mean_of(line).value_or(0), line.host, line.device);
  });
  std::size_t names = 0;
  for (const ChartLine& line : lines) {
    names = std::max(names, display_width(name_of(line)));
  }
  const std::size_t used = names + kRest;
  look.cells = std::min(look.cells, width > used ? width - used : 1);
  std::vector<std::string> out;
  for (const ChartLine& line : lines) {
    std::string name = name_of(line);
    name.append(names - display_width(name), ' ');
    out.push_back(fmt::format("  {}  {} {:>4}", name, strip_text(line, look),
                              percent_text(mean_of(line).value_or(0))));
  }
  return out;
}

}  // namespace ceems::cacct
