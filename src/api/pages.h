#pragma once

#include <optional>
#include <string_view>

#include "net/http.h"
#include "store/reader.h"
#include "webui/asset.h"

namespace ceems::api {

/// 200 or, when the data base does not answer, 503.
void answer_health(store::Reader& reader, net::Response& response);

/// A file of the web page, with entity tag, cache and policy headers; 304 when the client has it.
void answer_asset(const webui::Asset& asset, const net::Request& request, net::Response& response);

/// The page of programs built without the web page.
void answer_landing_page(net::Response& response);

/// 404 as the reference words it.
void answer_not_found(net::Response& response);

}  // namespace ceems::api
