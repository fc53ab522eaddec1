#pragma once

#include <optional>
#include <string_view>

namespace ceems::webui {

/// One file of the web page, embedded in the program. Everything lives as long as the program.
struct Asset {
  std::string_view content;
  std::string_view gzip;          ///< the same, compressed (RFC 1952); empty where it saves nothing
  std::string_view content_type;  ///< with charset, ready for the header
  std::string_view etag;          ///< strong, with its quotes; the compressed form needs its own
  bool immutable = false;         ///< the name holds a hash of the content: cacheable for ever
};

/// The file at `path` below the root of the page, e.g. "assets/index-Bx1.js"; one leading '/' is
/// ignored and "" is index.html. Exact names only: the caller decides what answers with the page.
/// Safe for concurrent use.
std::optional<Asset> find(std::string_view path);

/// False in a build without npm or with -DCEEMS_WEB_UI=OFF: find() then finds nothing.
bool available();

}  // namespace ceems::webui
