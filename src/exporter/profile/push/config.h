#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/yaml.h"
#include "exporter/profile/debuginfod/debuginfod.h"
#include "exporter/profile/symbol/demangle.h"
#include "net/client/client.h"

namespace ceems::exporter::profile {

/// `ceems_profiler.ebpf`: what is sampled, and how.
struct SamplingConfig {
  std::chrono::milliseconds collect_interval{30'000};
  std::chrono::milliseconds discover_interval{30'000};
  bool collect_user_profile = true;
  bool collect_kernel_profile = false;
  bool python_enabled = true;
  std::int64_t sample_rate = 97;  ///< Hz
  DemangleMode demangle = DemangleMode::kNone;
  std::int64_t build_id_cache_size = 64;
  std::int64_t pid_cache_size = 32;
  std::int64_t same_file_cache_size = 8;
  std::int64_t cache_rounds = 3;
  std::int64_t pid_map_size = 2048;  ///< StackSampler holds 65,536 at most
  std::int64_t symbols_map_size = 16384;
};

/// `ceems_profiler.pyroscope`: where profiles are pushed.
struct PushConfig {
  std::string url = "http://localhost:4040";  ///< http or https, without a slash at its end
  std::map<std::string, std::string> external_labels = {};
  bool gzip = false;  ///< compress requests as a whole; profiles in them always are
  std::int64_t queue_size = 512;
  std::int64_t retries = 5;
  net::ClientOptions client = {};  ///< holds secrets, which are never logged
};

/// The configuration of the profiler (docs/exporter/profiling.md).
struct ProfilerConfig {
  SamplingConfig sampling = {};
  PushConfig push = {};
  DebuginfodOptions debuginfod = {};  ///< without URLs, nothing is fetched
};

/// Reads the document, which may be absent. Sections of other programs are not checked. Relative
/// file names are relative to `directory`. `hostname` replaces {hostname} in values of external
/// labels. All errors are kInvalidArgument: "file:line: key: message", without any secret.
Result<ProfilerConfig> parse_config(const config::Node& document,
                                    const std::string& directory,
                                    std::string_view hostname);

/// Reads --profiling.ebpf.config.file. Without a file all values are the defaults.
Result<ProfilerConfig> read_config(const std::string& path,
                                   bool expand_env,
                                   std::string_view hostname);

}  // namespace ceems::exporter::profile
