#include "base/clock.h"

namespace ceems {
namespace {

class RealClock final : public Clock {
 public:
  [[nodiscard]] SystemTime now() const override { return std::chrono::system_clock::now(); }
  [[nodiscard]] SteadyTime steady_now() const override { return std::chrono::steady_clock::now(); }
};

}  // namespace

std::int64_t Clock::now_ms() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(now().time_since_epoch()).count();
}

const Clock& real_clock() {
  static const RealClock clock;
  return clock;
}

}  // namespace ceems
