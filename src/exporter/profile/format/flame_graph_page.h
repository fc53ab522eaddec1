#pragma once

#include <string_view>

namespace ceems::exporter::profile {

// web/pages/flame_graph.*
extern const std::string_view kFlameGraphHtml;
extern const std::string_view kFlameGraphCss;
extern const std::string_view kFlameGraphJs;

}  // namespace ceems::exporter::profile
