// Requests to the gate: a line with method, target, type and coding, then the body. What passes
// must mean the same when it is read again, and be written the same.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "gate/profile_request.h"
#include "gate/tsdb_request.h"

namespace {

namespace gate = ceems::gate;

template <typename Request, typename Rules>
void read_twice(const gate::RawRequest& raw, const Rules& rules) {
  auto first = Request::read(raw, rules);
  if (!first || first->selection().is_open()) {
    return;
  }
  const auto units = first->selection().units();
  const gate::Forward forward = first->forward();
  const std::string target = forward.path + (forward.query.empty() ? "" : "?" + forward.query);
  auto second = Request::read({.method = forward.method,
                               .target = target,
                               .content_type = forward.content_type,
                               .body = forward.body},
                              rules);
  CEEMS_CHECK(second.has_value());
  CEEMS_CHECK(second->selection().units() == units);
  CEEMS_CHECK(!second->selection().is_open());
  const gate::Forward again = second->forward();
  CEEMS_CHECK(again.path == forward.path && again.query == forward.query &&
              again.body == forward.body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) {
    return 0;
  }
  std::array<std::string_view, 4> words{};
  std::string_view line = text.substr(0, end);
  for (std::string_view& word : words) {
    word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(line.size(), word.size() + 1));
  }
  const gate::RawRequest raw{.method = words[0],
                             .target = words[1],
                             .content_type = words[2],
                             .content_encoding = words[3],
                             .body = text.substr(end + 1)};
  static const gate::TsdbRules kTsdb;
  static const gate::ProfileRules kProfiles;
  read_twice<gate::TsdbRequest>(raw, kTsdb);
  read_twice<gate::ProfileRequest>(raw, kProfiles);
  return 0;
}
