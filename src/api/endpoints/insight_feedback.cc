// How often people found suggestions helpful.
#include <cmath>
#include <string>

#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "base/json.h"
#include "store/feedback.h"

namespace ceems::api {
namespace {

constexpr std::int64_t kLeastAnswering = 5;  // people, so that no answer is recognized
constexpr int kFeedbackDigits = 3;

void get_feedback_by_rule(const Services& services, Call& call) {
  QueryTimer timer(*services.metrics, Query::kUnits);
  const auto sums = timer.run([&] { return services.reader->feedback_by_rule(); });
  if (!sums) {
    answer_failure(*call.response, sums.error());
    return;
  }
  std::string data;
  JsonWriter json(data);
  json.begin_array();
  for (const store::FeedbackSum& sum : *sums) {
    if (sum.people < kLeastAnswering) {
      continue;
    }
    const std::int64_t answers = sum.yes + sum.no + sum.not_applicable;
    const double wrong =
        static_cast<double>(sum.no + sum.not_applicable) / static_cast<double>(answers);
    timer.count_row();
    json.begin_object().member("rule", sum.rule).member("answers", answers);
    json.member("people", sum.people).member("no", sum.no);
    json.member("not_applicable", sum.not_applicable);
    json.member("false_share", rounded(wrong, kFeedbackDigits)).end_object();
  }
  json.end_array();
  answer_data(*call.response, data);
}

}  // namespace

Endpoints insight_feedback_endpoints() {
  return {
      {.path = "insight/feedback/admin",
       .caller = Caller::kAdmin,
       .summary = "How often people said that suggestions did not help.",
       .handler = get_feedback_by_rule,
       .data =
           {.name = "FeedbackByRule",
            .definitions = R"json("FeedbackByRule": {
        "type": "object",
        "description": "The answers about the suggestions of a rule, if at least five people gave one.",
        "required": ["rule", "answers", "people", "no", "not_applicable", "false_share"],
        "additionalProperties": false,
        "properties": {
          "rule": {"type": "string", "description": "Id of the rule."},
          "answers": {"type": "integer"},
          "people": {"type": "integer", "description": "Who gave the answers."},
          "no": {"type": "integer", "description": "Answers that it did not help."},
          "not_applicable": {"type": "integer", "description": "Answers that it does not apply."},
          "false_share": {"type": "number", "description": "Share of `no` and `not_applicable` in the answers, from 0 to 1."}
        }
      })json",
            .example =
                R"({"rule":"mem-excess","answers":40,"people":12,"no":3,"not_applicable":5,"false_share":0.2})"},
       .tagged = false}};
}

}  // namespace ceems::api
