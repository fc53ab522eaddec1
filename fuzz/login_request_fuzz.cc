// Headers of login requests, and files of local users.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "api/login/config.h"
#include "api/login/cookies.h"
#include "api/login/local_users.h"
#include "api/login/pages.h"
#include "base/text/html.h"
#include "config/yaml.h"

namespace login = ceems::api::login;
namespace net = ceems::net;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::size_t bytes = 0;
  for (const std::string& value : login::cookie_values({{"Cookie", text}}, "ceems_session")) {
    bytes += value.size();
  }
  if (bytes > std::min(size, std::size_t{64} << 10U)) {
    std::abort();
  }
  net::Request request;
  request.headers = {{"Origin", text}, {"Host", "ceems.example"}};
  if (login::is_same_site(request, "") &&
      login::origin_of(text).find("://ceems.example") == std::string::npos) {
    std::abort();
  }
  const std::string origin = login::origin_of(text);
  if (origin != login::origin_of(origin)) {
    std::abort();
  }
  static_cast<void>(login::path_of(text));
  if (ceems::escape_html(text).find_first_of("<>\"'") != std::string::npos) {
    std::abort();
  }
  if (const auto document = ceems::config::parse_yaml(text, "fuzz.yml"); document) {
    static_cast<void>(login::parse_users(*document));
    std::vector<std::string> warnings;
    static_cast<void>(
        login::parse_login((*document)["identity"], (*document)["roles"], "/etc", warnings));
  }
  return 0;
}
