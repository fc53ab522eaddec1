#include "api/endpoints/endpoint.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "api/endpoints/all.h"

namespace ceems::api {
namespace {

Endpoint at_path(Endpoint endpoint,
                 Caller caller,
                 std::string_view path,
                 std::string_view summary,
                 ParamSet more) {
  endpoint.caller = caller;
  endpoint.path = path;
  endpoint.summary = summary;
  endpoint.params = endpoint.params.with(more);
  return endpoint;
}

}  // namespace

Endpoint Endpoint::for_users(std::string_view at, std::string_view what, ParamSet more) const {
  return at_path(*this, Caller::kUser, at, what, more);
}

Endpoint Endpoint::for_admins(std::string_view at, std::string_view what, ParamSet more) const {
  return at_path(*this, Caller::kAdmin, at, what, more);
}

const Endpoints& all_endpoints() {
  static const Endpoints kAll = [] {
    Endpoints all = endpoints_as_listed();
    std::ranges::sort(all, {}, [](const Endpoint& endpoint) {
      return std::pair(endpoint.path, endpoint.method());
    });
    return all;
  }();
  return kAll;
}

const Endpoint* find_endpoint(std::string_view path, std::string_view method) {
  const Endpoints& all = all_endpoints();
  auto found = std::ranges::lower_bound(all, path, {}, &Endpoint::path);
  while (found != all.end() && found->path == path) {
    if (method == "OPTIONS" || found->method() == method) {
      return &*found;
    }
    ++found;
  }
  return nullptr;
}

std::int64_t Services::now_ms() const {
  return clock->now_ms();
}

bool has_json_body(Call& call) {
  const std::string* type = net::find_header(call.request->headers, "Content-Type");
  const bool json = type != nullptr && type->starts_with("application/json");
  if (!json) {
    answer_error(*call.response, ApiErrorType::kBadData,
                 "expected a body with Content-Type: application/json");
  }
  return json;
}

void answer_bad_request(Call& call, const Error& error) {
  answer_error(*call.response, ApiErrorType::kBadData, error.message);
}

RowFormat all_of(std::span<const store::Field> fields) {
  std::vector<std::size_t> all(fields.size());
  std::iota(all.begin(), all.end(), 0U);
  return {fields, std::move(all)};
}

void answer_with(Call& call, Rows rows) {
  if (!rows.cursor) {
    answer_failure(*call.response, rows.cursor.error());
    return;
  }
  Listing listing{.timer = std::move(rows.timer),
                  .rows = std::move(*rows.cursor),
                  .format = std::move(rows.format)};
  if (!call.page || rows.key_columns.empty()) {
    answer_rows(*call.response, std::move(listing), *call.streams, call.identity.user);
    return;
  }
  answer_page(*call.response, std::move(listing),
              {.listing = call.listing,
               .query = call.request->query,
               .window = call.window,
               .page = &*call.page,
               .key = rows.key_columns,
               .skip = !rows.placed});
}

}  // namespace ceems::api
