#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "exporter/energy/meter/meter.h"
#include "exporter/energy/meter/power_model.h"

namespace ceems::exporter::energy {

/// Parses --collector.energy.idle-watts: "" (learn all), one number (the whole node), or
/// "package=90,dram=12.5" with the domains package, dram, gpu, node, each at most once. Watts are
/// >= 0. kInvalidArgument names the invalid part.
Result<IdleWatts> parse_idle_watts(std::string_view text);

/// Parses --collector.energy.second-thread, a number in 0...1. kInvalidArgument otherwise.
Result<double> parse_second_thread(std::string_view text);

/// Parses --collector.energy.model-watts: "" (no readings) or "idle=95,full=410", in any order.
/// Both are needed, and idle <= full. kInvalidArgument names the invalid part.
Result<std::optional<ModelWatts>> parse_model_watts(std::string_view text);

/// Default of --collector.energy.state-file: energy.json in the first directory of
/// $STATE_DIRECTORY (systemd.exec(5)), which is `directories` and may be null. Empty, which means
/// none, without an absolute path.
std::string default_state_file(const char* directories);

/// Parses a duration flag in the syntax of Prometheus ("1s", "500ms", "10m"), within [min, max].
Result<std::chrono::milliseconds> parse_duration(std::string_view flag,
                                                 std::string_view text,
                                                 std::chrono::milliseconds min,
                                                 std::chrono::milliseconds max);

}  // namespace ceems::exporter::energy
