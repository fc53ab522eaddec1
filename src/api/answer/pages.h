#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "metrics/registry.h"
#include "net/http.h"
#include "webui/asset.h"

namespace ceems::api {

/// Answers with plain text.
void answer_text(net::Response& response, int status, std::string_view text);

/// The server's metrics about itself, in the text format 0.0.4.
void answer_metrics(metrics::Registry& registry, net::Response& response);

/// A page or file that seldom changes. It gets an entity tag and the security headers of pages; the
/// answer is 304 if the client already has it. `forms` allows forms that are sent to this server.
struct StaticText {
  std::string text;
  std::string_view content_type;
  bool forms = false;
};
void answer_static(const StaticText& file, const net::Request& request, net::Response& response);

/// Answers with a file of the web page, with entity tag, cache and security headers, or with 304 if
/// the client already has it. Pages of `ancestors`, a list of origins, may show it in a frame if
/// the request has the parameter `embed=1`.
void answer_asset(const webui::Asset& asset,
                  const std::vector<std::string>& ancestors,
                  const net::Request& request,
                  net::Response& response);

/// web/pages/api_server.html, a template (base/text/template.h).
extern const std::string_view kApiServerHtml;
/// The start page of a program built without the web page.
void answer_landing_page(net::Response& response);

/// 404 with the text of the reference.
void answer_not_found(net::Response& response);

}  // namespace ceems::api
