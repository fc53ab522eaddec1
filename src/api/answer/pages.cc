#include "api/answer/pages.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/answer/entity_tag.h"
#include "base/text/template.h"
#include "base/version.h"
#include "crypto/base64.h"
#include "crypto/digest.h"

namespace ceems::api {
namespace {

/// Forbids content from other origins, inline scripts and styles, and framing except by pages of
/// these origins.
void set_page_headers(net::Response& response,
                      bool forms = false,
                      const std::vector<std::string>& ancestors = {}) {
  response.set_header(
      "Content-Security-Policy",
      fmt::format("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                  "connect-src 'self'; base-uri 'none'; form-action {}; frame-ancestors {}",
                  forms ? "'self'" : "'none'",
                  ancestors.empty() ? "'none'" : fmt::format("{}", fmt::join(ancestors, " "))));
  if (ancestors.empty()) {  // which cannot name origins (RFC 7034)
    response.set_header("X-Frame-Options", "DENY");
  }
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Referrer-Policy", "no-referrer");
}

bool accepts_gzip(const net::Request& request) {
  const std::string* accepted = net::find_header(request.headers, "Accept-Encoding");
  if (accepted == nullptr) {
    return false;
  }
  const std::size_t at = accepted->find("gzip");
  if (at == std::string::npos) {
    return false;
  }
  // Any weight is accepted, except one that is written as zero.
  const std::string rest = accepted->substr(at + 4, accepted->find(',', at) - at - 4);
  return rest.find("q=0") == std::string::npos || rest.find("q=0.") != std::string::npos;
}

}  // namespace

void answer_text(net::Response& response, int status, std::string_view text) {
  response.status = status;
  response.set_header("Content-Type", "text/plain; charset=utf-8");
  response.set_header("X-Content-Type-Options", "nosniff");
  response.body = text;
}

void answer_metrics(metrics::Registry& registry, net::Response& response) {
  registry.append_page(response.body);
  response.set_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  response.set_header("Cache-Control", "no-store");
}

void answer_static(const StaticText& file, const net::Request& request, net::Response& response) {
  constexpr std::size_t kPageTagBytes = 18;
  set_page_headers(response, file.forms);
  response.set_header("Cache-Control", "no-cache");
  const std::string tag =
      "W/\"" + crypto::base64url_encode(crypto::sha256(file.text).substr(0, kPageTagBytes)) + "\"";
  response.set_header("ETag", tag);
  if (client_has(request, tag)) {
    response.status = 304;
    return;
  }
  response.set_header("Content-Type", std::string(file.content_type));
  response.body = file.text;
}

void answer_asset(const webui::Asset& asset,
                  const std::vector<std::string>& ancestors,
                  const net::Request& request,
                  net::Response& response) {
  const auto query = net::parse_query(request.query);
  const bool embedded =
      std::ranges::find(query, std::pair<std::string, std::string>("embed", "1")) != query.end();
  set_page_headers(response, false, embedded ? ancestors : std::vector<std::string>());
  response.set_header("Vary", "Accept-Encoding");
  response.set_header("Cache-Control",
                      asset.immutable ? "public, max-age=31536000, immutable" : "no-cache");
  const bool compressed = !asset.gzip.empty() && accepts_gzip(request);
  std::string etag(asset.etag);
  if (compressed && !etag.empty() && etag.back() == '"') {
    etag.insert(etag.size() - 1, "-gz");
  }
  response.set_header("ETag", etag);
  const std::string* known = net::find_header(request.headers, "If-None-Match");
  if (known != nullptr && !etag.empty() && known->find(etag) != std::string::npos) {
    response.status = 304;
    return;
  }
  response.set_header("Content-Type", std::string(asset.content_type));
  if (compressed) {
    response.set_header("Content-Encoding", "gzip");
  }
  response.body = compressed ? asset.gzip : asset.content;
}

void answer_landing_page(net::Response& response) {
  const Version& about = version();
  set_page_headers(response);
  response.set_header("Content-Type", "text/html; charset=utf-8");
  response.body =
      render_template(kApiServerHtml, {.texts = {{"version", std::string(about.version)},
                                                 {"branch", std::string(about.branch)},
                                                 {"revision", std::string(about.revision)}}});
}

void answer_not_found(net::Response& response) {
  answer_text(response, 404, "404 page not found\n");
}

}  // namespace ceems::api
