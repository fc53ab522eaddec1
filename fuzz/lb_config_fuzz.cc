// The configuration of ceems_lb: it never crashes the parser, and what is accepted can be used.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "config/yaml.h"
#include "lb/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace lb = ceems::lb;
  constexpr std::size_t kMaxSize = 8192;
  if (size > kMaxSize) {
    return 0;
  }
  const auto document =
      ceems::config::parse_yaml(std::string_view(reinterpret_cast<const char*>(data), size), "f");
  if (!document) {
    return 0;
  }
  const auto config = lb::parse_config(*document, "/nowhere");
  if (!config) {
    return 0;
  }
  for (const lb::ClusterConfig& cluster : config->clusters) {
    CEEMS_CHECK(!cluster.id.empty());
    CEEMS_CHECK(!cluster.tsdb.empty() || !cluster.profiles.empty());
  }
  CEEMS_CHECK(config->access.cache_age.count() <= 30'000);
  return 0;
}
