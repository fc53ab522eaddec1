#pragma once

// Configuration keys: hours of the night in which nothing is sent.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/section.h"

namespace ceems::example {

/// The block `quiet` of the configuration file.
struct QuietOptions {
  std::int64_t from = 22, until = 7;       ///< hours of the day
  std::vector<std::string> clusters = {};  ///< ids; empty: all
};

/// Reads the block, which may be absent.
inline Result<QuietOptions> read_quiet(const config::Node& node) {
  QuietOptions options;
  const auto is_hour = [](std::int64_t hour) { return hour >= 0 && hour <= 23; };
  config::Section section(node);
  section.only({"from", "until", "clusters"})
      .integer("from", options.from)
      .integer("until", options.until)
      .list("clusters", options.clusters)
      .refuse(!is_hour(options.from), "from", "expected an hour from 0 to 23")
      .refuse(!is_hour(options.until), "until", "expected an hour from 0 to 23");
  return section.ok() ? Result<QuietOptions>(std::move(options)) : fail(section.done().error());
}

}  // namespace ceems::example
