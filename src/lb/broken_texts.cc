#include "lb/broken_texts.h"

#include <vector>

namespace ceems::lb {

void BrokenTexts::note(std::string_view key, std::size_t servers) {
  const auto now = clock_->steady_now();
  auto entry = texts_.find(key).value_or(Entry{.broken = 0, .last = now});
  if (now - entry.last >= kRefusedFor) {
    entry.broken = 0;
  }
  entry.broken += servers;
  entry.last = now;
  texts_.store(key, entry);
}

bool BrokenTexts::refuses(std::string_view key) {
  const auto entry = texts_.find(key);
  return entry && entry->broken >= kMaxBroken && clock_->steady_now() - entry->last < kRefusedFor;
}

std::string broken_key(std::string_view user, const gate::ParsedRequest& request) {
  std::string key(user);
  const std::vector<std::string> queries = request.queries();
  for (const std::string& query : queries) {
    key.append(1, '\n').append(query);
  }
  if (queries.empty()) {
    const gate::RawRequest& raw = request.raw();
    key.append(1, '\n').append(raw.target.substr(0, raw.target.find('?')));
    key.append(1, '\n').append(raw.body);
  }
  return key;
}

}  // namespace ceems::lb
