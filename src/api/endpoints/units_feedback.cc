// What the caller says of the suggestions for a unit.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <boost/json.hpp>

#include "api/endpoints/all.h"
#include "api/endpoints/find_run.h"
#include "api/feedback.h"
#include "base/json.h"
#include "store/feedback.h"
#include "store/reports.h"

namespace ceems::api {
namespace {

constexpr std::size_t kMaxFeedbackBody = 4096;
constexpr std::array<std::string_view, 3> kFeedbackAnswers{"yes", "no", "not_applicable"};
constexpr std::string_view kPraise = "good";  // not a suggestion

struct FeedbackWish {
  std::string rule = {}, answer = {};
};

/// What the body of a request says. kInvalidArgument with a text for clients.
Result<FeedbackWish> parse_feedback(const std::string& body) {
  std::error_code error;
  const boost::json::value document =
      body.size() > kMaxFeedbackBody ? nullptr : boost::json::parse(body, error);
  const boost::json::object* const object = error ? nullptr : document.if_object();
  if (object == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "expected a JSON object of at most {} bytes",
                kMaxFeedbackBody);
  }
  FeedbackWish wish;
  for (const auto& [key, value] : *object) {
    const boost::json::string* const text = value.if_string();
    if (key != "rule" && key != "answer") {
      return fail(ErrorCode::kInvalidArgument, "unknown member, expected one of rule, answer");
    }
    if (text == nullptr) {
      return fail(ErrorCode::kInvalidArgument, "{}: expected a string", std::string_view(key));
    }
    (key == "rule" ? wish.rule : wish.answer) = std::string(text->data(), text->size());
  }
  if (std::ranges::find(kFeedbackAnswers, wish.answer) == kFeedbackAnswers.end()) {
    return fail(ErrorCode::kInvalidArgument, "answer: expected one of yes, no, not_applicable");
  }
  return wish;
}

void answer_run_problem(Call& call, const Error& error) {
  if (error.code == ErrorCode::kNotFound) {
    answer_error(*call.response, ApiErrorType::kNotFound, error.message);
  } else {
    answer_failure(*call.response, error);
  }
}

/// A run that the caller may see, and what it was suggested.
struct AdvisedRun {
  store::ReportKey key = {};
  std::string owner = {};
  std::vector<std::string> rules = {};
};

/// Answers if there is none.
std::optional<AdvisedRun> advised_run(const Services& services, Call& call) {
  const Params& params = call.params;
  if (params.uuids.size() != 1 || params.clusters.size() != 1) {
    answer_error(*call.response, ApiErrorType::kBadData, "one cluster_id and one uuid are needed");
    return std::nullopt;
  }
  const auto start_ms = parse_start(params);
  if (!start_ms) {
    answer_bad_request(call, start_ms.error());
    return std::nullopt;
  }
  const auto unit = find_run(services, call, params.uuids.front(), *start_ms);
  if (!unit) {
    answer_run_problem(call, unit.error());
    return std::nullopt;
  }
  AdvisedRun run{.key = {.cluster_id = unit->unit.cluster_id,
                         .uuid = unit->unit.uuid,
                         .started_at_ts = unit->unit.started_at_ts},
                 .owner = unit->unit.username};
  QueryTimer timer(*services.metrics, Query::kUnits);
  auto rules = timer.run([&] { return services.reader->rules_found(run.key); });
  if (!rules) {
    answer_failure(*call.response, rules.error());
    return std::nullopt;
  }
  std::erase(*rules, kPraise);
  run.rules = std::move(*rules);
  return run;
}

void get_feedback(const Services& services, Call& call) {
  const auto run = advised_run(services, call);
  if (!run) {
    return;
  }
  QueryTimer timer(*services.metrics, Query::kUnits);
  const auto said =
      timer.run([&] { return services.reader->feedback_of(run->key, call.identity.user); });
  if (!said) {
    answer_failure(*call.response, said.error());
    return;
  }
  std::string data;
  JsonWriter json(data);
  json.begin_array();
  for (const std::string& rule : run->rules) {
    json.begin_object().member("rule", rule).key("answer");
    const auto found = std::ranges::find(*said, rule, &store::Feedback::rule);
    if (found == said->end()) {
      json.value(nullptr);
    } else {
      json.value(found->answer);
    }
    json.end_object();
  }
  json.end_array();
  answer_data(*call.response, data);
}

void post_feedback(const Services& services, Call& call) {
  // A page of another site must not make a browser answer, also where a proxy adds the name.
  if (!services.feedback->is_same_site(*call.request)) {
    answer_error(*call.response, ApiErrorType::kForbidden, "not sent from a page of this server");
    return;
  }
  if (!has_json_body(call)) {
    return;
  }
  const auto wish = parse_feedback(call.request->body);
  if (!wish) {
    answer_bad_request(call, wish.error());
    return;
  }
  const auto run = advised_run(services, call);
  if (!run) {
    return;
  }
  if (std::ranges::find(run->rules, wish->rule) == run->rules.end()) {
    answer_error(*call.response, ApiErrorType::kNotFound, "no such suggestion for this unit");
    return;
  }
  QueryTimer timer(*services.metrics, Query::kUnits);
  const auto done = timer.run([&] {
    return services.feedback->answer({.key = run->key,
                                      .rule = wish->rule,
                                      .username = call.identity.user,
                                      .answer = wish->answer,
                                      .answered_ms = services.now_ms()});
  });
  if (!done) {
    answer_failure(*call.response, done.error());
    return;
  }
  call.changed = "suggestion_answered";
  call.changed_owner = run->owner;
  answer_data(*call.response, "null");
}

}  // namespace

Endpoints units_feedback_endpoints() {
  const Endpoint get{.path = "units/feedback",
                     .caller = Caller::kUser,
                     .summary = "What the caller said of the stored suggestions for a unit.",
                     .handler = get_feedback,
                     .data = {.name = "Feedback",
                              .definitions = R"json("Feedback": {
        "type": "object",
        "required": ["rule", "answer"],
        "additionalProperties": false,
        "properties": {
          "rule": {"type": "string", "description": "Id of the rule."},
          "answer": {"enum": ["yes", "no", "not_applicable", null], "description": "Whether the suggestion was helpful; null: not answered."}
        }
      })json",
                              .example = R"({"rule":"mem-excess","answer":"yes"})"},
                     .params = {Param::kClusterId, Param::kProject, Param::kUuid, Param::kStart},
                     .required = {Param::kClusterId, Param::kUuid},
                     .tagged = false,
                     .audited = false,
                     .refusals = {ApiErrorType::kNotFound}};
  Endpoint post = get;
  post.summary = "Says whether a suggestion was helpful, instead of what the caller said before.";
  post.handler = post_feedback;
  post.data = {};
  post.body = {.name = "FeedbackRequest",
               .definitions = R"json("FeedbackRequest": {
        "type": "object",
        "required": ["rule", "answer"],
        "additionalProperties": false,
        "properties": {
          "rule": {"type": "string", "description": "Id of a rule of which the unit has a suggestion."},
          "answer": {"enum": ["yes", "no", "not_applicable"]}
        }
      })json",
               .example = R"({"rule":"mem-excess","answer":"no"})"};
  post.refusals.insert(post.refusals.end(), {ApiErrorType::kForbidden, ApiErrorType::kBadData});
  return {get, post};
}

}  // namespace ceems::api
