#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ingest/config.h"

namespace ceems::ingest {

/// The directory of the commands of a resource manager: `cli.path`, or where `program` is found in
/// `search_path`. kNotFound if there is none, or if `cli.path` does not exist.
Result<std::filesystem::path> command_directory(const ClusterConfig& config,
                                                std::string_view program,
                                                const std::string& search_path);

}  // namespace ceems::ingest
