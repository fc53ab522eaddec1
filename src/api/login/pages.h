#pragma once

#include <string>
#include <string_view>

#include "net/http.h"

namespace ceems::api::login {

/// The content of the login page.
struct LoginPage {
  std::string base = {};   ///< path of the server without a trailing slash
  std::string next = {};   ///< checked by safe_next()
  std::string token = {};  ///< form token
  bool local = false;
  std::string provider = {};  ///< name of the OpenID Connect provider; empty: none
  std::string user = {};      ///< initial value of the field
  std::string trouble = {};   ///< error of the last attempt; empty: none
};

/// Answers with the login page for browsers without JavaScript: plain HTML without styles or
/// scripts, with a strict content security policy, and not cached.
void answer_login_page(net::Response& response, int status, const LoginPage& page);

/// Answers with a page that shows a message and links to the login page.
void answer_notice(net::Response& response,
                   int status,
                   std::string_view base,
                   std::string_view text);

/// Redirects to a path on this server with 303, so the browser uses GET.
void answer_redirect(net::Response& response, std::string_view location);

}  // namespace ceems::api::login
