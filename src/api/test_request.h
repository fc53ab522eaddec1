#pragma once

// Requests and answers for tests of the server.

#include <map>
#include <string>
#include <utility>

#include "net/http.h"

namespace ceems::api {

/// `target` is a path, optionally with a query.
inline net::Request request_for(const std::string& method,
                                const std::string& target,
                                net::Headers headers = {}) {
  net::Request request;
  request.method = method;
  request.target = target;
  const auto mark = target.find('?');
  request.path = target.substr(0, mark);
  request.query = mark == std::string::npos ? "" : target.substr(mark + 1);
  request.headers = std::move(headers);
  request.remote_address = "192.0.2.1";
  return request;
}

/// The whole body, including streamed chunks.
inline void read_whole(net::Response& response) {
  while (response.next_chunk && response.next_chunk(response.body)) {
  }
}

using Cookies = std::map<std::string, std::string>;

/// Adds the cookies to a request, as a browser does.
inline void send_cookies(const Cookies& cookies, net::Request& request) {
  std::string all;
  for (const auto& [name, value] : cookies) {
    all.append(name).append("=").append(value).append("; ");
  }
  if (!all.empty()) {
    request.headers.emplace_back("Cookie", all);
  }
}

/// Stores the cookies of an answer, as a browser does.
inline void keep_cookies(const net::Response& response, Cookies& cookies) {
  for (const auto& [header, cookie] : response.headers) {
    if (header != "Set-Cookie") {
      continue;
    }
    const auto equals = cookie.find('=');
    const std::string name = cookie.substr(0, equals);
    if (cookie.find("Max-Age=0;") != std::string::npos) {
      cookies.erase(name);
    } else {
      cookies[name] = cookie.substr(equals + 1, cookie.find(';') - equals - 1);
    }
  }
}

}  // namespace ceems::api
