#include "webui/asset.h"

#include <algorithm>

#include "webui/files.h"

namespace ceems::webui {

std::optional<Asset> find(std::string_view path) {
  if (path.starts_with('/')) {
    path.remove_prefix(1);
  }
  if (path.empty()) {
    path = "index.html";
  }
  const auto all = files();
  const auto found = std::ranges::lower_bound(all, path, {}, &File::path);
  if (found == all.end() || found->path != path) {
    return std::nullopt;
  }
  return Asset{.content = found->content,
               .gzip = found->gzip,
               .content_type = found->content_type,
               .etag = found->etag,
               .immutable = found->immutable};
}

bool available() {
  return find("index.html").has_value();
}

}  // namespace ceems::webui
