#include "host/powercap.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/strings.h"
#include "host/read_file.h"

namespace ceems::host {
namespace {

constexpr int kMaxIndex = 1'000'000;
constexpr int kMaxConstraints = 3;  // long_term, short_term, peak_power

Result<std::uint64_t> parse_number(std::string_view text, std::string_view path) {
  const auto value = parse_int(trim(text));
  if (!value) {
    return fail(ErrorCode::kParse, "{}: expected a number, got '{}'", path, printable(trim(text)));
  }
  return *value;
}

}  // namespace

std::vector<std::pair<std::string, int>> number_zones(const std::vector<std::string>& names) {
  std::map<std::string, int> next;
  std::vector<std::pair<std::string, int>> numbered;
  numbered.reserve(names.size());
  for (const std::string& text : names) {
    const auto parts = split(text, '-');
    auto number = parts.size() == 2 ? parse_int<int>(parts[1]) : std::nullopt;
    if (number && (*number < 0 || *number > kMaxIndex)) {
      number.reset();
    }
    std::string name(number ? parts[0] : std::string_view(text));
    const int index = number.value_or(next[name]);
    next[name] = index + 1;
    numbered.emplace_back(std::move(name), index);
  }
  return numbered;
}

Powercap::Powercap(const std::string& sys, Opener opener)
    : root_(sys + "/class/powercap"), opener_(std::move(opener)) {}

Result<> Powercap::scan() {
  auto entries = list_directory(root_);
  if (!entries) {
    entries_.clear();
    zones_.clear();
    counters_.clear();
    return fail(ErrorCode::kNoData, "{}", entries.error().message);
  }
  if (*entries == entries_ && !zones_.empty()) {
    return {};
  }
  std::vector<PowercapZone> found;
  std::vector<std::string> names;
  for (const std::string& entry : *entries) {
    const std::string path = root_ + "/" + entry;
    if (!read_file((path + "/name").c_str(), buffer_, kMaxValueSize)) {
      continue;
    }
    std::string name(trim(buffer_));
    const auto range = read_number(path + "/max_energy_range_uj");
    if (range && !name.empty()) {
      found.push_back({entry, path, {}, 0, *range});
      names.push_back(std::move(name));
    }
  }
  const auto numbered = number_zones(names);
  for (std::size_t i = 0; i < found.size(); ++i) {
    found[i].name = numbered[i].first;
    found[i].index = numbered[i].second;
  }
  entries_ = std::move(*entries);
  zones_ = std::move(found);
  counters_.clear();
  for (const PowercapZone& zone : zones_) {
    counters_.emplace_back(zone.path + "/energy_uj", opener_);
  }
  return {};
}

Result<std::uint64_t> Powercap::energy_uj(std::size_t zone) {
  return counters_.at(zone).read();
}

Result<std::uint64_t> Powercap::power_limit_uw(std::size_t zone) {
  const std::string constraint = zones_.at(zone).path + "/constraint_";
  const auto first = read_number(constraint + "0_time_window_us");
  const auto second = read_number(constraint + "1_time_window_us");
  const bool use_second = second && (!first || *second > *first);
  return read_number(constraint + (use_second ? "1" : "0") + "_power_limit_uw");
}

Result<std::uint64_t> Powercap::highest_limit_uw(std::size_t zone) {
  std::optional<std::uint64_t> highest;
  for (int i = 0; i < kMaxConstraints; ++i) {
    const std::string constraint = fmt::format("{}/constraint_{}_", zones_.at(zone).path, i);
    for (const std::string_view file : {"power_limit_uw", "max_power_uw"}) {
      if (const auto watts = read_number(constraint + std::string(file))) {
        highest = std::max(highest.value_or(0), *watts);
      }
    }
  }
  if (!highest) {
    return fail(ErrorCode::kNoData, "{}: no power limit", zones_.at(zone).path);
  }
  return *highest;
}

Result<std::uint64_t> Powercap::read_number(const std::string& path) {
  CEEMS_TRY(read_file(path.c_str(), buffer_, kMaxValueSize));
  return parse_number(buffer_, path);
}

}  // namespace ceems::host
