#pragma once

#include <string_view>

namespace ceems::api::login {

// Templates (base/text/template.h) that the build embeds (cmake/embed.cmake).
extern const std::string_view kLoginHtml;   ///< web/pages/login.html
extern const std::string_view kNoticeHtml;  ///< web/pages/notice.html

}  // namespace ceems::api::login
