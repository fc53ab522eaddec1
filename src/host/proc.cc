#include "host/proc.h"

#include <limits>
#include <map>

#include "base/strings.h"

namespace ceems::host {
namespace {

Result<CpuTimes> parse_times(std::string_view rest) {
  CpuTimes times;
  const std::array fields{&times.user,   &times.nice, &times.system,  &times.idle,
                          &times.iowait, &times.irq,  &times.softirq, &times.steal};
  for (std::uint64_t* field : fields) {
    const std::string_view word = take_word(rest);
    if (word.empty()) {
      break;
    }
    const auto value = parse_int(word);
    if (!value) {
      return fail(ErrorCode::kParse, "line 'cpu': expected a number, got '{}'", printable(word));
    }
    *field = *value;
  }
  return times;
}

constexpr std::uint64_t kKibibyte = 1024;

}  // namespace

Result<Cpuinfo> parse_cpuinfo(std::string_view text) {
  Cpuinfo info;
  // "cpu cores" by "physical id". CPUs without an id share the entry "": their cores are counted
  // once, but the entry does not count as a socket.
  std::map<std::string_view, std::size_t> cores;
  std::string_view socket;
  while (!text.empty()) {
    std::string_view value = take_until(text, '\n');
    if (!value.contains(':')) {
      continue;
    }
    const std::string_view key = trim(take_until(value, ':'));
    value = trim(value);
    if (key == "processor" || key.starts_with("processor ")) {  // s390: "processor 0: version = 00"
      ++info.processors;
      socket = {};
    } else if (key == "physical id") {
      socket = value;
      cores.try_emplace(socket, 0);
    } else if (key == "cpu cores") {
      if (const auto count = parse_int<std::size_t>(value); count && *count < (1U << 20U)) {
        cores[socket] = *count;
      }
    } else if (key == "vendor_id" && info.vendor.empty()) {
      info.vendor = printable(value);
    } else if ((key == "model name" || key == "cpu") && info.model_name.empty()) {
      info.model_name = printable(value);
    } else if (key == "cpu family" && info.family < 0) {
      info.family = parse_int<int>(value).value_or(-1);
    } else if (key == "model" && info.model < 0) {
      info.model = parse_int<int>(value).value_or(-1);
    }
  }
  if (info.processors == 0) {
    return fail(ErrorCode::kParse, "no processor entry");
  }
  for (const auto& [id, count] : cores) {
    info.physical_cores += count;
    info.sockets += id.empty() ? 0U : 1U;
  }
  return info;
}

std::uint64_t busy_ticks(const CpuTimes& times) {
  return times.user + times.nice + times.system + times.irq + times.softirq;
}

std::uint64_t all_ticks(const CpuTimes& times) {
  return busy_ticks(times) + times.idle + times.iowait + times.steal;
}

Result<Stat> parse_stat(std::string_view text) {
  Stat stat;
  bool aggregate = false;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (!line.starts_with("cpu")) {
      if (aggregate) {
        break;  // all cpu lines are at the top
      }
      continue;
    }
    const std::string_view name = take_word(line);
    if (name == "cpu") {
      CEEMS_TRY(times, parse_times(line));
      stat.total = times;
      aggregate = true;
    } else if (parse_int(name.substr(3))) {
      ++stat.cpus;
    }
  }
  if (!aggregate) {
    return fail(ErrorCode::kParse, "no line 'cpu'");
  }
  return stat;
}

void parse_busy_cpus(std::string_view text, std::vector<BusyCpu>& cpus) {
  cpus.clear();
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (!line.starts_with("cpu")) {
      if (!cpus.empty()) {
        break;
      }
      continue;
    }
    const auto cpu = parse_int<int>(take_word(line).substr(3));
    if (!cpu || *cpu < 0) {
      continue;
    }
    const auto times = parse_times(line);
    if (times) {
      cpus.push_back({.cpu = *cpu, .ticks = busy_ticks(*times)});
    }
  }
}

Result<> parse_meminfo(std::string_view text, std::vector<MeminfoLine>& lines) {
  lines.clear();
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = take_until(text, '\n');
    std::string_view rest = line;
    std::string_view key = take_word(rest);
    if (key.empty()) {
      continue;
    }
    const auto value = parse_int(take_word(rest));
    const bool is_bytes = !take_word(rest).empty();
    const bool fits =
        value && (!is_bytes || *value <= std::numeric_limits<std::uint64_t>::max() / kKibibyte);
    if (!key.ends_with(':') || !fits || !take_word(rest).empty()) {
      return fail(ErrorCode::kParse, "line {}: expected 'key: number [kB]', got '{}'", number,
                  printable(line));
    }
    key.remove_suffix(1);
    lines.push_back({key, is_bytes ? *value * kKibibyte : *value, is_bytes});
  }
  return {};
}

}  // namespace ceems::host
