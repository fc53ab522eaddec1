// The configuration of the profiler: it never crashes the parser, and what is accepted can be used.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "config/yaml.h"
#include "exporter/profile/push/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace profile = ceems::exporter::profile;
  constexpr std::size_t kMaxSize = 8192;
  if (size > kMaxSize) {
    return 0;
  }
  const auto document =
      ceems::config::parse_yaml(std::string_view(reinterpret_cast<const char*>(data), size), "f");
  if (!document) {
    return 0;
  }
  const auto config = profile::parse_config(*document, "/nowhere", "node{hostname}");
  if (!config) {
    return 0;
  }
  CEEMS_CHECK(config->sampling.sample_rate >= 1);
  CEEMS_CHECK(config->sampling.collect_interval.count() >= 100);
  CEEMS_CHECK(config->sampling.discover_interval.count() >= 100);
  const profile::PushConfig& push = config->push;
  CEEMS_CHECK(push.url.starts_with("http") && !push.url.ends_with('/'));
  CEEMS_CHECK(push.url.find_first_of("?# \r\n") == std::string::npos);
  CEEMS_CHECK(push.queue_size >= 1 && push.retries >= 0);
  CEEMS_CHECK(!push.external_labels.contains("service_name"));
  return 0;
}
