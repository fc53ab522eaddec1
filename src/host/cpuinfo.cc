#include "host/cpuinfo.h"

#include <map>

#include "base/strings.h"

namespace ceems::host {

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

}  // namespace ceems::host
