#include "host/cgroup/cgroup.h"

#include <array>

#include "base/strings.h"
#include "base/utf8.h"

namespace ceems::host {
namespace {

std::unexpected<Error> bad_line(std::string_view expected, std::string_view line) {
  return fail(ErrorCode::kParse, "expected {}, got '{}'", expected, printable(line));
}

// Calls take(key, value) for each line "key number".
template <typename Take>
Result<> for_each_pair(std::string_view text, Take take) {
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    const auto space = line.find(' ');
    const auto value =
        space == std::string_view::npos ? std::nullopt : parse_int(trim(line.substr(space + 1)));
    if (!value) {
      return bad_line("a key and a number", line);
    }
    take(line.substr(0, space), *value);
  }
  return {};
}

struct DeviceNumber {
  std::uint32_t major;
  std::uint32_t minor;
};

std::optional<DeviceNumber> parse_device_number(std::string_view text) {
  const auto major = parse_int<std::uint32_t>(take_until(text, ':'));
  const auto minor = parse_int<std::uint32_t>(text);
  if (!major || !minor) {
    return std::nullopt;
  }
  return DeviceNumber{*major, *minor};
}

// The value if `word` has the form "key=value".
std::optional<std::string_view> value_of(std::string_view word, std::string_view key) {
  if (word.size() <= key.size() || !word.starts_with(key) || word[key.size()] != '=') {
    return std::nullopt;
  }
  return word.substr(key.size() + 1);
}

std::uint32_t rdma_number(std::string_view text) {
  if (text == "max") {
    return std::numeric_limits<std::uint32_t>::max();
  }
  return parse_int<std::uint32_t>(text).value_or(0);
}

// Takes exactly `digits` digits of `base` off the front of `rest`.
std::optional<std::uint32_t> take_digits(std::string_view& rest,
                                         std::size_t digits,
                                         std::uint32_t base) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (rest.size() < digits) {
    return std::nullopt;
  }
  std::uint32_t value = 0;
  for (const char c : rest.substr(0, digits)) {
    const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    const auto digit = kDigits.substr(0, base).find(lower);
    if (digit == std::string_view::npos) {
      return std::nullopt;
    }
    value = value * base + static_cast<std::uint32_t>(digit);
  }
  rest.remove_prefix(digits);
  return value;
}

// Takes the rest of an escape, after its backslash, off `rest`, and appends what it stands for.
// False if the escape is unknown.
bool take_escape(std::string_view& rest, std::string& out) {
  constexpr std::string_view kNames = "abfnrtv\\\"";
  constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\\"";
  if (rest.empty()) {
    return false;
  }
  const char kind = rest.front();
  if (const auto at = kNames.find(kind); at != std::string_view::npos) {
    out += kValues[at];
    rest.remove_prefix(1);
    return true;
  }
  if (kind >= '0' && kind <= '7') {
    const auto value = take_digits(rest, 3, 8);
    if (!value || *value > 0xFF) {
      return false;
    }
    out += static_cast<char>(*value);
    return true;
  }
  rest.remove_prefix(1);
  if (kind == 'x') {
    const auto value = take_digits(rest, 2, 16);
    if (value) {
      out += static_cast<char>(*value);
    }
    return value.has_value();
  }
  if (kind == 'u' || kind == 'U') {
    const auto value = take_digits(rest, kind == 'u' ? 4 : 8, 16);
    if (!value || !is_code_point(*value)) {
      return false;
    }
    append_utf8(out, *value);
    return true;
  }
  return false;
}

}  // namespace

Result<std::uint64_t> parse_cgroup_value(std::string_view text) {
  const std::string_view word = trim(text);
  if (word == "max") {
    return kCgroupMax;
  }
  if (const auto value = parse_int(word)) {
    return *value;
  }
  if (word.starts_with('-') && parse_int(word.substr(1))) {
    return 0;
  }
  return bad_line("a number", word);
}

Result<CgroupCpuStat> parse_cgroup_cpu_stat(std::string_view text) {
  CgroupCpuStat stat;
  CEEMS_TRY(for_each_pair(text, [&stat](std::string_view key, std::uint64_t value) {
    if (key == "usage_usec") {
      stat.usage_usec = value;
    } else if (key == "user_usec") {
      stat.user_usec = value;
    } else if (key == "system_usec") {
      stat.system_usec = value;
    }
  }));
  return stat;
}

Result<CpuacctStat> parse_cpuacct_stat(std::string_view text) {
  std::optional<std::uint64_t> user;
  std::optional<std::uint64_t> system;
  CEEMS_TRY(for_each_pair(text, [&](std::string_view key, std::uint64_t value) {
    if (key == "user") {
      user = value;
    } else if (key == "system") {
      system = value;
    }
  }));
  if (!user || !system) {
    return bad_line("lines 'user' and 'system'", text);
  }
  return CpuacctStat{*user, *system};
}

Result<CgroupMemoryStat> parse_memory_stat_v1(std::string_view text) {
  CgroupMemoryStat stat;
  CEEMS_TRY(for_each_pair(text, [&stat](std::string_view key, std::uint64_t value) {
    if (key == "total_rss") {
      stat.rss = value;
    } else if (key == "total_cache") {
      stat.cache = value;
    } else if (key == "total_inactive_file") {
      stat.inactive_file = value;
    } else if (key == "total_shmem") {
      stat.shmem = value;
    }
  }));
  return stat;
}

Result<CgroupMemoryStat> parse_memory_stat_v2(std::string_view text) {
  CgroupMemoryStat stat;
  CEEMS_TRY(for_each_pair(text, [&stat](std::string_view key, std::uint64_t value) {
    if (key == "anon") {
      stat.rss = value;
    } else if (key == "file") {
      stat.cache = value;
    } else if (key == "inactive_file") {
      stat.inactive_file = value;
    } else if (key == "shmem") {
      stat.shmem = value;
    } else if (key == "kernel") {
      stat.kernel = value;
    }
  }));
  return stat;
}

Result<CgroupMemoryEvents> parse_memory_events(std::string_view text) {
  CgroupMemoryEvents events;
  CEEMS_TRY(for_each_pair(text, [&events](std::string_view key, std::uint64_t value) {
    if (key == "max") {
      events.max = value;
    } else if (key == "oom") {
      events.oom = value;
    } else if (key == "oom_kill") {
      events.oom_kill = value;
    }
  }));
  return events;
}

Result<CgroupPressure> parse_pressure(std::string_view text) {
  CgroupPressure pressure;
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    std::string_view rest = line;
    const std::string_view kind = take_word(rest);
    std::optional<std::uint64_t> total;
    for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
      if (const auto value = value_of(word, "total")) {
        total = parse_int(*value);
      }
    }
    if (!total) {
      return bad_line("a pressure line with total=N", line);
    }
    if (kind == "some") {
      pressure.some_usec = *total;
    } else if (kind == "full") {
      pressure.full_usec = *total;
    }
  }
  return pressure;
}

std::vector<CgroupIo> parse_io_stat(std::string_view text) {
  std::vector<CgroupIo> result;
  while (!text.empty()) {
    std::string_view rest = take_until(text, '\n');
    const auto device = parse_device_number(take_word(rest));
    if (!device) {
      break;
    }
    CgroupIo io{.major = device->major, .minor = device->minor};
    for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
      const std::string_view key = take_until(word, '=');
      const std::uint64_t value = parse_int(word).value_or(0);
      if (key == "rbytes") {
        io.read_bytes = value;
      } else if (key == "wbytes") {
        io.write_bytes = value;
      } else if (key == "rios") {
        io.read_requests = value;
      } else if (key == "wios") {
        io.write_requests = value;
      }
    }
    result.push_back(io);
  }
  return result;
}

Result<std::vector<BlkioValue>> parse_blkio(std::string_view text) {
  std::vector<BlkioValue> result;
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    std::string_view rest = line;
    std::array<std::string_view, 3> words;
    std::size_t count = 0;
    for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
      if (count < words.size()) {
        words.at(count) = word;
      }
      ++count;
    }
    if (count == 2 && words[0] == "Total") {
      continue;
    }
    const auto device = parse_device_number(words[0]);
    const auto value = count == 2 || count == 3 ? parse_int(words.at(count - 1)) : std::nullopt;
    if (!device || !value) {
      return bad_line("MAJ:MIN, an operation and a number", line);
    }
    if (count == 3 && (words[1] == "Read" || words[1] == "Write")) {
      result.push_back({.major = device->major,
                        .minor = device->minor,
                        .write = words[1] == "Write",
                        .value = *value});
    }
  }
  return result;
}

std::vector<CgroupRdma> parse_rdma(std::string_view text) {
  std::vector<CgroupRdma> result;
  while (!text.empty()) {
    std::string_view rest = take_until(text, '\n');
    const std::string_view device = take_word(rest);
    std::optional<std::uint32_t> handles;
    std::optional<std::uint32_t> objects;
    std::size_t words = 0;
    for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
      ++words;
      if (const auto handle = value_of(word, "hca_handle")) {
        handles = rdma_number(*handle);
      } else if (const auto object = value_of(word, "hca_object")) {
        objects = rdma_number(*object);
      }
    }
    if (words == 2 && handles && objects) {
      result.push_back({std::string(device), *handles, *objects});
    }
  }
  return result;
}

Result<std::uint64_t> count_cpu_list(std::string_view text) {
  constexpr std::uint32_t kMaxCpus = 1U << 20U;  // far above the kernel's own limit of 8192
  std::string_view rest = trim(text);
  if (rest.empty()) {
    return fail(ErrorCode::kParse, "expected a list of CPUs, got nothing");
  }
  std::uint64_t count = 0;
  while (!rest.empty()) {
    const std::string_view item = take_until(rest, ',');
    std::string_view last_text = item;
    const auto first = parse_int<std::uint32_t>(take_until(last_text, '-'));
    const bool range = item.find('-') != std::string_view::npos;
    const auto last = range ? parse_int<std::uint32_t>(last_text) : first;
    if (!first || !last || *last < *first || *last >= kMaxCpus) {
      return bad_line("a CPU number or range", item);
    }
    count += *last - *first + 1;
  }
  return count;
}

std::optional<double> parse_cpu_max(std::string_view text) {
  const auto quota = parse_int(take_word(text));
  const auto period = parse_int(take_word(text));
  if (!quota || !period || *period == 0) {
    return std::nullopt;
  }
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

void parse_cgroup_procs(std::string_view text, std::vector<int>& pids) {
  while (!text.empty()) {
    const auto pid = parse_int<int>(trim(take_until(text, '\n')));
    if (pid && *pid > 0) {
      pids.push_back(*pid);
    }
  }
}

std::optional<bool> parse_populated(std::string_view text) {
  while (!text.empty()) {
    std::string_view rest = take_until(text, '\n');
    if (take_word(rest) == "populated") {
      const std::string_view value = take_word(rest);
      if (value == "0" || value == "1") {
        return value == "1";
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> unescape_path(std::string_view path) {
  std::string result;
  result.reserve(path.size());
  while (!path.empty()) {
    const char c = path.front();
    path.remove_prefix(1);
    if (c == '"' || c == '\n') {
      return std::nullopt;
    }
    if (c != '\\') {
      result += c;
    } else if (!take_escape(path, result)) {
      return std::nullopt;
    }
  }
  return result;
}

MemoryTotals parse_memory_totals(std::string_view meminfo) {
  MemoryTotals totals;
  while (!meminfo.empty()) {
    std::string_view rest = take_until(meminfo, '\n');
    const std::string_view key = take_word(rest);
    if (key == "MemTotal:" || key == "SwapTotal:") {
      const std::uint64_t kilobytes = parse_int(take_word(rest)).value_or(0);
      const std::uint64_t bytes = kilobytes > kCgroupMax / 1024 ? 0 : kilobytes * 1024;
      (key == "MemTotal:" ? totals.memory_bytes : totals.swap_bytes) = bytes;
    }
  }
  return totals;
}

Result<BlockDevices> parse_block_devices(std::string_view diskstats) {
  constexpr std::size_t kMinFields = 14;
  BlockDevices result;
  while (!diskstats.empty()) {
    const std::string_view line = take_until(diskstats, '\n');
    std::string_view rest = line;
    const std::string_view major_text = take_word(rest);
    const std::string_view minor_text = take_word(rest);
    const std::string_view name = take_word(rest);
    std::size_t fields = 3;
    while (!take_word(rest).empty()) {
      ++fields;
    }
    if (fields < kMinFields) {
      continue;
    }
    const auto major = parse_int<std::uint32_t>(major_text);
    const auto minor = parse_int<std::uint32_t>(minor_text);
    if (!major || !minor) {
      return bad_line("device numbers", line);
    }
    result.insert_or_assign({*major, *minor}, std::string(name));
  }
  return result;
}

}  // namespace ceems::host
