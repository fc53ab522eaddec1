#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ceems::api {

// Ids as squeue, sacct and mails of SLURM show them: task 4 of the array 7100 is 7100_4, several of
// its tasks are 7100_[1,3-5%2], all of them 7100_*; part 1 of the heterogeneous job 8200 is 8200+1,
// all of it 8200+*. The ids of units are other numbers (JobIDRaw).

/// What such an id asks for.
struct ShownIds {
  std::string prefix = {};  ///< with which the ids begin that are to be looked at
  struct Places {
    std::uint64_t first = 0, last = 0, step = 1;
  };
  std::vector<Places> places = {};  ///< of tasks or parts; empty: all

  /// The place of this id, which begins with the prefix; nothing if it is none of them.
  [[nodiscard]] std::optional<std::uint64_t> place_of(std::string_view id) const;
};

/// Nothing for any other text, such as the id of a unit.
std::optional<ShownIds> parse_shown_ids(std::string_view text);

/// The job of a step as sacct shows it: "7100_4" of "7100_4.batch" and "7100_4.0", "9000" of
/// "9000.extern". Any other text as it is: "9000.0" may be the id of a unit elsewhere.
std::string_view job_of_step(std::string_view id);

/// The parts of a list with commas, except those within brackets.
std::vector<std::string_view> split_ids(std::string_view list);

}  // namespace ceems::api
