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

/// One page of a listing whose rows have a key and come in its byte order.
struct Page {
  std::size_t limit = 0;
  std::vector<std::string> after;  ///< key of the last row of the page before; empty: none
};

/// A cursor: base64url of a version, a checksum, and the texts of the key. It is a place in the
/// order of the rows, nothing else: whose rows come after it is decided for each page anew, so a
/// forged one shows nobody more than they may see. Those of other listings, and texts we did not
/// write, are recognised.
std::string cursor_text(std::string_view listing, const std::vector<std::string>& key);

/// The page that `limit` and `cursor` ask for; nothing without them. kInvalidArgument with a text
/// for clients.
Result<std::optional<Page>> parse_page(const Params& params,
                                       std::string_view listing,
                                       std::size_t key_size);

/// What the answer needs beside its rows.
struct PageRequest {
  std::string_view listing;  ///< the route
  std::string_view query;    ///< raw, of this request
  std::optional<store::TimeRange> window;
  const Page* page = nullptr;
  std::span<const std::size_t> key;  ///< columns of the cursor
  /// The rows start at the beginning, not behind `page->after`.
  bool skip = false;
};

/// {"status":"success","data":[...],"next":"..."}: at most a page of rows. Where more follow,
/// `next` is the cursor of the next page, and the header Link (RFC 8288) leads there, with the
/// window of this page, so that a default window does not move from page to page.
void answer_page(net::Response& response, Listing listing, const PageRequest& request);

}  // namespace ceems::api
