#include "base/clock.h"

namespace ceems {
namespace {

class RealClock final : public Clock {
 public:
  [[nodiscard]] SystemTime now() const override { return std::chrono::system_clock::now(); }
  [[nodiscard]] SteadyTime steady_now() const override { return std::chrono::steady_clock::now(); }
};

}  // namespace

const Clock& real_clock() {
  static const RealClock clock;
  return clock;
}

}  // namespace ceems
