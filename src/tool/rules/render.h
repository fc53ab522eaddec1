#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tool/rules/model.h"

namespace ceems::tool::rules {

/// The text of a file of recording rules.
std::string rule_file(const std::vector<Group>& groups);

/// Names of files for jobs. A job may have any name; the file has only letters, digits, '.', '_'
/// and '-', does not begin with '.', and no two jobs share one.
class FileNames {
 public:
  /// The name for `stem`, which ends in `suffix`.
  std::string name(std::string_view stem, std::string_view suffix);

 private:
  std::map<std::string, int, std::less<>> used_;
};

/// A text as a YAML scalar in one line: plain where that is safe, otherwise in double quotes.
std::string yaml_scalar(std::string_view text);

}  // namespace ceems::tool::rules
