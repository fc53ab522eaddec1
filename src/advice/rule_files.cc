#include "advice/rule_files.h"

#include <utility>

#include "base/check.h"

namespace ceems::advice {

const std::vector<config::Node>& core_documents() {
  static const auto kAll = [] {
    std::vector<config::Node> all;
    for (const auto& [name, text] : rule_files::files()) {
      auto document = config::parse_yaml(text, name);
      CEEMS_CHECK(document.has_value());
      all.push_back(std::move(*document));
    }
    return all;
  }();
  return kAll;
}

}  // namespace ceems::advice
