#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tool/rules/model.h"

namespace ceems::tool::rules {

using Series = std::set<std::string, std::less<>>;

/// A job that is scraped every 15 s.
inline Job job(std::string name, Series series, Series hosts = {"n1"}) {
  return {.name = std::move(name),
          .series = std::move(series),
          .hosts = std::move(hosts),
          .counting_hosts = {},
          .chassis = {},
          .chips = {},
          .scrape_interval = std::chrono::seconds(15)};
}

inline Common common(double pue = 1, RecordNames names = RecordNames::kOld) {
  return {.pue = pue, .emissions = {}, .names = names, .interval = "30s"};
}

/// The records of a group, with their labels.
inline std::vector<std::string> records(const Group& group) {
  std::vector<std::string> names;
  for (const Rule& rule : group.rules) {
    std::string name = rule.record;
    for (const auto& [label, value] : rule.labels) {
      name += fmt::format(" {}={}", label, value);
    }
    names.push_back(name);
  }
  return names;
}

/// The expression of the first rule of a record.
inline std::string expression(const Group& group, std::string_view record) {
  for (const Rule& rule : group.rules) {
    if (rule.record == record) {
      return rule.expression;
    }
  }
  return "no such record";
}

}  // namespace ceems::tool::rules
