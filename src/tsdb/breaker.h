#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/clock.h"
#include "tsdb/client.h"

namespace ceems::tsdb {

/// How many requests in a row must fail until the others no longer wait for a TSDB, and for how
/// long: then one request tries again.
inline constexpr int kBreakerFailures = 3;
inline constexpr std::chrono::seconds kBreakerPause{10};

/// A transport that stops asking a TSDB that does not answer: requests then fail at once with
/// kUnavailable. Failures are errors of the transport and the statuses 502, 503 and 504. Logs when
/// it begins and ends, with `name`. `clock` must outlive it.
std::unique_ptr<Transport> with_breaker(std::unique_ptr<Transport> transport,
                                        std::string name,
                                        const Clock& clock);

}  // namespace ceems::tsdb
