#pragma once

#include <optional>
#include <string_view>

namespace ceems::webui {

/// One file of the web page, embedded in the program. Everything lives as long as the program.
struct Asset {
  std::string_view content;
  std::string_view gzip;          ///< the content compressed (RFC 1952); empty if it saves nothing
  std::string_view content_type;  ///< with charset, ready for the header
  std::string_view etag;          ///< strong, quoted; the compressed form needs a different one
  bool immutable = false;         ///< the name contains a hash of the content: cacheable forever
};

/// The file at `path` below the root of the page, e.g. "assets/index-Bx1.js". One leading '/' is
/// ignored, and "" is index.html. Names must match exactly; which other paths show the page is up
/// to the caller. Safe for concurrent use.
std::optional<Asset> find(std::string_view path);

/// False in a build without npm or with -DCEEMS_WEB_UI=OFF, where find() finds nothing.
bool available();

}  // namespace ceems::webui
