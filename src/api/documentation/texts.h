#pragma once

#include <string_view>

namespace ceems::api {

// Files that the build embeds (cmake/embed.cmake). The first two are templates
// (base/text/template.h).
extern const std::string_view kOpenapiJson;  ///< data/openapi.json
extern const std::string_view kDocsHtml;     ///< web/pages/docs.html
extern const std::string_view kDocsCss;      ///< web/pages/docs.css

}  // namespace ceems::api
