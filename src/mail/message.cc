#include "mail/message.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <iterator>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/utf8.h"
#include "crypto/base64.h"

namespace ceems::mail {
namespace {

constexpr std::size_t kMaxValue = 998;  // of a subject, in bytes
constexpr std::size_t kBase64Line = 76;

/// One line in which nothing controls anything.
std::string plain_line(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out += kReplacementCharacter;
    } else {
      out += is_printable(code_point(text.substr(0, length))) ? text.substr(0, length) : " ";
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return std::string(trim(out));
}

/// The front of a text of whole characters that has at most `most` bytes.
std::string_view front_of(std::string_view text, std::size_t most) {
  std::size_t end = 0;
  while (end < text.size()) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text.substr(end)), 1);
    if (end + length > most) {
      break;
    }
    end += length;
  }
  return text.substr(0, end);
}

bool is_short_ascii(std::string_view value) {
  constexpr std::size_t kShort = 60;
  // What looks like an encoded word would be decoded.
  return value.size() <= kShort && value.find("=?") == std::string_view::npos &&
         std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~'; });
}

std::string encoded(std::string_view value) {
  constexpr std::size_t kPart = 39;  // so that a line has at most 76 characters (RFC 2047)
  std::string out;
  while (!value.empty()) {
    const std::string_view part = front_of(value, kPart);
    out += fmt::format("{}=?UTF-8?B?{}?=", out.empty() ? "" : "\r\n ", crypto::base64_encode(part));
    value.remove_prefix(part.size());
  }
  return out;
}

void append_part(std::string& out, std::string_view type, std::string_view text) {
  out += fmt::format("Content-Type: {}; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n",
                     type);
  const std::string coded = crypto::base64_encode(text);
  for (std::size_t begin = 0; begin < coded.size(); begin += kBase64Line) {
    out += coded.substr(begin, kBase64Line);
    out += "\r\n";
  }
}

std::string date_text(std::int64_t ms) {
  constexpr std::array<const char*, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t seconds = ms / 1000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{}, {} {} {} {:02}:{:02}:{:02} +0000",
                     kDays.at(static_cast<std::size_t>(utc.tm_wday)), utc.tm_mday,
                     kMonths.at(static_cast<std::size_t>(utc.tm_mon)), utc.tm_year + 1900,
                     utc.tm_hour, utc.tm_min, utc.tm_sec);
}

/// One address on each line.
std::string list_text(const std::vector<std::string>& addresses) {
  return fmt::format("{}", fmt::join(addresses, ",\r\n "));
}

/// A URL without anything that ends its brackets or the line.
std::string url_text(std::string_view url) {
  std::string out;
  std::ranges::copy_if(url, std::back_inserter(out),
                       [](char c) { return c > ' ' && c <= '~' && c != '<' && c != '>'; });
  return out;
}

}  // namespace

std::string header_field(std::string_view name, std::string_view value) {
  const std::string line = plain_line(value);
  const std::string_view text = front_of(line, kMaxValue);
  return fmt::format("{}: {}", name, is_short_ascii(text) ? std::string(text) : encoded(text));
}

std::string to_message(const Message& message) {
  std::string out;
  const auto add = [&out](std::string_view line) { out.append(line).append("\r\n"); };
  if (message.from_name.empty()) {
    add("From: " + message.from);
  } else {
    // Encoded words need no quotes.
    add(fmt::format("From: {}\r\n <{}>", encoded(plain_line(message.from_name)), message.from));
  }
  add("To: " + list_text(message.to));
  add(header_field("Subject", message.subject));
  add("Date: " + date_text(message.date_ms));
  add(fmt::format("Message-ID: <{}>", message.id));
  if (!message.references.empty()) {
    add(fmt::format("References: <{}>", message.references));
  }
  add("Auto-Submitted: auto-generated");  // RFC 3834: no automatic answers
  add("X-Auto-Response-Suppress: All");
  if (!message.unsubscribe.empty()) {
    add(fmt::format("List-Unsubscribe: <{}>", url_text(message.unsubscribe)));
    if (message.one_click) {
      add("List-Unsubscribe-Post: List-Unsubscribe=One-Click");
    }
  }
  add("MIME-Version: 1.0");
  if (message.html.empty()) {
    append_part(out, "text/plain", message.text);
    return out;
  }
  // No line of base64 can be this boundary.
  constexpr std::string_view kBoundary = "=_ceems_part";
  add(fmt::format("Content-Type: multipart/alternative; boundary=\"{}\"\r\n", kBoundary));
  add(fmt::format("--{}", kBoundary));
  append_part(out, "text/plain", message.text);
  add(fmt::format("--{}", kBoundary));
  append_part(out, "text/html", message.html);
  add(fmt::format("--{}--", kBoundary));
  return out;
}

}  // namespace ceems::mail
