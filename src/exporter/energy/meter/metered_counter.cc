#include "exporter/energy/meter/metered_counter.h"

#include "base/log.h"

namespace ceems::exporter::energy {

Reading MeteredCounter::advance(std::uint64_t raw_uj,
                                const MeterContext& context,
                                const SourceInfo& source) {
  const double joules = counter_.advance(raw_uj, context.now, context.suspended);
  publish(context, source);
  return {.joules = joules, .fresh = context.now, .idle_watts = {}};
}

void MeteredCounter::miss(const MeterContext& context, const SourceInfo& source) {
  counter_.miss();
  publish(context, source);
}

void MeteredCounter::publish(const MeterContext& context, const SourceInfo& source) {
  const Rejected& now = counter_.rejected();
  joules_ = now.joules;
  steps_ = now.steps;
  if (now.steps == logged_.steps || (last_log_ && context.now - *last_log_ < kLogPause)) {
    return;
  }
  log::warn("energy: a counter jumped by more than the hardware can draw; the excess is left out",
            {{"source", source.name},
             {"joules", now.joules - logged_.joules},
             {"jumps", now.steps - logged_.steps},
             {"expected_watts", counter_.expected_watts()}});
  logged_ = now;
  last_log_ = context.now;
}

}  // namespace ceems::exporter::energy
