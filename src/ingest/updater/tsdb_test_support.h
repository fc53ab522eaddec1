#pragma once

// What the tests of the updater `tsdb` share.

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "config/yaml.h"
#include "ingest/updater/tsdb_options.h"
#include "model/unit.h"

namespace ceems::ingest {

inline constexpr std::int64_t kNow = 1'767'225'600'000;
inline constexpr model::Window kQuarter{.start_ms = kNow, .end_ms = kNow + 900'000};

inline model::Unit counted_unit(const std::string& uuid,
                                std::int64_t start_ms = 0,
                                std::int64_t end_ms = 0) {
  model::Unit u;
  u.uuid = uuid;
  u.started_at_ts = kNow + start_ms;
  u.ended_at_ts = end_ms == 0 ? 0 : kNow + end_ms;
  u.total_time_seconds = {{"walltime", 900.0}};
  return u;
}

/// An answer of the TSDB: an instant vector with these values by `uuid`.
inline std::string vector(const std::map<std::string, std::string>& values) {
  std::string text;
  for (const auto& [uuid, value] : values) {
    text += fmt::format(R"({}{{"metric":{{"uuid":"{}"}},"value":[1,"{}"]}})",
                        text.empty() ? "" : ",", uuid, value);
  }
  return R"({"status":"success","data":{"resultType":"vector","result":[)" + text + "]}}";
}

/// The options of this extra_config.
inline TsdbUpdaterOptions options_with(const std::string& yaml) {
  auto node = config::parse_yaml(yaml, "c.yml");
  EXPECT_TRUE(node);
  auto options = read_tsdb_updater_options(*node);
  EXPECT_TRUE(options) << (options ? "" : options.error().message);
  return options ? std::move(*options) : TsdbUpdaterOptions{};
}

}  // namespace ceems::ingest
