// Shared nodes on which a unit slows another one down, and storms on file systems, of which the
// cause is known.
#pragma once

#include <cstddef>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "fleet/io_storms.h"
#include "fleet/neighbours.h"

namespace ceems::bench::fleet {

struct SharedNode {
  std::vector<ceems::fleet::NodeUnit> units;
  std::string victim, suspect;
};

/// Two hours of a node with two to six units, of which the first suffers by the share `coupling`
/// while the second is active; 0: none does. The suspect is active for about a third of the time,
/// in turns of 3 to 15 minutes. The cycles per instruction of each unit drift and have noise
/// (standard deviation 3 %), and half of the units have phases of 10 to 60 minutes that differ by
/// up to 30 %. One value in a hundred is missing. With coupling 0, this is a shuffled trace: what a
/// unit does says nothing about the others.
SharedNode simulate_node(double coupling, std::mt19937_64& random);

struct Storm {
  std::vector<ceems::fleet::FileSystem> systems;
  ceems::fleet::Waits waits;
  std::string at_fault;  ///< empty: a day without a storm
};

/// Two hours of two file systems with 60 units. In a storm of 15 to 60 minutes, one unit creates
/// and opens files until half of the others wait, as do three units that use neither file system;
/// meanwhile another unit reads most of all bytes,
/// which holds no one up.
Storm simulate_storm(bool storm, std::mt19937_64& random);

}  // namespace ceems::bench::fleet
