#include "api/login/pages.h"

#include "api/login/page_texts.h"
#include "base/text/template.h"

namespace ceems::api::login {
namespace {

void set_page_headers(net::Response& response, int status) {
  response.status = status;
  response.set_header("Content-Type", "text/html; charset=utf-8");
  response.set_header("Content-Security-Policy",
                      "default-src 'none'; form-action 'self'; base-uri 'none'; "
                      "frame-ancestors 'none'");
  response.set_header("X-Frame-Options", "DENY");
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Referrer-Policy", "no-referrer");
  response.set_header("Cache-Control", "no-store");
}

}  // namespace

void answer_login_page(net::Response& response, int status, const LoginPage& page) {
  set_page_headers(response, status);
  response.body = render_template(
      kLoginHtml,
      {.texts = {{"base", page.base},
                 {"token", page.token},
                 {"next", page.next},
                 {"query", page.next.empty() ? "" : "?next=" + net::url_encode(page.next)},
                 {"user", page.user},
                 {"local", page.local ? "yes" : ""},
                 {"provider", page.provider},
                 {"trouble", page.trouble}}});
}

void answer_notice(net::Response& response,
                   int status,
                   std::string_view base,
                   std::string_view text) {
  set_page_headers(response, status);
  response.body = render_template(
      kNoticeHtml, {.texts = {{"base", std::string(base)}, {"text", std::string(text)}}});
}

void answer_redirect(net::Response& response, std::string_view location) {
  constexpr int kSeeOther = 303;
  response.status = kSeeOther;
  response.set_header("Location", std::string(location));
  response.set_header("Cache-Control", "no-store");
  response.set_header("Referrer-Policy", "no-referrer");
}

}  // namespace ceems::api::login
