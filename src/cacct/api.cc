#include "cacct/api.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/version.h"
#include "cacct/output/job_list.h"
#include "net/gunzip.h"
#include "net/http.h"

namespace ceems::cacct {
namespace {

constexpr std::size_t kMaxAnswerBytes = std::size_t{1} << 30U;

void append(std::string& query, std::string_view name, std::string_view value) {
  query += query.empty() ? '?' : '&';
  query += fmt::format("{}={}", name, net::url_encode(value));
}

/// Why an answer is none, with the server's reason if it told one.
std::unexpected<Error> refusal(int status, const Result<std::vector<Record>>& reason) {
  const bool told = !reason && reason.error().code != ErrorCode::kParse;
  return fail(ErrorCode::kUnavailable, "the API server answered with HTTP status {}{}", status,
              told ? ": " + reason.error().message : "");
}

std::string query_of(const Question& question, const std::vector<std::string>& more_tags) {
  std::string query;
  append(query, "cluster_id", question.cluster_id);
  append(query, "from", std::to_string(question.from));
  append(query, "to", std::to_string(question.to));
  std::vector<std::string_view> sent;
  for (const auto* tags : {&question.tags, &more_tags}) {
    for (const std::string& tag : *tags) {
      if (std::ranges::find(sent, tag) == sent.end()) {
        append(query, "field", sent.emplace_back(tag));
      }
    }
  }
  for (const std::string& project : question.projects) {
    append(query, "project", project);
  }
  for (const std::string& uuid : question.uuids) {
    append(query, "uuid", uuid);
  }
  for (const std::string& user : question.users) {
    append(query, "user", user);
  }
  return query;
}

}  // namespace

Result<Api> Api::create(std::string url,
                        net::ClientOptions options,
                        const std::string& user_header,
                        const std::string& user,
                        std::chrono::milliseconds timeout) {
  while (url.ends_with('/')) {
    url.pop_back();
  }
  std::erase_if(options.headers,
                [&](const auto& header) { return same_in_any_case(header.first, user_header); });
  options.user_agent = fmt::format("ceems/cacct/{}", version().version);
  options.timeout = timeout;
  options.connect_timeout = std::min(options.connect_timeout, timeout);
  options.max_response_bytes = kMaxAnswerBytes;
  CEEMS_TRY_IN("ceems_api_server.web", client, net::Client::create(std::move(options)));
  net::Headers headers{{"Accept-Encoding", "gzip"}};
  if (!user_header.empty()) {
    headers.emplace_back(user_header, user);
  }
  return Api(std::move(url), std::move(client), std::move(headers));
}

Result<net::ClientResponse> Api::fetch(const std::string& url) {
  return unpacked(client_->get(url, headers_));
}

Result<net::ClientResponse> Api::unpacked(Result<net::ClientResponse> answer) {
  CEEMS_TRY_IN("the API server did not answer", response, std::move(answer));
  if (response.status == 401 || response.status == 403) {
    return fail(ErrorCode::kPermissionDenied,
                "forbidden. It is likely that the user is attempting to view statistics of others");
  }
  const std::string* encoding = net::find_header(response.headers, "Content-Encoding");
  if (encoding != nullptr && same_in_any_case(*encoding, "gzip")) {
    CEEMS_TRY_IN("unexpected answer of the API server", body,
                 net::gunzip(response.body, kMaxAnswerBytes));
    response.body = std::move(body);
  }
  return response;
}

Result<std::string> Api::report(const ReportQuestion& question) {
  std::string query;
  append(query, "cluster_id", question.cluster_id);
  for (const std::string& uuid : question.uuids) {
    append(query, "uuid", uuid);
  }
  append(query, "format", question.format);
  append(query, "lang", question.language);
  append(query, "width", std::to_string(question.width));
  if (question.so_far) {
    append(query, "so_far", "true");
  }
  if (question.all_findings) {
    append(query, "all", "true");
  }
  CEEMS_TRY(response, fetch(fmt::format("{}/api/v1/units/{}{}{}", url_,
                                        question.compare ? "compare" : "report",
                                        question.all_users ? "/admin" : "", query)));
  if (response.status == 200) {
    return std::move(response.body);
  }
  // An older server knows no reports and answers 404 with a text.
  const auto reason = parse_answer(response.body);
  if (response.status == 404 && !reason && reason.error().code == ErrorCode::kParse) {
    return fail(ErrorCode::kUnavailable, "this version of the API server makes no reports");
  }
  switch (response.status) {
    case 404:
      return fail(ErrorCode::kNotFound, "no such job among those that you may see");
    case 409:
      return fail(ErrorCode::kNoData, "the job has not ended; --so-far reports it anyway");
    default:
      return fail(ErrorCode::kUnavailable, "the API server answered with HTTP status {}{}",
                  response.status, reason ? "" : ": " + reason.error().message);
  }
}

Result<std::string> Api::gpus(const std::string& cluster_id, bool all_users) {
  std::string query;
  append(query, "cluster_id", cluster_id);
  CEEMS_TRY(response,
            fetch(fmt::format("{}/api/v1/gpus{}{}", url_, all_users ? "/admin" : "", query)));
  if (response.status == 404) {
    return fail(ErrorCode::kUnavailable, "this version of the API server does not show GPUs");
  }
  if (response.status != 200) {
    return fail(ErrorCode::kUnavailable, "the API server answered with HTTP status {}",
                response.status);
  }
  return std::move(response.body);
}

Result<std::string> Api::digest(const DigestQuestion& question) {
  std::string query;
  for (const auto& [name, value] : {std::pair("cluster_id", question.cluster_id),
                                    {"month", question.month},
                                    {"project", question.project}}) {
    if (!value.empty()) {
      append(query, name, value);
    }
  }
  append(query, "format", question.format);
  append(query, "lang", question.language);
  append(query, "width", std::to_string(question.width));
  CEEMS_TRY(response, fetch(fmt::format("{}/api/v1/usage/digest{}", url_, query)));
  if (response.status == 200) {
    return std::move(response.body);
  }
  const auto reason = parse_answer(response.body);
  if (response.status == 404) {
    const bool told = !reason && reason.error().code != ErrorCode::kParse;
    return told ? fail(ErrorCode::kNotFound, "no such project among those that you may see")
                : fail(ErrorCode::kUnavailable, "this version of the API server makes no digests");
  }
  return refusal(response.status, reason);
}

Result<std::string> Api::insight(const InsightQuestion& question) {
  std::string query;
  append(query, "cluster_id", question.cluster_id);
  for (const std::string& project : question.projects) {
    append(query, "project", project);
  }
  if (!question.month.empty()) {
    append(query, "month", question.month);
  }
  if (!question.by.empty()) {
    append(query, "by", question.by);
  }
  if (!question.uuid.empty()) {
    append(query, "uuid", question.uuid);
  }
  if (!question.host.empty()) {
    append(query, "host", question.host);
  }
  // Budgets have one path for all roles.
  const bool admin = question.all_users && question.topic != "budgets";
  return body_of(fmt::format("insight/{}{}{}", question.topic, admin ? "/admin" : "", query));
}

Result<std::string> Api::jobs(const JobsQuestion& question) {
  std::string query;
  append(query, "cluster_id", question.cluster_id);
  append(query, "columns", kJobLineColumns);
  append(query, "limit", "1000");
  for (const std::string& uuid : question.uuids) {
    append(query, "uuid", uuid);
  }
  if (!question.user.empty()) {
    append(query, "user", question.user);
  }
  if (question.running) {
    for (const auto& [name, value] : {std::pair("running", "true"),
                                      {"state", "running"},
                                      {"sort", "started"},
                                      {"order", "desc"}}) {
      append(query, name, value);
    }
  }
  return body_of(fmt::format("units/list{}{}", question.of_others ? "/admin" : "", query));
}

Result<std::string> Api::charts(const ChartsQuestion& question) {
  std::string query;
  for (const auto& [name, value] : {std::pair("cluster_id", question.cluster_id),
                                    {"uuid", question.uuid},
                                    {"metric", question.metrics},
                                    {"by", question.by},
                                    {"from", std::to_string(question.from)},
                                    {"to", std::to_string(question.to)},
                                    {"points", std::to_string(question.points)}}) {
    append(query, name, value);
  }
  return body_of("units/series" + query);
}

Result<std::string> Api::check(const std::string& request) {
  CEEMS_TRY(response, unpacked(client_->post(fmt::format("{}/api/v1/units/check", url_),
                                             "application/json", request, headers_)));
  if (response.status == 200) {
    return std::move(response.body);
  }
  const auto reason = parse_answer(response.body);
  if (response.status == 404 && !reason && reason.error().code == ErrorCode::kParse) {
    return fail(ErrorCode::kUnavailable, "this version of the API server does not check jobs");
  }
  return refusal(response.status, reason);
}

Result<std::string> Api::site() {
  return body_of("site");
}

Result<std::string> Api::body_of(const std::string& path) {
  CEEMS_TRY(response, fetch(fmt::format("{}/api/v1/{}", url_, path)));
  if (response.status == 200) {
    return std::move(response.body);
  }
  return refusal(response.status, parse_answer(std::move(response.body)));
}

Result<std::vector<Record>> Api::ask(std::string_view path,
                                     const Question& question,
                                     const std::vector<std::string>& more_tags) {
  const bool of_others = question.all_users || !question.users.empty();
  const std::string url =
      fmt::format("{}{}{}{}", url_, path, of_others ? "/admin" : "", query_of(question, more_tags));
  CEEMS_TRY(response, fetch(url));
  auto records = parse_answer(std::move(response.body));
  if (!records && response.status != 200 && records.error().code == ErrorCode::kParse) {
    return fail(ErrorCode::kUnavailable, "the API server answered with HTTP status {}",
                response.status);
  }
  if (!records && records.error().code == ErrorCode::kUnavailable) {
    return fail(std::move(records).error().with_context(
        "server did not return any data due to unknown error"));
  }
  return records;
}

Result<std::vector<Record>> Api::units(const Question& question) {
  Question all = question;
  for (const std::string& id : question.uuids) {
    if (is_number(id)) {
      all.uuids.insert(all.uuids.end(), {id + "_*", id + "+*"});
    }
  }
  return ask("/api/v1/units", all, {"started_at_ts", "ended_at_ts"});
}

Result<std::vector<Record>> Api::usage(const Question& question) {
  return ask("/api/v1/usage/current", question, {"username", "num_units", "total_time_seconds"});
}

}  // namespace ceems::cacct
