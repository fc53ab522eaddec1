#include "host/cray_pm_counters.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/strings.h"
#include "host/read_file.h"

namespace ceems::host {
namespace {

constexpr std::string_view kNode = "node";
constexpr std::array<std::string_view, 3> kQuantities{"energy", "power", "temp"};
constexpr std::array<std::string_view, 3> kPrefixes{"cpu", "memory", "accel"};

std::string directory_of(const std::string& sys) {
  return sys + "/cray/pm_counters";
}

}  // namespace

Result<CrayReading> parse_cray_reading(std::string_view text) {
  std::string_view rest = text;
  const auto value = parse_int(take_word(rest));
  if (!value) {
    return fail(ErrorCode::kParse, "expected 'number unit time us', got '{}'",
                printable(trim(text)));
  }
  take_word(rest);  // the unit
  return CrayReading{.value = *value, .timestamp_us = parse_int(take_word(rest))};
}

std::optional<std::string_view> cray_domain(std::string_view file) {
  if (std::ranges::none_of(kQuantities, [&](std::string_view quantity) {
        return file.find(quantity) != std::string_view::npos;
      })) {
    return std::nullopt;
  }
  const std::size_t end = file.find('_');
  const std::string_view domain = file.substr(0, end);
  for (const std::string_view prefix : kPrefixes) {
    if (end != std::string_view::npos && domain.starts_with(prefix) &&
        domain.find_first_not_of("0123456789", prefix.size()) == std::string_view::npos) {
      return domain;
    }
  }
  return kNode;
}

std::string cray_file(std::string_view domain, std::string_view quantity) {
  return domain == kNode ? std::string(quantity) : fmt::format("{}_{}", domain, quantity);
}

Result<std::vector<std::string>> find_cray_domains(const std::string& sys) {
  const auto names = list_directory(directory_of(sys));
  if (!names) {
    const auto code = names.error().code;
    const bool absent = code == ErrorCode::kNotFound || code == ErrorCode::kPermissionDenied;
    return fail(absent ? ErrorCode::kNoData : code, "{}", names.error().message);
  }
  std::vector<std::string> domains;
  for (const std::string& name : *names) {
    if (const auto domain = cray_domain(name)) {
      domains.emplace_back(*domain);
    }
  }
  std::ranges::sort(domains);
  const auto again = std::ranges::unique(domains);
  domains.erase(again.begin(), again.end());
  return domains;
}

Result<CrayReading> read_cray_counter(const std::string& sys,
                                      std::string_view domain,
                                      std::string_view quantity) {
  const std::string path = fmt::format("{}/{}", directory_of(sys), cray_file(domain, quantity));
  CEEMS_TRY(text, read_file(path, kMaxValueSize));
  CEEMS_TRY_IN(path, reading, parse_cray_reading(text));
  return reading;
}

}  // namespace ceems::host
