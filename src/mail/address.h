#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::mail {

/// Whether the text is a mail address that we send to: LOCAL@DOMAIN of letters, digits and
/// `.!#$%&'*+-/=?^_{|}~`, without quotes, not longer than RFC 5321 allows, and not beginning with
/// `-`, which programs take for an option. Everything else, such as spaces and line ends, is
/// refused.
bool is_address(std::string_view text);

/// The addresses of a recipient as slurmctld passes it on: a list with commas of addresses and of
/// names of users, which get "@domain". kInvalidArgument if one of them is neither, or if there are
/// more than five: users choose them (sbatch --mail-user).
Result<std::vector<std::string>> addresses_of(std::string_view recipient, std::string_view domain);

}  // namespace ceems::mail
