#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "advice/value.h"
#include "api/report/facts.h"
#include "model/flavor.h"

namespace ceems::api {

// The next smaller flavor of a VM. Pure functions.

/// What a flavor has to hold.
struct FlavorNeeds {
  double vcpus = 0;
  double bytes = 0;  ///< of memory
};

/// The flavor that the server was made with, among the flavors of its region: by name and size,
/// with the extra specs that the unit has. Null if it is not there or has changed since.
const model::Flavor* flavor_of(const StoredUnit& unit, std::span<const model::Flavor> flavors);

/// The smallest flavor to which Nova resizes a server of flavor `now`, a member of the list, and
/// that holds the needs: offered, not larger in CPUs and memory and smaller in one of them, with no
/// less of any disk, and the same extra specs. The smallest one has the least share of CPUs and
/// memory together. Null if there is none. Also null with huge pages, because a server's use of
/// them is not measured.
const model::Flavor* smaller_flavor(const model::Flavor& now,
                                    const FlavorNeeds& needs,
                                    std::span<const model::Flavor> flavors);

/// The text as one word of a POSIX shell. Nothing for a text that is empty, begins with a dash,
/// which would make it an option, is longer than 255 bytes, or holds anything but printable ASCII.
std::optional<std::string> shell_word(std::string_view text);

/// Sets flavor.*, if the facts say what a server needed at most and there is a smaller flavor that
/// holds `margin` times as much. Of a server that was launched anew, none are set: the launch after
/// it has a report of its own.
void add_flavor(const Evidence& evidence,
                std::span<const model::Flavor> flavors,
                double margin,
                advice::Facts& facts);

}  // namespace ceems::api
