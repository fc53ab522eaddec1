#include "cacct/output/gpu_board.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/strings.h"
#include "base/text/cells.h"
#include "cacct/output/answer.h"
#include "cacct/output/box.h"
#include "cacct/output/json_values.h"

namespace ceems::cacct {
namespace {

namespace sj = simdjson::dom;

constexpr std::size_t kMaxPeriods = 1000;
constexpr double kPercent = 100;
constexpr std::int64_t kMaxTimeMs = 253'402'300'799'999;  // the end of the year 9999

std::optional<double> share_of(const sj::object& object, std::string_view key) {
  const auto share = number_of(object, key);
  return share ? std::optional(std::clamp(*share, 0.0, 1.0)) : std::nullopt;
}

/// As squeue and sacct name it.
const std::string& shown_id(const GpuUnit& unit) {
  return unit.array.empty() ? unit.uuid : unit.array;
}

GpuCell read_cell(const sj::element& value) {
  GpuCell cell;
  sj::object object;
  if (value.get(object) != simdjson::SUCCESS) {
    return cell;
  }
  cell.known = true;
  if (object["others"].get(cell.others) != simdjson::SUCCESS) {
    cell.others = false;
  }
  sj::array units;
  if (object["units"].get(units) == simdjson::SUCCESS) {
    for (const sj::element& each : units) {
      sj::object unit;
      if (each.get(unit) == simdjson::SUCCESS) {
        cell.units.push_back({.uuid = text_of(unit, "uuid"),
                              .user = text_of(unit, "user"),
                              .array = text_of(unit, "array"),
                              .busy = share_of(unit, "busy"),
                              .sm = share_of(unit, "sm")});
      }
    }
  }
  return cell;
}

std::string local_time(std::int64_t ms, const char* format) {
  const std::time_t seconds = ms / 1000;
  std::tm local{};
  std::array<char, 40> text{};
  if (::localtime_r(&seconds, &local) == nullptr) {
    return "?";
  }
  return {text.data(), std::strftime(text.data(), text.size(), format, &local)};
}

/// How much of a GPU works: none, up to a quarter, a half, three quarters, or more.
struct Level {
  std::string_view symbol, ascii, colour;
};
constexpr std::array<Level, 5> kLevels{{{"!", "!", "\x1b[31m"},
                                        {"░", "-", "\x1b[31m"},
                                        {"▒", "=", "\x1b[33m"},
                                        {"▓", "+", "\x1b[32m"},
                                        {"█", "#", "\x1b[32m"}}};
constexpr std::string_view kPlain = "\x1b[0m";

const Level& level_of(double share) {
  constexpr double kNothing = 0.005;  // is shown as 0 %
  if (share < kNothing) {
    return kLevels[0];
  }
  return kLevels.at(std::min<std::size_t>(static_cast<std::size_t>(share * 4), 3) + 1);
}

std::string percent(std::optional<double> share, bool ascii) {
  return share ? fmt::format("{:.0f}", *share * kPercent) : std::string(ascii ? "-" : "–");
}

/// What is drawn in a cell, and its colour.
struct Drawn {
  std::string text;
  std::string_view colour = {};
};

Drawn draw_cell(const GpuCell& cell, bool ascii) {
  if (!cell.known) {
    return {"?"};
  }
  if (cell.units.empty()) {
    return {cell.others ? "used" : ascii ? "." : "·"};
  }
  // Of several, the one that did most.
  const auto weight = [](const GpuUnit& unit) { return unit.sm.value_or(unit.busy.value_or(0)); };
  const GpuUnit& unit = *std::ranges::max_element(cell.units, {}, weight);
  const Level& level = level_of(weight(unit));
  constexpr std::size_t kMaxName = 12;
  const std::string name = unit.user.empty() ? shown_id(unit) : unit.user;
  const auto pieces = cut(name, kMaxName);
  Drawn drawn{fmt::format("{} {} {} ({})", ascii ? level.ascii : level.symbol,
                          pieces.empty() ? "" : pieces.front(), percent(unit.sm, ascii),
                          percent(unit.busy, ascii)),
              level.colour};
  const std::size_t more = cell.units.size() - 1 + (cell.others ? 1 : 0);
  if (more > 0) {
    drawn.text += fmt::format(" +{}", more);
  }
  return drawn;
}

void append_padded(std::string& out, const Drawn& drawn, std::size_t width, bool colour) {
  const bool coloured = colour && !drawn.colour.empty();
  out += coloured ? drawn.colour : "";
  out += drawn.text;
  out += coloured ? kPlain : "";
  out.append(width - std::min(width, display_width(drawn.text)), ' ');
}

std::string number(std::optional<double> share) {
  return share ? fmt::format("{}", *share) : "";
}

void append_number(JsonWriter& json, std::string_view key, std::optional<double> value) {
  json.key(key);
  if (value) {
    json.value(*value);
  } else {
    json.value(nullptr);
  }
}

}  // namespace

Result<GpuBoard> parse_gpu_board(const std::string& body) {
  sj::parser parser;
  CEEMS_TRY(data, data_in<sj::object>(parser, body));
  sj::array times;
  sj::array rows;
  sj::array missing;
  if (data["times"].get(times) != simdjson::SUCCESS ||
      data["rows"].get(rows) != simdjson::SUCCESS ||
      data["missing"].get(missing) != simdjson::SUCCESS) {
    return unexpected_answer();
  }
  GpuBoard board;
  for (const sj::element& each : times) {
    std::int64_t time = 0;
    if (each.get(time) != simdjson::SUCCESS || time < 0 || time > kMaxTimeMs ||
        board.ends_ms.size() >= kMaxPeriods) {
      return unexpected_answer();
    }
    board.ends_ms.push_back(time);
  }
  for (const sj::element& each : rows) {
    sj::object row;
    sj::array cells;
    if (each.get(row) != simdjson::SUCCESS || row["cells"].get(cells) != simdjson::SUCCESS ||
        cells.size() != board.ends_ms.size()) {
      return unexpected_answer();
    }
    GpuLine line{.cluster = text_of(row, "cluster_id"),
                 .host = text_of(row, "host"),
                 .gpu = text_of(row, "gpu"),
                 .instance = text_of(row, "instance")};
    for (const sj::element& cell : cells) {
      line.cells.push_back(read_cell(cell));
    }
    board.lines.push_back(std::move(line));
  }
  for (const sj::element& each : missing) {
    sj::object one;
    if (each.get(one) == simdjson::SUCCESS) {
      board.missing.push_back(text_of(one, "cluster_id") + ": " + text_of(one, "reason"));
    }
  }
  return board;
}

std::string draw_gpu_board(const GpuBoard& board, const GpuLook& look) {
  const std::size_t periods = board.ends_ms.size();
  std::size_t host_width = 4;
  std::size_t gpu_width = 3;
  std::vector<std::size_t> widths(periods, 5);
  std::vector<std::vector<Drawn>> drawn;
  std::vector<std::string> names;
  for (const GpuLine& line : board.lines) {
    names.push_back(line.instance.empty() ? line.gpu : line.gpu + "/" + line.instance);
    host_width = std::max(host_width, display_width(line.host));
    gpu_width = std::max(gpu_width, display_width(names.back()));
    auto& cells = drawn.emplace_back();
    for (std::size_t i = 0; i < periods; ++i) {
      cells.push_back(draw_cell(line.cells[i], look.ascii));
      widths[i] = std::max(widths[i], display_width(cells.back().text));
    }
  }
  // The last periods that fit, and at least one.
  std::size_t first = periods;
  std::size_t used = host_width + 2 + gpu_width;
  while (first > 0 && (first == periods || used + 2 + widths[first - 1] <= look.width)) {
    used += 2 + widths[--first];
  }
  std::string out;
  const auto end_line = [&out] {
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  };
  append_padded(out, {"Node"}, host_width + 2, false);
  append_padded(out, {"GPU"}, gpu_width, false);
  for (std::size_t i = first; i < periods; ++i) {
    out += "  ";
    append_padded(out, {local_time(board.ends_ms[i], "%H:%M")}, widths[i], false);
  }
  end_line();
  for (std::size_t row = 0; row < drawn.size(); ++row) {
    append_padded(out, {board.lines[row].host}, host_width + 2, false);
    append_padded(out, {names[row]}, gpu_width, false);
    for (std::size_t i = first; i < periods; ++i) {
      out += "  ";
      append_padded(out, drawn[row][i], widths[i], look.colour);
    }
    end_line();
  }
  out += look.ascii
             ? "\nIn percent of the 10 minutes before each time: SMs that worked (GPU busy).\n"
               "! 0  - below 25  = below 50  + below 75  # up to 100  . idle  used by "
               "others  ? unknown\n"
             : "\nIn percent of the 10 minutes before each time: SMs that worked (GPU busy).\n"
               "! 0  ░ below 25  ▒ below 50  ▓ below 75  █ up to 100  · idle  used by "
               "others  ? unknown\n";
  return out;
}

std::string gpu_board_csv(const GpuBoard& board) {
  std::string out = "cluster,node,gpu,instance,end,state,user,unit,busy,sm\n";
  for (const GpuLine& line : board.lines) {
    for (std::size_t i = 0; i < line.cells.size(); ++i) {
      const GpuCell& cell = line.cells[i];
      const std::string start = fmt::format(
          "{},{},{},{},{}", csv_cell(line.cluster), csv_cell(line.host), csv_cell(line.gpu),
          csv_cell(line.instance), local_time(board.ends_ms[i], "%Y-%m-%dT%H:%M:%S%z"));
      for (const GpuUnit& unit : cell.units) {
        out += fmt::format("{},shown,{},{},{},{}\n", start, csv_cell(unit.user),
                           csv_cell(shown_id(unit)), number(unit.busy), number(unit.sm));
      }
      if (cell.others || cell.units.empty()) {
        out += fmt::format("{},{},,,,\n", start,
                           !cell.known   ? "unknown"
                           : cell.others ? "used"
                                         : "idle");
      }
    }
  }
  return out;
}

std::string gpu_board_json(const GpuBoard& board) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("times").begin_array();
  for (const std::int64_t end : board.ends_ms) {
    json.value(end);
  }
  json.end_array().key("rows").begin_array();
  for (const GpuLine& line : board.lines) {
    json.begin_object().member("cluster_id", line.cluster).member("host", line.host);
    json.member("gpu", line.gpu).member("instance", line.instance).key("cells").begin_array();
    for (const GpuCell& cell : line.cells) {
      if (!cell.known) {
        json.value(nullptr);
        continue;
      }
      json.begin_object().key("units").begin_array();
      for (const GpuUnit& unit : cell.units) {
        json.begin_object().member("uuid", unit.uuid).key("user");
        if (unit.user.empty()) {
          json.value(nullptr);
        } else {
          json.value(unit.user);
        }
        if (!unit.array.empty()) {
          json.member("array", unit.array);
        }
        append_number(json, "busy", unit.busy);
        append_number(json, "sm", unit.sm);
        json.end_object();
      }
      json.end_array().member("others", cell.others).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return text + "\n";
}

}  // namespace ceems::cacct
