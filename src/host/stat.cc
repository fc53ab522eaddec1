#include "host/stat.h"

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

}  // namespace

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

}  // namespace ceems::host
