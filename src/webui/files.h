#pragma once

#include <span>
#include <string_view>

namespace ceems::webui {

/// A row of the table that cmake/embed.py writes. Rows are sorted by path.
struct File {
  std::string_view path;
  std::string_view content;
  std::string_view gzip;
  std::string_view content_type;
  std::string_view etag;
  bool immutable;
};

/// All embedded files; empty in a build without the page.
std::span<const File> files();

}  // namespace ceems::webui
