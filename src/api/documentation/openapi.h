#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer/pages.h"
#include "api/endpoints/endpoint.h"
#include "api/request/params.h"
#include "net/http.h"

namespace ceems::api {

/// The settings of the server that appear in the description of the API.
struct DocumentOptions {
  std::string route_prefix = {};  ///< without a trailing slash
  std::string external_url = {};  ///< empty: the address that the document was fetched from
  std::vector<std::string> user_headers = {};
};

/// The OpenAPI 3.1 document (https://spec.openapis.org/oas/v3.1.0). Endpoints, parameters, fields
/// and errors come from the tables that requests are routed, parsed and answered by:
/// all_endpoints(), all_params(), all_errors(), store/fields.h. Everything else is in
/// data/openapi.json.
std::string openapi_json(const DocumentOptions& options);

/// The same for people: a page that needs no script, with a form for every endpoint. `document` is
/// the result of openapi_json(). The page is served beside its style sheet, `style.css`.
std::string openapi_page(const DocumentOptions& options, std::string_view document);

/// A cursor of the endpoint, for examples.
std::string example_cursor(const Endpoint& endpoint);

/// The parameters that the endpoint takes, in the order of all_params().
std::vector<const ParamInfo*> params_of(const Endpoint& endpoint);

/// The part of addresses before "/api/v1" and "/health": "https://ceems.example", "/prefix" or
/// empty.
std::string server_root(const DocumentOptions& options);

/// The document, the page and the style sheet. They are made at the first request for one of them,
/// because few servers are ever asked, and making them is half of the work of a start. Safe for
/// concurrent use.
class Document {
 public:
  explicit Document(DocumentOptions options);

  void answer_json(const net::Request& request, net::Response& response) const;
  void answer_page(const net::Request& request, net::Response& response) const;
  void answer_style(const net::Request& request, net::Response& response) const;

 private:
  struct Texts {
    StaticText json, page, style;
  };
  [[nodiscard]] const Texts& texts() const;

  const DocumentOptions options_;
  mutable std::once_flag made_;
  mutable Texts texts_;  ///< after `made_`
};

}  // namespace ceems::api
