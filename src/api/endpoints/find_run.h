#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/endpoints/endpoint.h"
#include "api/report/maker.h"
#include "base/result.h"

namespace ceems::api {

/// The run of a unit that the caller may see: the last one, or the one with this start. kNotFound
/// if there is none; passes on errors of the reader.
Result<StoredUnit> find_run(const Services& services,
                            const Call& call,
                            const std::string& uuid,
                            std::optional<std::int64_t> start_ms);

/// The run that a request names by one `cluster_id`, one `uuid` and perhaps `start`; on the plain
/// path, admins find everybody's, too. Nothing if there is none, which was answered then.
std::optional<StoredUnit> find_asked_run(const Services& services, Call& call);

/// The parameter `start`; nothing if it is absent. kInvalidArgument.
Result<std::optional<std::int64_t>> parse_start(const Params& params);

}  // namespace ceems::api
