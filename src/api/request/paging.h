#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer/envelope.h"
#include "api/request/params.h"
#include "base/result.h"
#include "net/http.h"
#include "store/reader.h"

namespace ceems::api {

/// One page of a listing whose rows are sorted by the bytes of their key.
struct Page {
  std::size_t limit = 0;
  std::vector<std::string> after;  ///< key of the last row of the previous page; empty: none
};

/// A cursor: base64url of a version, a checksum and the texts of the key. It is only a position in
/// the order of the rows. Access is checked for every page, so a forged cursor reveals nothing.
/// Cursors of other listings and texts that are not cursors are recognised.
std::string cursor_text(std::string_view listing, const std::vector<std::string>& key);

/// The page that `limit` and `cursor` request; nothing if both are absent. kInvalidArgument with a
/// text for clients.
Result<std::optional<Page>> parse_page(const Params& params,
                                       std::string_view listing,
                                       std::size_t key_size);

/// The key of a cursor of this listing; nothing if it is none.
std::optional<std::vector<std::string>> cursor_key(std::string_view text,
                                                   std::string_view listing,
                                                   std::size_t key_size);

/// What the answer needs besides its rows.
struct PageRequest {
  std::string_view listing;  ///< the route
  std::string_view query;    ///< raw, of this request
  std::optional<store::TimeRange> window;
  const Page* page = nullptr;
  std::span<const std::size_t> key;  ///< columns of the cursor
  /// The rows start at the beginning of the listing, not after `page->after`.
  bool skip = false;
};

/// Answers {"status":"success","data":[...],"next":"..."} with at most one page of rows. If more
/// follow, `next` is the cursor of the next page and the header Link (RFC 8288) contains its
/// address. The address repeats the window of this page, so that a default window does not move
/// between pages.
void answer_page(net::Response& response, Listing listing, const PageRequest& request);
/// The same for rows that are written already, as a JSON list. `last` is the key of the last one if
/// more follow, otherwise empty. Of `request`, `key` and `skip` have no effect.
void answer_page(net::Response& response,
                 std::string_view data,
                 const std::vector<std::string>& last,
                 const PageRequest& request);

}  // namespace ceems::api
