#pragma once

#include <chrono>
#include <memory>

#include "base/clock.h"
#include "gate/owners.h"

namespace ceems::lb {

struct BreakerTimes {
  /// A question that fails after at least this time has waited for a source that hangs.
  std::chrono::milliseconds slow{500};
  /// How long nothing is asked after that. It doubles with each further failure.
  std::chrono::milliseconds pause{2000};
  std::chrono::milliseconds max_pause{10'000};
};

/// Owners that stop asking a source that hangs: after a question that failed slowly, all others
/// fail at once (kUnavailable) until the pause is over. Then one question is asked, and the others
/// still fail until it is answered. Quick failures do not begin a pause. `owners` and `clock` must
/// outlive the result.
std::unique_ptr<gate::Owners> interruptible_owners(gate::Owners& owners,
                                                   const Clock& clock,
                                                   const BreakerTimes& times = {});

}  // namespace ceems::lb
