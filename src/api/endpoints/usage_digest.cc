// Digests of months.
#include <algorithm>
#include <string>
#include <utility>

#include "access/digests.h"
#include "api/endpoints/all.h"
#include "api/endpoints/own_projects.h"
#include "api/endpoints/text_forms.h"
#include "api/report/digest_maker.h"
#include "api/request/months.h"
#include "report/digest.h"

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

}  // namespace

Endpoints usage_digest_endpoints() {
  return {
      {.path = "usage/digest",
       .caller = Caller::kUser,
       .summary = "The month of the caller or of a project against the months before.",
       .handler = get_digest,
       .data =
           {.name = "Digest",
            .one = true,
            .definitions = R"json("Digest": {
        "type": "object",
        "required": ["v", "month", "user", "project", "clusters", "so_far", "band_only", "months", "method", "modelled_share", "unmeasured", "kwh_change", "hours_change", "improvement", "band", "suggestions"],
        "additionalProperties": false,
        "properties": {
          "v": {"const": 1},
          "month": {"type": "string", "description": "The month."},
          "user": {"type": ["string", "null"], "description": "Whose month it is; null for a project."},
          "project": {"type": ["string", "null"], "description": "The project."},
          "clusters": {"type": "array", "items": {"type": "string"}, "description": "The clusters that were asked for; empty: all."},
          "so_far": {"type": "boolean", "description": "The month has not ended."},
          "band_only": {"type": "boolean", "description": "The caller sees only where the project stands."},
          "months": {
            "type": "array",
            "description": "The month, then up to three months before it that are known.",
            "items": {
              "type": "object",
              "required": ["month", "core_hours", "gpu_hours", "kwh", "g", "units", "idle_share", "not_used_share"],
              "additionalProperties": false,
              "properties": {
                "month": {"type": "string", "description": "The month."},
                "core_hours": {"type": "number", "description": "Allocated CPU hours."},
                "gpu_hours": {"type": "number", "description": "Allocated GPU hours."},
                "kwh": {"type": ["number", "null"], "description": "Energy; null if it is not known."},
                "g": {"type": ["number", "null"], "description": "Emissions in grams; null if they are not known."},
                "units": {"type": ["number", "null"], "description": "Units that ended in the month; of the first two months."},
                "idle_share": {"type": ["number", "null"], "description": "Share of the idle power of what they had reserved in their energy, of those of which it is known."},
                "not_used_share": {"type": ["number", "null"], "description": "Share of the part of it that they did not use at that time, in the same way."}
              }
            }
          },
          "method": {"enum": ["measured", "modelled", "partly_modelled", null], "description": "How the energy of the nodes is known; null if that is not recorded."},
          "modelled_share": {"type": ["number", "null"], "description": "Share of the energy of the nodes that no meter measured."},
          "unmeasured": {"type": "array", "items": {"type": "string"}, "description": "Clusters of which no energy is known."},
          "kwh_change": {"type": ["number", "null"], "description": "Change of the energy against the month before, as a share of it."},
          "hours_change": {"type": ["number", "null"], "description": "The same for the CPU hours."},
          "improvement": {
            "type": ["object", "null"],
            "description": "The kind of job of which the share of the energy that was not used fell most.",
            "required": ["name", "runs", "before", "now", "saved_kwh"],
            "additionalProperties": false,
            "properties": {
              "name": {"type": ["string", "null"], "description": "Name of the jobs with each number as #; null where the caller may not see it."},
              "runs": {"type": "integer", "description": "How many ended in the month."},
              "before": {"type": "number", "description": "Share that was not used in the month before."},
              "now": {"type": "number", "description": "The share in the month."},
              "saved_kwh": {"type": "number", "description": "How much more it would have been at the earlier share."}
            }
          },
          "band": {
            "type": ["object", "null"],
            "description": "Where a project stands among all projects of the site; null if there are too few.",
            "required": ["place", "low", "high", "projects"],
            "additionalProperties": false,
            "properties": {
              "place": {"enum": ["below", "within", "above"], "description": "Against the middle half."},
              "low": {"type": "number", "description": "Least share that was not used of the middle half."},
              "high": {"type": "number", "description": "Greatest share of the middle half."},
              "projects": {"type": "integer", "description": "How many projects there are."}
            }
          },
          "suggestions": {
            "type": "array",
            "description": "At most three, the most useful first.",
            "items": {
              "type": "object",
              "required": ["rule", "severity", "confidence", "units", "cluster_id", "uuid", "text", "lines", "sbatch", "was", "saves"],
              "additionalProperties": false,
              "properties": {
                "rule": {"type": "string", "description": "Id of the rule."},
                "severity": {"enum": ["suggest", "important"], "description": "How much it matters."},
                "confidence": {"enum": ["likely", "sure"], "description": "How sure it is."},
                "units": {"type": "integer", "description": "Units of the month that have it."},
                "cluster_id": {"type": "string", "description": "Cluster of the newest of them."},
                "uuid": {"type": "string", "description": "Its id."},
                "text": {"type": "string", "description": "What its report says."},
                "lines": {
                  "type": "array",
                  "description": "Lines to type, as users of its manager write them.",
                  "items": {
                    "type": "object",
                    "required": ["type", "was"],
                    "additionalProperties": false,
                    "properties": {
                      "type": {"type": "string", "description": "The whole line."},
                      "was": {"type": ["string", "null"], "description": "What stood there before, without the word in front."}
                    }
                  }
                },
                "sbatch": {"type": "array", "items": {"type": "string"}, "description": "Options to use; SLURM only."},
                "was": {"type": "array", "items": {"type": "string"}, "description": "Options that were used; SLURM only."},
                "saves": {"type": "object", "additionalProperties": {"type": "number"}, "description": "What it would save in a run, such as kwh."}
              }
            }
          }
        }
      })json",
            .example =
                R"({"v":1,"month":"2026-11","user":"ada","project":null,"clusters":[],"so_far":false,)"
                R"("band_only":false,"months":[{"month":"2026-11","core_hours":12346,"gpu_hours":82.1,)"
                R"("kwh":41.3,"g":1820,"units":214,"idle_share":0.11,"not_used_share":0.04}],"method":"measured",)"
                R"("modelled_share":0,"unmeasured":[],"kwh_change":-0.08,"hours_change":-0.12,)"
                R"("improvement":{"name":"relax-#","runs":20,"before":0.31,"now":0.11,"saved_kwh":4.2},)"
                R"("band":null,"suggestions":[{"rule":"mem-excess","severity":"suggest","confidence":"sure",)"
                R"("units":14,"cluster_id":"hpc-a","uuid":"4711","text":"Memory: 7.9 GiB a node at most.",)"
                R"("lines":[{"type":"#SBATCH --mem=10G","was":"--mem=128G"}],"sbatch":["--mem=10G"],)"
                R"("was":["--mem=128G"],"saves":{"kwh":2.6}}]})"},
       .params = {Param::kClusterId, Param::kProject, Param::kMonth, Param::kFormat,
                  Param::kLanguage, Param::kWidth},
       .tagged = false,
       .refusals = {ApiErrorType::kBadData}}};
}

}  // namespace ceems::api
