#include "exporter/energy/meter/power_model.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/strings.h"

namespace ceems::exporter::energy {
namespace {

// TDP is the power that the sockets may draw for long. A server at full load draws more because of
// its memory, fans and losses, and when idle about a fifth of that (median of the newer rows of the
// table).
constexpr double kFullPerTdp = 1.5;
constexpr double kIdlePerFull = 0.2;

std::optional<int> parse_hex(std::string_view text) {
  if (!text.starts_with("0x")) {
    return std::nullopt;
  }
  text.remove_prefix(2);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) {
    return std::nullopt;
  }
  return value;
}

/// Parses "lo-hi" or "value". Nothing for any other text.
std::optional<std::pair<int, int>> parse_range(std::string_view text) {
  const auto low = parse_int<int>(take_until(text, '-'));
  if (!low) {
    return std::nullopt;
  }
  const auto high = text.empty() ? low : parse_int<int>(text);
  if (!high || *high < *low) {
    return std::nullopt;
  }
  return std::pair(*low, *high);
}

bool in(std::string_view range, int value) {
  const auto bounds = parse_range(range);
  return bounds && value >= bounds->first && value <= bounds->second;
}

bool matches(std::string_view pattern, const CpuIdentity& cpu) {
  if (pattern == "*") {
    return true;
  }
  if (take_until(pattern, '/') != cpu.vendor) {
    return false;
  }
  if (pattern == "*") {
    return true;
  }
  if (pattern.starts_with("0x")) {
    return parse_hex(pattern) == cpu.model;
  }
  const std::string_view family = take_until(pattern, '/');
  const std::string_view model = take_until(pattern, '/');
  return in(family, cpu.family) && in(model, cpu.model) &&
         (pattern.empty() || in(pattern, cpu.stepping));
}

/// True for a row that names a CPU family, false for a fallback row.
bool names_family(const CpuPower& row) {
  return !row.match.ends_with('*');
}

bool valid_match(std::string_view pattern) {
  if (pattern == "*") {
    return true;
  }
  if (take_until(pattern, '/').empty()) {
    return false;
  }
  if (pattern == "*" || parse_hex(pattern)) {
    return true;
  }
  const bool numbers =
      parse_range(take_until(pattern, '/')) && parse_range(take_until(pattern, '/'));
  return numbers && (pattern.empty() || parse_range(pattern));
}

/// The value, or 0 if no machine can have such a power.
double watts_or_zero(const std::optional<double>& value) {
  const double watts = value.value_or(0);
  return watts > 0 && watts < 1e6 ? watts : 0;
}

}  // namespace

CpuIdentity parse_cpu_identity(std::string_view text) {
  CpuIdentity cpu;
  int siblings = -1;
  int cores = -1;
  bool any = false;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (trim(line).empty()) {
      if (any) {
        break;  // the end of the first processor
      }
      continue;
    }
    const std::string_view key = trim(take_until(line, ':'));
    const std::string_view value = trim(line);
    any = any || key == "processor";
    if (key == "vendor_id" || key == "CPU implementer") {
      cpu.vendor = value;
    } else if (key == "cpu family") {
      cpu.family = parse_int<int>(value).value_or(-1);
    } else if (key == "model") {
      cpu.model = parse_int<int>(value).value_or(-1);
    } else if (key == "CPU part") {
      cpu.model = parse_hex(value).value_or(-1);
    } else if (key == "stepping") {
      cpu.stepping = parse_int<int>(value).value_or(-1);
    } else if (key == "siblings") {
      siblings = parse_int<int>(value).value_or(-1);
    } else if (key == "cpu cores") {
      cores = parse_int<int>(value).value_or(-1);
    } else if (key == "flags") {
      std::string_view flags = value;
      for (std::string_view flag = take_word(flags); !flag.empty(); flag = take_word(flags)) {
        cpu.hypervisor = cpu.hypervisor || flag == "hypervisor";
      }
    }
  }
  cpu.one_thread_per_core = siblings > 0 && siblings == cores;
  return cpu;
}

Result<std::vector<CpuPower>> parse_power_table(std::string_view text) {
  std::vector<CpuPower> rows;
  bool header = true;
  for (int number = 1; !text.empty(); ++number) {
    std::string_view line = take_until(text, '\n');
    if (line.empty() || line.front() == '#') {
      continue;
    }
    if (std::exchange(header, false)) {
      continue;
    }
    if (std::count(line.begin(), line.end(), ';') != 8) {
      return fail(ErrorCode::kParse, "power table, line {}: expected 9 fields, got '{}'", number,
                  printable(line));
    }
    CpuPower row;
    row.name = take_until(line, ';');
    row.match = take_until(line, ';');
    row.idle_watts = watts_or_zero(parse_double(take_until(line, ';')));
    row.full_watts = watts_or_zero(parse_double(take_until(line, ';')));
    row.threads = parse_int<int>(take_until(line, ';')).value_or(0);
    row.threads_per_core = parse_int<int>(take_until(line, ';')).value_or(0);
    row.year = parse_int<int>(take_until(line, ';')).value_or(0);
    row.system = take_until(line, ';');
    if (!valid_match(row.match)) {
      return fail(ErrorCode::kParse, "power table, line {}: expected a CPU pattern, got '{}'",
                  number, printable(row.match));
    }
    if (row.idle_watts <= 0 || row.full_watts < row.idle_watts || row.threads <= 0 ||
        row.threads_per_core <= 0 || row.year <= 0) {
      return fail(ErrorCode::kParse,
                  "power table, line {}: expected watts, threads and a year, got '{}'", number,
                  printable(row.name));
    }
    rows.push_back(row);
  }
  return rows;
}

const CpuPower* find_power(const std::vector<CpuPower>& table, const CpuIdentity& cpu) {
  const auto row = std::find_if(table.begin(), table.end(), [&](const CpuPower& candidate) {
    return matches(candidate.match, cpu);
  });
  return row == table.end() ? nullptr : &*row;
}

PowerModel make_power_model(const std::vector<CpuPower>& table,
                            const CpuIdentity& cpu,
                            double cpus,
                            std::optional<double> tdp_watts) {
  const CpuPower* row = find_power(table, cpu);
  const double tdp = watts_or_zero(tdp_watts);
  if (tdp > 0 && !cpu.hypervisor && (row == nullptr || !names_family(*row))) {
    const double full = tdp * kFullPerTdp;
    return {.idle_watts = full * kIdlePerFull,
            .full_watts = full,
            .basis = fmt::format("{:.0f} W TDP of all sockets", tdp)};
  }
  if (row == nullptr) {
    return {};
  }
  double threads = std::max(1.0, cpus);
  if (!cpu.hypervisor && cpu.one_thread_per_core) {
    threads *= row->threads_per_core;
  }
  const double share = threads / row->threads;
  return {.idle_watts = row->idle_watts * share,
          .full_watts = row->full_watts * share,
          .basis = fmt::format("{} ({}, SPECpower {}), {:.0f} of {:.0f} threads", row->name,
                               row->system, row->year, threads, row->threads)};
}

ModelMeter::ModelMeter(PowerModel model)
    : source_{.name = "power-model",
              .domain = Domain::kNode,
              .method = Method::kModelled,
              .rank = kModelRank},
      model_(std::move(model)) {}

Result<Reading> ModelMeter::read(const MeterContext& context) {
  const auto last = std::exchange(last_, context.now);
  Reading reading{.joules = 0, .fresh = context.now, .idle_watts = model_.idle_watts};
  if (!last) {
    return reading;
  }
  if (!context.utilisation) {
    return fail(ErrorCode::kUnavailable, "the CPU utilisation is unknown");
  }
  const double busy = std::clamp(*context.utilisation, 0.0, 1.0);
  const double watts = model_.idle_watts + (model_.full_watts - model_.idle_watts) * busy;
  reading.joules =
      watts * std::max(0.0, std::chrono::duration<double>(context.now - *last).count());
  return reading;
}

}  // namespace ceems::exporter::energy
