#pragma once

#include <string>
#include <string_view>

#include "net/http.h"

namespace ceems::api::login {

/// What the login page shows.
struct LoginPage {
  std::string base = {};   ///< path of the server without a slash at its end
  std::string next = {};   ///< of safe_next()
  std::string token = {};  ///< of the form
  bool local = false;
  std::string provider = {};  ///< name of the provider; empty: none
  std::string user = {};      ///< to start with
  std::string trouble = {};   ///< what went wrong before; empty: nothing
};

/// The login page for browsers without script: plain HTML, no style or script of its own, strict
/// policy, never kept by caches.
void answer_login_page(net::Response& response, int status, const LoginPage& page);

/// A page that says one thing and leads back to the login page.
void answer_notice(net::Response& response,
                   int status,
                   std::string_view base,
                   std::string_view text);

/// 303 to a path on this server, to be fetched with GET.
void answer_redirect(net::Response& response, std::string_view location);

}  // namespace ceems::api::login
