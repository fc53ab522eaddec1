#include "lb/auditing.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gate/request.h"
#include "model/protocol.h"

namespace ceems::lb {
namespace {

constexpr int kOk = 200;
/// Longer forms are not searched for queries: they are decoded a second time here.
constexpr std::size_t kMaxFormBytes = std::size_t{64} << 10U;

std::string_view header_of(const net::Headers& headers, std::string_view name) {
  const std::string* const text = net::find_header(headers, name);
  return text == nullptr ? std::string_view() : *text;
}

std::vector<std::string> cluster_of(const net::Request& request, std::string_view decided) {
  const std::string_view cluster =
      decided.empty() ? header_of(request.headers, model::kClusterHeader) : decided;
  return cluster.empty() ? std::vector<std::string>() : std::vector{std::string(cluster)};
}

void add_queries(std::string_view form, std::vector<std::string>& queries) {
  if (form.size() > kMaxFormBytes) {
    return;
  }
  for (auto& [name, value] : net::parse_query(form)) {
    if (name == "query" || name == "match[]") {
      queries.push_back(std::move(value));
    }
  }
}

/// The selectors and queries of a request, which say whose data it reads. Other parameters may be
/// anything and are not for the log.
std::vector<std::string> queries_of(const net::Request& request) {
  std::vector<std::string> queries;
  add_queries(request.query, queries);
  if (gate::media_type(header_of(request.headers, "Content-Type")) ==
      "application/x-www-form-urlencoded") {
    add_queries(request.body, queries);
  }
  return queries;
}

}  // namespace

void audit_denial(audit::Log* log, const net::Request& request, const gate::Refusal& refusal) {
  if (log == nullptr) {
    return;
  }
  log->write(
      {.what = audit::What::kDenied,
       .user = header_of(request.headers, model::kUserHeader),
       .request = &request,
       .status = refusal.status,
       .reason = refusal.reason,
       .selected = {{"cluster_id", cluster_of(request, {})}, {"query", queries_of(request)}}});
}

void audit_read(audit::Log* log, const net::Request& request, const gate::Decision& decision) {
  if (log == nullptr || !decision.admin || decision.user.empty()) {
    return;
  }
  log->write({.what = audit::What::kRead,
              .user = decision.user,
              .role = "admin",
              .request = &request,
              .status = kOk,
              .selected = {{"cluster_id", cluster_of(request, decision.cluster)},
                           {"query", queries_of(request)}}});
}

}  // namespace ceems::lb
