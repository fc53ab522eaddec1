#pragma once

#include <string>
#include <string_view>

#include "api/figures.h"
#include "api/handlers/handlers.h"
#include "net/http.h"
#include "webui/asset.h"

namespace ceems::api {

/// 200 or, when the data base does not answer, 503.
void answer_health(const Services& services, net::Response& response);

/// What the server says about itself, for Prometheus.
void answer_metrics(Figures& figures, net::Response& response);

/// A page or file of ours that seldom changes: with an entity tag and the policy headers of pages;
/// 304 when the client has it. `forms` allows forms that lead to this server.
struct StaticText {
  std::string text;
  std::string_view content_type;
  bool forms = false;
};
void answer_static(const StaticText& file, const net::Request& request, net::Response& response);

/// A file of the web page, with entity tag, cache and policy headers; 304 when the client has it.
void answer_asset(const webui::Asset& asset, const net::Request& request, net::Response& response);

/// web/pages/api_server.html, a template (base/template.h).
extern const std::string_view kApiServerHtml;
/// The page of programs built without the web page.
void answer_landing_page(net::Response& response);

/// 404 as the reference words it.
void answer_not_found(net::Response& response);

}  // namespace ceems::api
