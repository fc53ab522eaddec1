#pragma once

#include <string_view>

namespace ceems::report {

extern const std::string_view kReportCss;  ///< web/pages/report.css

}  // namespace ceems::report
