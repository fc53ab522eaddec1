#include "api/request/paging.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/time/durations.h"
#include "crypto/base64.h"
#include "crypto/digest.h"

namespace ceems::api {
namespace {

constexpr char kVersion = '\1';
constexpr std::size_t kChecksumBytes = 4;
constexpr std::size_t kMaxPart = 0xFFFF;

std::string checksum(std::string_view listing, std::string_view parts) {
  std::string text(listing);
  text += '\0';
  text += parts;
  return crypto::sha256(text).substr(0, kChecksumBytes);
}

/// Removes the next text from the front of `parts`. Nothing if it is incomplete.
std::optional<std::string> take_part(std::string_view& parts) {
  if (parts.size() < 2) {
    return std::nullopt;
  }
  const auto high = static_cast<unsigned char>(parts[0]);
  const auto low = static_cast<unsigned char>(parts[1]);
  const std::size_t size = static_cast<std::size_t>(high) << 8U | low;
  parts.remove_prefix(2);
  if (parts.size() < size) {
    return std::nullopt;
  }
  std::string part(parts.substr(0, size));
  parts.remove_prefix(size);
  return part;
}

std::optional<std::vector<std::string>> parse_cursor(std::string_view text,
                                                     std::string_view listing,
                                                     std::size_t key_size) {
  const auto bytes = crypto::base64url_decode(text);
  if (!bytes || bytes->size() < 1 + kChecksumBytes || bytes->front() != kVersion) {
    return std::nullopt;
  }
  const std::string_view all = *bytes;
  std::string_view parts = all.substr(1 + kChecksumBytes);
  if (all.substr(1, kChecksumBytes) != checksum(listing, parts)) {
    return std::nullopt;
  }
  std::vector<std::string> key;
  while (!parts.empty()) {
    auto part = take_part(parts);
    if (!part) {
      return std::nullopt;
    }
    key.push_back(std::move(*part));
  }
  return key.size() == key_size ? std::optional(std::move(key)) : std::nullopt;
}

std::vector<std::string> key_of(const store::Cursor& row, std::span<const std::size_t> columns) {
  std::vector<std::string> key;
  for (const std::size_t column : columns) {
    key.emplace_back(row.text(column));
  }
  return key;
}

/// The query string of the next page.
std::string next_query(const PageRequest& request, std::string_view cursor) {
  std::string query;
  const auto add = [&query](std::string_view key, std::string_view value) {
    query += query.empty() ? "?" : "&";
    query += net::url_encode(key) + "=" + net::url_encode(value);
  };
  for (const auto& [key, value] : net::parse_query(request.query)) {
    const bool bound = request.window && (key == "from" || key == "to");
    if (!bound && key != "limit" && key != "cursor") {
      add(key, value);
    }
  }
  if (request.window) {
    add("from", std::to_string(request.window->from_ms / kSecondMs));
    add("to", std::to_string(request.window->to_ms / kSecondMs));
  }
  add("limit", std::to_string(request.page->limit));
  add("cursor", cursor);
  return query;
}

}  // namespace

std::string cursor_text(std::string_view listing, const std::vector<std::string>& key) {
  std::string parts;
  for (const std::string& part : key) {
    const std::size_t size = std::min(part.size(), kMaxPart);
    parts += static_cast<char>(size >> 8U);
    parts += static_cast<char>(size & 0xFFU);
    parts += part.substr(0, size);
  }
  return crypto::base64url_encode(kVersion + checksum(listing, parts) + parts);
}

std::optional<std::vector<std::string>> cursor_key(std::string_view text,
                                                   std::string_view listing,
                                                   std::size_t key_size) {
  return parse_cursor(text, listing, key_size);
}

Result<std::optional<Page>> parse_page(const Params& params,
                                       std::string_view listing,
                                       std::size_t key_size) {
  CEEMS_TRY(limit, parse_limit(params));
  if (!limit) {
    return std::nullopt;
  }
  Page page{.limit = limit.value_or(0), .after = {}};
  if (!params.cursor.empty()) {
    auto key = parse_cursor(params.cursor, listing, key_size);
    if (!key) {
      return fail(ErrorCode::kInvalidArgument, "query parameter 'cursor': malformed cursor");
    }
    page.after = std::move(*key);
  }
  return page;
}

void answer_page(net::Response& response, Listing listing, const PageRequest& request) {
  std::string data;
  JsonWriter json(data);
  json.begin_array();
  std::vector<std::string> last;
  std::size_t count = 0;
  bool more = false;
  while (!more) {
    const auto row = listing.timer.run([&listing] { return listing.rows->next(); });
    if (!row) {
      answer_failure(response, row.error());
      return;
    }
    if (!*row) {
      break;
    }
    listing.timer.count_row();
    auto key = key_of(*listing.rows, request.key);
    if (request.skip && !request.page->after.empty() && key <= request.page->after) {
      continue;
    }
    more = count == request.page->limit;
    if (!more) {
      listing.format.append(json, *listing.rows);
      last = std::move(key);
      ++count;
    }
  }
  json.end_array();
  answer_page(response, data, more ? last : std::vector<std::string>(), request);
}

void answer_page(net::Response& response,
                 std::string_view data,
                 const std::vector<std::string>& last,
                 const PageRequest& request) {
  std::string cursor;
  if (!last.empty()) {
    cursor = cursor_text(request.listing, last);
    response.set_header("Link", fmt::format("<{}>; rel=\"next\"", next_query(request, cursor)));
  }
  answer_data(response, data, cursor);
}

}  // namespace ceems::api
