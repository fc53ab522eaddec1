#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::api {

/// The merged call stacks of a profile. A node is a function as called by the node above it.
struct Flame {
  struct Node {
    std::int64_t start;  ///< where the node begins within the root; its children lie within it
    std::int64_t total;  ///< nanoseconds of CPU time, with all that it called
    std::int64_t self;   ///< without what it called
    std::size_t name;    ///< index into `names`
    bool operator==(const Node&) const = default;
  };
  std::vector<std::string> names;
  /// By depth, from left to right; the first level is the root alone. Empty: there is no profile.
  std::vector<std::vector<Node>> levels;
  std::size_t left_out = 0;  ///< nodes that keep_heaviest() has dropped
};

/// Reads the answer of SelectMergeStacktraces in ProtoJSON (github.com/grafana/pyroscope,
/// api/querier/v1/querier.proto): each node is its distance to the one before, total, self and
/// name. Names, which programs of users choose, are cut to 200 characters and lose those that
/// cannot be printed. kParse for anything else, such as children that are wider than their parent.
Result<Flame> parse_flame(std::string_view body);

/// Drops all but the `count` nodes with the highest totals, and the names of the others. Nodes that
/// stay keep their parents.
void keep_heaviest(Flame& flame, std::size_t count);

}  // namespace ceems::api
