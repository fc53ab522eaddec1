// Parsers of the files that name the GPUs of a SLURM job; see slurm_claims.h.
#include <algorithm>

#include "base/strings.h"
#include "exporter/gpu/claim/slurm_claims.h"

namespace ceems::exporter::gpu {
namespace {

constexpr std::size_t kMaxOrdinals = 1024;
constexpr std::size_t kMaxOrdinal = 32;

std::vector<std::string> split_ordinals(std::string_view text) {
  std::vector<std::string> ordinals;
  while (!text.empty() && ordinals.size() < kMaxOrdinals) {
    const auto part = trim(take_until(text, ','));
    // A GPU that is named twice counts once.
    if (!part.empty() && part.size() <= kMaxOrdinal &&
        std::find(ordinals.begin(), ordinals.end(), part) == ordinals.end()) {
      ordinals.emplace_back(part);
    }
  }
  return ordinals;
}

}  // namespace

std::optional<JobEnvironment> parse_job_environment(std::string_view environ,
                                                    std::string_view job) {
  environ = environ.substr(0, environ.rfind('\0') + 1);
  JobEnvironment found;
  bool of_job = false;
  while (!environ.empty()) {
    std::string_view value = take_until(environ, '\0');
    const auto name = take_until(value, '=');
    if (name == "SLURM_JOB_ID") {
      of_job |= value == job;
    } else if (name == "SLURM_JOB_GPUS") {
      found.job_gpus = split_ordinals(value);
    } else if (name == "SLURM_STEP_GPUS") {
      found.step_gpus = split_ordinals(value);
    } else if (name == "SLURM_SHARDS_ON_NODE" || name == "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") {
      found.shares = parse_int(value).value_or(0);
    }
  }
  return of_job ? std::optional(std::move(found)) : std::nullopt;
}

std::optional<GpuMapFile> parse_gpu_map_file(std::string_view text) {
  GpuMapFile file;
  bool has_shares = false;
  for (auto word = take_word(text); !word.empty(); word = take_word(text)) {
    constexpr std::string_view kShares = "shares=";
    if (word.starts_with(kShares)) {
      const auto shares = parse_int(word.substr(kShares.size()));
      if (!shares || has_shares) {
        return std::nullopt;
      }
      file.shares = *shares;
      has_shares = true;
      continue;
    }
    for (std::string& ordinal : split_ordinals(word)) {
      if (!parse_int(ordinal) || file.ordinals.size() == kMaxOrdinals) {
        return std::nullopt;
      }
      if (std::find(file.ordinals.begin(), file.ordinals.end(), ordinal) == file.ordinals.end()) {
        file.ordinals.push_back(std::move(ordinal));
      }
    }
  }
  return file;
}

}  // namespace ceems::exporter::gpu
