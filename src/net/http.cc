#include "net/http.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace ceems::net {
namespace {

/// The value of each byte that is a hexadecimal digit; -1 for all others.
constexpr auto kHexDigits = [] {
  std::array<signed char, 256> table{};
  table.fill(-1);
  for (int value = 0; value < 16; ++value) {
    table.at(static_cast<unsigned char>("0123456789abcdef"[value])) =
        static_cast<signed char>(value);
    table.at(static_cast<unsigned char>("0123456789ABCDEF"[value])) =
        static_cast<signed char>(value);
  }
  return table;
}();

int hex_digit(char c) {
  return kHexDigits[static_cast<unsigned char>(c)];
}

/// Decodes form text. An invalid escape is kept as it is, so that a form is not rejected for a
/// stray '%'.
std::string form_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
        hex_digit(text[i + 2]) >= 0) {
      out.push_back(static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2])));
      i += 2;
    } else {
      out.push_back(c == '+' ? ' ' : c);
    }
  }
  return out;
}

/// Bytes that stand for themselves in every part of a URL (RFC 3986 §2.3).
constexpr auto kUnreserved = [] {
  std::array<bool, 256> table{};
  for (const char byte : std::string_view("0123456789-._~abcdefghijklmnopqrstuvwxyz"
                                          "ABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    table.at(static_cast<unsigned char>(byte)) = true;
  }
  return table;
}();

}  // namespace

const std::string* find_header(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (same_in_any_case(key, name)) {
      return &value;
    }
  }
  return nullptr;
}

std::vector<std::pair<std::string, std::string>> parse_query(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!query.empty()) {
    std::string_view part = take_until(query, '&');
    if (part.empty()) {
      continue;
    }
    const std::string_view key = take_until(part, '=');
    pairs.emplace_back(form_decode(key), form_decode(part));
  }
  return pairs;
}

std::optional<std::string> url_decode(std::string_view text, Plus plus) {
  const char of_plus = plus == Plus::kIsBlank ? ' ' : '+';
  bool broken = false;
  std::string out;
  out.resize_and_overwrite(text.size(), [&](char* bytes, std::size_t /*size*/) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      char byte = text[i];
      if (byte == '%') {
        const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
        const int low = high < 0 ? -1 : hex_digit(text[i + 2]);
        if (low < 0) {
          broken = true;
          return std::size_t{0};
        }
        byte = static_cast<char>(high * 16 + low);
        i += 2;
      } else if (byte == '+') {
        byte = of_plus;
      }
      bytes[length++] = byte;
    }
    return length;
  });
  return broken ? std::nullopt : std::optional(std::move(out));
}

std::string url_encode(std::string_view text) {
  std::string out;
  append_url_encoded(out, text);
  return out;
}

void append_url_encoded(std::string& out, std::string_view text) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  const std::size_t begin = out.size();
  out.resize_and_overwrite(begin + text.size() * 3, [&](char* bytes, std::size_t /*size*/) {
    std::size_t length = begin;
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (kUnreserved[byte]) {
        bytes[length++] = c;
        continue;
      }
      bytes[length++] = '%';
      bytes[length++] = kHex[byte >> 4U];
      bytes[length++] = kHex[byte & 0xFU];
    }
    return length;
  });
}

void append_in_line(std::string& out, std::string_view text) {
  const std::size_t begin = out.size();
  out += text;
  // Such bytes are rare, and three fast searches cost less than testing every byte.
  if (!text.contains('\n') && !text.contains('\r') && !text.contains('\0')) {
    return;
  }
  std::replace_if(
      out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(),
      [](char byte) { return byte == '\r' || byte == '\n' || byte == '\0'; }, ' ');
}

std::optional<std::string> clean_path(std::string_view path) {
  std::vector<std::string_view> parts;
  std::string_view rest = path.starts_with('/') ? path.substr(1) : path;
  const bool directory = path.size() > 1 && path.ends_with('/');
  while (!rest.empty()) {
    const std::string_view part = take_until(rest, '/');
    if (part == "..") {
      if (!parts.empty()) {
        parts.pop_back();
      }
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
  }
  std::string clean;
  for (const std::string_view part : parts) {
    clean.append("/").append(part);
  }
  if (clean.empty() || directory) {
    clean.push_back('/');
  }
  return clean == path ? std::nullopt : std::optional(std::move(clean));
}

void Response::set_header(std::string name, std::string value) {
  for (auto& [key, existing] : headers) {
    if (same_in_any_case(key, name)) {
      existing = std::move(value);
      return;
    }
  }
  headers.emplace_back(std::move(name), std::move(value));
}

bool redirect_to_clean_path(const Request& request, Response& response) {
  const auto clean = clean_path(request.path);
  if (!clean) {
    return false;
  }
  std::string location;
  for (std::string_view rest = *clean; !rest.empty();) {
    rest.remove_prefix(1);  // every part of a clean path begins with a slash
    location.append("/").append(url_encode(rest.substr(0, rest.find('/'))));
    rest.remove_prefix(std::min(rest.find('/'), rest.size()));
  }
  if (!request.query.empty()) {
    location.append("?").append(request.query);
  }
  plain_text(response, 301, status_text(301));
  response.set_header("Location", std::move(location));
  return true;
}

void plain_text(Response& response, int status, std::string_view text) {
  response.status = status;
  response.body = std::string(text) + "\n";
  response.set_header("Content-Type", "text/plain; charset=utf-8");
  response.set_header("X-Content-Type-Options", "nosniff");
}

std::string_view status_text(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

}  // namespace ceems::net
