#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/profiles/flame.h"
#include "base/check.h"
#include "base/utf8.h"

/// Whatever a profile server sends, what is drawn is a tree whose nodes have names.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto flame = ceems::api::parse_flame({reinterpret_cast<const char*>(data), size});
  if (!flame) {
    return 0;
  }
  const auto check = [&] {
    std::size_t count = 0;
    for (const auto& level : flame->levels) {
      CEEMS_CHECK(!level.empty());
      for (const auto& node : level) {
        CEEMS_CHECK(node.start >= 0 && node.self >= 0 && node.self <= node.total);
        CEEMS_CHECK(node.start + node.total <= flame->levels.front().front().total);
        CEEMS_CHECK(node.name < flame->names.size());
        ++count;
      }
    }
    for (const auto& name : flame->names) {
      CEEMS_CHECK(ceems::is_utf8(name));
    }
    return count;
  };
  const std::size_t all = check();
  constexpr std::size_t kFew = 3;
  keep_heaviest(*flame, kFew);
  CEEMS_CHECK(check() + flame->left_out == all);
  return 0;
}
