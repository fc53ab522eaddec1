#include "exporter/energy/meter/power_model.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "host/proc.h"
#include "host/read_file.h"

namespace ceems::exporter::energy {
namespace {

// TDP is the power that the sockets may draw for long. A server at full load draws more because of
// its memory, fans and losses, and when idle about a fifth of that (median of the newer rows of the
// table).
constexpr double kFullPerTdp = 1.5;
constexpr double kIdlePerFull = 0.2;
constexpr double kRestPerSocket = 50;  // as in the table
// Published results with fewer cores to a socket show that a socket's full power falls about half
// as fast as its threads do, and its idle power not at all.
constexpr double kFullBySocket = 0.5;
// Less is not plausible as idle power, so nothing is derived from it.
constexpr double kMinIdle = 0.05;
constexpr int kFields = 15;
constexpr double kLevels = 10;
// SPECpower and vendors count memory in GB of 2^30 bytes.
constexpr double kBytesPerGb = 1 << 30;

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

/// Parses "-12..+34".
std::optional<ErrorRange> parse_error_range(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) {
    return std::nullopt;
  }
  const auto number = [](std::string_view part) {
    part.remove_prefix(part.starts_with('+') ? 1 : 0);
    return parse_double(part);
  };
  const auto low = number(text.substr(0, dots));
  const auto high = number(text.substr(dots + 2));
  if (!low || !high || *low > *high) {
    return std::nullopt;
  }
  return ErrorRange{.low = *low, .high = *high};
}

/// Nine rising watts between idle and full, as parts of the way.
std::optional<PowerShape> parse_levels(std::string_view text, double idle, double full) {
  PowerShape shape{};
  shape.back() = 1;
  double last = idle;
  for (std::size_t i = 1; i + 1 < shape.size(); ++i) {
    const auto watts = parse_double(take_word(text));
    if (!watts || !(*watts >= last) || *watts > full || full <= idle) {
      return std::nullopt;
    }
    last = *watts;
    shape.at(i) = (*watts - idle) / (full - idle);
  }
  return trim(text).empty() ? std::optional(shape) : std::nullopt;
}

/// The value, or 0 if no machine can have such a power.
double watts_or_zero(const std::optional<double>& value) {
  const double watts = value.value_or(0);
  return watts > 0 && watts < 1e6 ? watts : 0;
}

}  // namespace

CpuIdentity parse_cpu_identity(std::string_view text) {
  CpuIdentity cpu;
  if (const auto all = host::parse_cpuinfo(text)) {
    cpu.sockets = all->sockets;
  }
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
    if (std::count(line.begin(), line.end(), ';') != kFields - 1) {
      return fail(ErrorCode::kParse, "power table, line {}: expected {} fields, got '{}'", number,
                  kFields, printable(line));
    }
    CpuPower row;
    row.name = take_until(line, ';');
    row.match = take_until(line, ';');
    row.sockets = parse_int<int>(take_until(line, ';')).value_or(0);
    row.threads = parse_int<int>(take_until(line, ';')).value_or(0);
    row.threads_per_core = parse_int<int>(take_until(line, ';')).value_or(0);
    row.memory_gb = parse_int<int>(take_until(line, ';')).value_or(0);
    row.idle_watts = watts_or_zero(parse_double(take_until(line, ';')));
    const std::string_view levels = take_until(line, ';');
    row.full_watts = watts_or_zero(parse_double(take_until(line, ';')));
    const auto rest = parse_double(take_until(line, ';'));
    row.rest_watts = rest.value_or(0);
    const std::string_view idle_error = take_until(line, ';');
    const std::string_view full_error = take_until(line, ';');
    row.year = parse_int<int>(take_until(line, ';')).value_or(0);
    row.system = take_until(line, ';');
    if (!valid_match(row.match)) {
      return fail(ErrorCode::kParse, "power table, line {}: expected a CPU pattern, got '{}'",
                  number, printable(row.match));
    }
    if (row.idle_watts <= 0 || row.full_watts < row.idle_watts || row.threads <= 0 ||
        row.threads_per_core <= 0 || row.year <= 0 || row.sockets <= 0 || row.memory_gb <= 0 ||
        !rest || row.rest_watts < 0) {
      return fail(ErrorCode::kParse,
                  "power table, line {}: expected sockets, threads, memory, watts and a year, got "
                  "'{}'",
                  number, printable(row.name));
    }
    row.shape = parse_levels(levels, row.idle_watts, row.full_watts);
    if (!levels.empty() && !row.shape) {
      return fail(ErrorCode::kParse,
                  "power table, line {}: expected nine rising watts between idle and full, got "
                  "'{}'",
                  number, printable(levels));
    }
    row.idle_error = parse_error_range(idle_error);
    row.full_error = parse_error_range(full_error);
    if ((!idle_error.empty() && !row.idle_error) || (!full_error.empty() && !row.full_error)) {
      return fail(ErrorCode::kParse,
                  "power table, line {}: expected errors such as -12..+34, got '{}' and '{}'",
                  number, printable(idle_error), printable(full_error));
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

PowerShape typical_shape(const std::vector<CpuPower>& table) {
  PowerShape sum{};
  double count = 0;
  for (auto row = table.begin(); row != table.end(); ++row) {
    // Several rows may quote one system.
    const bool first = std::none_of(
        table.begin(), row, [&](const CpuPower& earlier) { return earlier.system == row->system; });
    if (const std::optional<PowerShape>& shape = row->shape; shape && first) {
      for (std::size_t i = 0; i < sum.size(); ++i) {
        sum.at(i) += shape->at(i);
      }
      ++count;
    }
  }
  if (count == 0) {
    return PowerModel().shape;
  }
  for (double& part : sum) {
    part /= count;
  }
  return sum;
}

double PowerModel::watts(double utilisation) const {
  const double at = std::clamp(utilisation, 0.0, 1.0) * kLevels;
  const auto below = std::min(static_cast<std::size_t>(at), shape.size() - 2);
  const double part = at - static_cast<double>(below);
  const double height = shape.at(below) + part * (shape.at(below + 1) - shape.at(below));
  return idle_watts + (full_watts - idle_watts) * height;
}

PowerModel make_power_model(const std::vector<CpuPower>& table, const Machine& machine) {
  const CpuIdentity& cpu = machine.cpu;
  const CpuPower* row = find_power(table, cpu);
  const double tdp = watts_or_zero(machine.tdp_watts);
  const auto sockets = static_cast<double>(cpu.sockets);
  PowerModel model{.shape = typical_shape(table)};
  if (tdp > 0 && !cpu.hypervisor && (row == nullptr || !names_family(*row))) {
    const double rest = kRestPerSocket * std::max(1.0, sockets);
    model.idle_watts = tdp * kFullPerTdp * kIdlePerFull + rest;
    model.full_watts = tdp * kFullPerTdp + rest;
    model.basis = fmt::format("{:.0f} W TDP of all sockets, {:.0f} W for the rest", tdp, rest);
    return model;
  }
  if (row == nullptr) {
    return model;
  }
  double threads = std::max(1.0, machine.cpus);
  if (!cpu.hypervisor && cpu.one_thread_per_core) {
    threads *= row->threads_per_core;
  }
  const double by_threads = threads / row->threads;
  const bool whole = !cpu.hypervisor && sockets > 0;
  const double by_sockets = whole ? sockets / row->sockets : by_threads;
  const double full_share = kFullBySocket * by_sockets + (1 - kFullBySocket) * by_threads;
  const double more_gb = std::max(0.0, machine.memory_gb - row->memory_gb * by_sockets);
  const double rest = row->rest_watts * by_sockets;
  const double idle = row->idle_watts * by_sockets;
  model.idle_watts = idle + kIdleWattsPerGb * more_gb + rest;
  model.full_watts =
      std::max(idle, row->full_watts * full_share) + kFullWattsPerGb * more_gb + rest;
  model.shape = row->shape.value_or(model.shape);
  model.idle_error = row->idle_error;
  model.full_error = row->full_error;
  model.family = names_family(*row) ? row->name : std::string_view();
  model.basis = fmt::format("{} ({}, SPECpower {}), {:.0f} of {:.0f} threads", row->name,
                            row->system, row->year, threads, row->threads);
  if (whole) {
    model.basis += fmt::format(", {:.0f} of {:.0f} sockets", sockets, row->sockets);
  }
  model.basis += fmt::format("; {:.0f} GB more memory, {:.0f} W for the rest", more_gb, rest);
  return model;
}

PowerModel calibrated(PowerModel model, const ModelWatts& readings) {
  model.idle_watts = readings.idle;
  model.full_watts = readings.full;
  model.calibrated = true;
  model.family.clear();
  model.basis = "two readings of a wattmeter";
  model.idle_error = model.full_error = std::nullopt;
  return model;
}

AssumedIdle assumed_idle(const PowerModel& model) {
  if ((model.family.empty() && !model.calibrated) || !(model.idle_watts > 0) ||
      !(model.full_watts > model.idle_watts)) {
    return {};
  }
  const double ratio = std::clamp(model.idle_watts / model.full_watts, kMinIdle, 1.0);
  return {.packages = ratio, .memory = kIdleWattsPerGb / kFullWattsPerGb, .node = ratio};
}

Result<PowerModel> host_power_model(const host::Paths& paths, std::optional<double> tdp_watts) {
  const auto stat = host::read_file((paths.proc / "stat").string());
  CEEMS_TRY(times, stat ? host::parse_stat(*stat) : fail(stat.error()));
  CEEMS_TRY(table, parse_power_table(kCpusCsv));
  Machine machine{.cpu = {}, .cpus = static_cast<double>(times.cpus), .tdp_watts = tdp_watts};
  if (const auto text = host::read_file((paths.proc / "cpuinfo").string())) {
    machine.cpu = parse_cpu_identity(*text);
  }
  const auto text = host::read_file((paths.proc / "meminfo").string());
  std::vector<host::MeminfoLine> lines;
  if (text && host::parse_meminfo(*text, lines)) {
    const auto total = std::ranges::find(lines, "MemTotal", &host::MeminfoLine::key);
    machine.memory_gb = total == lines.end() ? 0 : static_cast<double>(total->value) / kBytesPerGb;
  }
  return make_power_model(table, machine);
}

const ModelMeter* find_model(const Meters& meters) {
  for (const auto& meter : meters) {
    if (const auto* model = dynamic_cast<const ModelMeter*>(meter.get())) {
      return model;
    }
  }
  return nullptr;
}

void calibrate(Meters& meters, const ModelWatts& readings) {
  const ModelMeter* old = find_model(meters);
  const PowerModel model = calibrated(old == nullptr ? PowerModel() : old->model(), readings);
  log::info("power model calibrated",
            {{"idle_watts", model.idle_watts}, {"full_watts", model.full_watts}});
  std::erase_if(meters, [old](const auto& meter) { return meter.get() == old; });
  meters.push_back(std::make_shared<ModelMeter>(model));
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
  reading.joules = model_.watts(*context.utilisation) *
                   std::max(0.0, std::chrono::duration<double>(context.now - *last).count());
  return reading;
}

}  // namespace ceems::exporter::energy
