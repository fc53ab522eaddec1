#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ceems::store {

/// A condition on the tags of a unit: the tag is a text that is one of the values.
struct TagFilter {
  std::string name = {};
  std::vector<std::string> values = {};
};

/// Whether a JSON object fulfils all conditions. Text that is not JSON fulfils none.
bool has_tags(std::string_view object, const std::vector<TagFilter>& filters);

}  // namespace ceems::store
