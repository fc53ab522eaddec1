#include "gate/request.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "net/http.h"

namespace ceems::gate {
namespace {

constexpr std::size_t kMaxFormFields = 1000;

/// Whether the text contains something that programs interpret differently.
bool is_odd(std::string_view text) {
  return text.find('\0') != std::string_view::npos || !is_utf8(text);
}

std::optional<std::string> decode_form_text(std::string_view text) {
  auto decoded = net::url_decode(text, net::Plus::kIsBlank);
  return decoded && !is_odd(*decoded) ? std::move(decoded) : std::nullopt;
}

/// Whether the path contains a backslash, or an encoded slash, backslash, NUL or '%', which a
/// backend might decode to another path.
bool hides_structure(std::string_view path) {
  for (std::size_t at = path.find('%'); at != std::string_view::npos; at = path.find('%', at + 1)) {
    const std::string_view code = path.substr(at + 1, 2);
    if (code == "2f" || code == "2F" || code == "5c" || code == "5C" || code == "00" ||
        code == "25") {
      return true;
    }
  }
  return path.find('\\') != std::string_view::npos;
}

/// The path of a target (ParsedRequest::path()).
Checked<std::string> parse_path(std::string_view target) {
  const std::string_view raw = target.substr(0, target.find('?'));
  if (!raw.starts_with('/') || raw.find('#') != std::string_view::npos || hides_structure(raw)) {
    return std::unexpected(bad_data("the path is ambiguous", "path"));
  }
  const auto decoded = net::url_decode(raw);
  if (!decoded || is_odd(*decoded)) {
    return std::unexpected(bad_data("invalid encoding of the path", "path"));
  }
  std::string path;
  std::string_view rest = *decoded;
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view segment = rest.substr(0, rest.find('/'));
    rest.remove_prefix(segment.size());
    if (segment == "." || segment == "..") {
      return std::unexpected(bad_data("the path has dot segments", "path"));
    }
    if (!segment.empty()) {
      path += '/';
      path += segment;
    }
  }
  if (path.empty()) {
    path += '/';
  }
  return path;
}

bool selects(std::string_view name) {
  return name == "query" || name == "match[]";
}

/// Adds the queries of a form, of which `fields` is what was read.
void add_queries(std::string_view form,
                 const Checked<Fields>& fields,
                 std::vector<std::string>& queries) {
  if (fields) {
    for (const auto& [name, value] : *fields) {
      if (selects(name)) {
        queries.push_back(value);
      }
    }
    return;
  }
  for (std::size_t count = 0; !form.empty() && count < kMaxFormFields;) {
    std::string_view part = take_until(form, '&');
    const std::string_view name = take_until(part, '=');
    if (selects(decode_form_text(name).value_or(std::string(name)))) {
      queries.push_back(decode_form_text(part).value_or(std::string(part)));
      ++count;
    }
  }
}

/// The code for a status (https://connectrpc.com/docs/protocol/#error-codes).
std::string_view connect_code(int status) {
  switch (status) {
    case 400:
    case 415:
      return "invalid_argument";
    case 401:
      return "unauthenticated";
    case 403:
      return "permission_denied";
    case 405:
      return "unimplemented";
    case 413:
      return "resource_exhausted";
    default:
      return "unavailable";
  }
}

}  // namespace

std::string Refusal::body() const {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("status", "error");
  json.member("errorType", error_type).member("error", message).end_object();
  out += '\n';
  return out;
}

std::string Refusal::connect_body() const {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("code", connect_code(status)).member("message", message);
  json.member("status", "error").member("errorType", error_type).member("error", message);
  json.end_object();
  out += '\n';
  return out;
}

bool is_connect_path(std::string_view path) {
  const std::size_t method = path.rfind('/');
  if (method == std::string_view::npos || method + 1 == path.size()) {
    return false;
  }
  path = path.substr(0, method);
  const std::string_view service = path.substr(path.rfind('/') + 1);
  return service.contains('.') && path.contains('/');
}

Refusal bad_data(std::string message, std::string_view reason) {
  return {.status = 400, .error_type = "bad_data", .message = std::move(message), .reason = reason};
}

Refusal forbidden_resource(std::string_view reason) {
  return {.reason = reason};
}

Refusal forbidden_units(std::string_view reason) {
  return {.message = "user do not have permissions to view unit metrics", .reason = reason};
}

Refusal shared_id(const std::string& unit) {
  return {.message = fmt::format("the request reads times in which ID '{}' belonged to another "
                                 "user's unit: select only times of your own unit",
                                 unit),
          .reason = "shared_id"};
}

Refusal unauthorized() {
  return {.status = 401,
          .error_type = "unauthorized",
          .message =
              "no user header found. Make sure to set send_user_header = true in [dataproxy] "
              "section of Grafana configuration file.",
          .reason = "user"};
}

Refusal unknown_cluster() {
  return {.status = 400,
          .error_type = "bad_request",
          .message =
              "invalid cluster ID. Set cluster ID using X-Ceems-Cluster-Id header in Prometheus "
              "datasource.",
          .reason = "cluster"};
}

Refusal wrong_method() {
  return {
      .status = 405, .error_type = "bad_data", .message = "method not allowed", .reason = "method"};
}

Refusal large_body() {
  return {.status = 413,
          .error_type = "bad_data",
          .message = "request body is too large",
          .reason = "size"};
}

Refusal wrong_media(std::string message) {
  return {.status = 415,
          .error_type = "bad_data",
          .message = std::move(message),
          .reason = "media_type"};
}

Checked<Fields> parse_form(std::string_view text) {
  Fields fields;
  const auto separators = static_cast<std::size_t>(std::ranges::count(text, '&'));
  fields.reserve(std::min(separators + 1, kMaxFormFields));
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    if (part.empty()) {
      continue;
    }
    if (fields.size() >= kMaxFormFields) {
      return std::unexpected(bad_data("too many parameters", "parameters"));
    }
    const std::size_t equals = std::min(part.find('='), part.size());
    auto name = decode_form_text(part.substr(0, equals));
    auto value = decode_form_text(part.substr(std::min(equals + 1, part.size())));
    if (!name || !value || part.find(';') != std::string_view::npos) {
      return std::unexpected(bad_data("invalid encoding of the parameters", "encoding"));
    }
    fields.emplace_back(std::move(*name), std::move(*value));
  }
  return fields;
}

void append_name(std::string& form, std::string_view name) {
  if (!form.empty()) {
    form += '&';
  }
  net::append_url_encoded(form, name);
  form += '=';
}

const Checked<std::string>& ParsedRequest::path() const {
  if (!path_) {
    path_ = parse_path(raw_.target);
  }
  return *path_;
}

const Checked<Fields>& ParsedRequest::parameters() const {
  if (!parameters_) {
    parameters_ = parse_form(query_text_);
  }
  return *parameters_;
}

const Checked<Fields>& ParsedRequest::posted() const {
  if (!posted_) {
    posted_ = same_in_any_case(media_type(raw_.content_type), kFormType) ? parse_form(raw_.body)
                                                                         : Checked<Fields>();
  }
  return *posted_;
}

std::vector<std::string> ParsedRequest::queries() const {
  std::vector<std::string> queries;
  add_queries(raw_.body, posted(), queries);
  add_queries(query_text_, parameters(), queries);
  return queries;
}

std::string write_path(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const std::string_view segment = path.substr(0, path.find('/'));
    out += net::url_encode(segment);
    path.remove_prefix(segment.size());
    if (!path.empty()) {
      out += '/';
      path.remove_prefix(1);
    }
  }
  return out;
}

std::string_view media_type(std::string_view content_type) {
  return trim(content_type.substr(0, content_type.find(';')));
}

}  // namespace ceems::gate
