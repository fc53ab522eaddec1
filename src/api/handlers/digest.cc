// Digests of months.
#include "report/digest.h"

#include <algorithm>
#include <string>
#include <utility>

#include "access/digests.h"
#include "api/handlers/handlers.h"
#include "api/handlers/own_projects.h"
#include "api/handlers/text_forms.h"
#include "api/report/digest_maker.h"
#include "api/request/months.h"

namespace ceems::api {
namespace {

/// Whether the caller has the project on one of these clusters (empty: all).
bool is_member(const Services& services,
               const Call& call,
               const std::string& project,
               const std::vector<std::string>& clusters) {
  return std::ranges::any_of(own_projects(services, call), [&](const auto& own) {
    return own.second == project &&
           (clusters.empty() || std::ranges::find(clusters, own.first) != clusters.end());
  });
}

Result<DigestQuestion> read_question(const Services& services, const Call& call) {
  DigestQuestion question{.clusters = split_lists(call.params.clusters),
                          .now_ms = services.now_ms()};
  const std::string_view name = call.params.text(Param::kMonth);
  CEEMS_TRY(month, name.empty() ? Result<Month>(month_at(question.now_ms, services.zone))
                                : month_named(name, services.zone));
  if (month.from_ms > question.now_ms) {
    return fail(ErrorCode::kInvalidArgument,
                "query parameter 'month': expected a month that has begun");
  }
  question.month = std::move(month);
  const auto projects = split_lists(call.params.projects);
  if (projects.size() > 1) {
    return fail(ErrorCode::kInvalidArgument, "query parameter 'project': expected one project");
  }
  if (projects.empty()) {
    question.user = call.identity.user;
    question.rows = access::own_digest(call.identity);
  } else {
    question.project = projects.front();
    question.rows =
        access::project_digest(call.identity, question.project, question.clusters,
                               is_member(services, call, question.project, question.clusters));
  }
  return question;
}

std::string text_of(const report::Digest& digest, const TextForm& form) {
  switch (form.format) {
    case Format::kMarkdown:
      return report::to_markdown(digest, form.view);
    case Format::kHtml:
      return report::to_html(digest, form.view);
    default:
      return report::to_text(digest, form.view);
  }
}

}  // namespace

void get_digest(const Services& services, Call& call) {
  const auto form = parse_text_form(services, call.params, Format::kHtml);
  const auto question =
      form ? read_question(services, call) : Result<DigestQuestion>(fail(form.error()));
  if (!question) {
    answer_bad_request(call, question.error());
    return;
  }
  if (question->rows.seen == access::DigestRows::Seen::kNothing) {
    answer_error(*call.response, ApiErrorType::kNotFound, "no such project");
    return;
  }
  call.foreign = question->user.empty() && question->rows.units.owners.everybody;
  QueryTimer timer(*services.metrics, Query::kCurrentUsage);
  const auto digest = timer.run([&] { return services.digests->make(*question); });
  if (!digest) {
    answer_failure(*call.response, digest.error());
  } else if (form->format == Format::kJson) {
    answer_data(*call.response, report::to_json(*digest, form->view));
  } else {
    answer_text(call, form->format, text_of(*digest, *form));
  }
}

}  // namespace ceems::api
