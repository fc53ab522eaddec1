#include "api/login/pages.h"

#include <fmt/format.h>

#include "base/html.h"

namespace ceems::api::login {
namespace {

void set_page_headers(net::Response& response, int status) {
  response.status = status;
  response.set_header("Content-Type", "text/html; charset=utf-8");
  response.set_header("Content-Security-Policy",
                      "default-src 'none'; form-action 'self'; base-uri 'none'; "
                      "frame-ancestors 'none'");
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Referrer-Policy", "no-referrer");
  response.set_header("Cache-Control", "no-store");
}

std::string document(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<meta name=\"color-scheme\" content=\"light dark\">"
      "<title>{} – "
      "CEEMS</title></head>\n<body>\n<main>\n<h1>{}</h1>\n{}</main>\n</body>\n</html>\n",
      title, title, body);
}

}  // namespace

void answer_login_page(net::Response& response, int status, const LoginPage& page) {
  set_page_headers(response, status);
  std::string body;
  if (!page.trouble.empty()) {
    body += fmt::format("<p role=\"alert\" id=\"trouble\"><strong>{}</strong></p>\n",
                        escape_html(page.trouble));
  }
  if (page.local) {
    body += fmt::format(
        "<form method=\"post\" action=\"{}/login\">\n"
        "<input type=\"hidden\" name=\"token\" value=\"{}\">"
        "<input type=\"hidden\" name=\"next\" value=\"{}\">\n"
        "<p><label for=\"user\">User name</label><br>"
        "<input id=\"user\" name=\"user\" value=\"{}\" autocomplete=\"username\" "
        "autocapitalize=\"none\" spellcheck=\"false\" required></p>\n"
        "<p><label for=\"password\">Password</label><br>"
        "<input id=\"password\" name=\"password\" type=\"password\" "
        "autocomplete=\"current-password\" required{}></p>\n"
        "<p><button>Log in</button></p>\n</form>\n",
        escape_html(page.base), escape_html(page.token), escape_html(page.next),
        escape_html(page.user), page.trouble.empty() ? "" : " aria-describedby=\"trouble\"");
  }
  if (!page.provider.empty()) {
    body += fmt::format(
        "<p><a href=\"{}/login/oidc{}\">Sign in with {}</a></p>\n", escape_html(page.base),
        page.next.empty() ? "" : "?next=" + net::url_encode(page.next), escape_html(page.provider));
  }
  response.body = document("Log in", body);
}

void answer_notice(net::Response& response,
                   int status,
                   std::string_view base,
                   std::string_view text) {
  set_page_headers(response, status);
  response.body = document(
      "Log in", fmt::format("<p role=\"alert\">{}</p>\n<p><a href=\"{}/login\">Back to the login "
                            "page</a></p>\n",
                            escape_html(text), escape_html(base)));
}

void answer_redirect(net::Response& response, std::string_view location) {
  constexpr int kSeeOther = 303;
  response.status = kSeeOther;
  response.set_header("Location", std::string(location));
  response.set_header("Cache-Control", "no-store");
  response.set_header("Referrer-Policy", "no-referrer");
}

}  // namespace ceems::api::login
