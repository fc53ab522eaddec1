#include "store/tags.h"

#include <algorithm>
#include <cstddef>

#include "base/json_reader.h"

namespace ceems::store {

bool has_tags(std::string_view object, const std::vector<TagFilter>& filters) {
  if (filters.empty()) {
    return true;
  }
  std::vector<bool> fulfilled(filters.size());
  JsonScanner json(object);
  if (!json.take('{')) {
    return false;
  }
  std::string name;
  std::string value;
  for (bool first = true; !json.take('}'); first = false) {
    if ((!first && !json.take(',')) || !json.string(name) || !json.take(':')) {
      return false;
    }
    const bool text = json.at('"');
    value.clear();
    if (text ? !json.string(value) : !json.value(value, 1)) {
      return false;
    }
    for (std::size_t i = 0; i < filters.size(); ++i) {
      if (filters[i].name == name) {  // of repeated names the last counts
        fulfilled[i] =
            text && std::ranges::find(filters[i].values, value) != filters[i].values.end();
      }
    }
  }
  return json.at_end() && std::ranges::find(fulfilled, false) == fulfilled.end();
}

}  // namespace ceems::store
