// What a job would probably use, before it is submitted.
#include <string>
#include <utility>

#include "advice/catalogue.h"
#include "api/check/job_check.h"
#include "api/check/job_request.h"
#include "api/endpoints/all.h"

namespace ceems::api {
namespace {

void check_request(const Services& services, Call& call) {
  if (!has_json_body(call)) {
    return;
  }
  const auto request = parse_job_request(call.request->body);
  if (!request) {
    answer_bad_request(call, request.error());
    return;
  }
  const std::string language = advice::catalogue(call.params.language).language;
  QueryTimer timer(*services.metrics, Query::kUnits);
  const auto answer =
      timer.run([&] { return services.checks->check(call.identity, *request, language); });
  if (answer) {
    answer_data(*call.response, "[" + *answer + "]");
  } else if (answer.error().code == ErrorCode::kInvalidArgument) {
    answer_bad_request(call, answer.error());
  } else {
    answer_failure(*call.response, answer.error());
  }
}

}  // namespace

Endpoints units_check_endpoints() {
  return {
      {.path = "units/check",
       .caller = Caller::kUser,
       .summary = "What a job would probably use, before it is submitted, and what would help.",
       .handler = check_request,
       .data =
           {.name = "JobCheck",
            .definitions = R"json("JobCheck": {
        "type": "object",
        "description": "What is not known is absent. Ranges are of one task of an array.",
        "required": ["cluster_id", "basis", "expected", "array_tasks", "suggestions", "elsewhere"],
        "additionalProperties": false,
        "properties": {
          "cluster_id": {"type": "string"},
          "basis": {
            "type": "object",
            "required": ["kind", "name", "runs", "days"],
            "additionalProperties": false,
            "properties": {
              "kind": {"enum": ["family", "user", "project", "partition", "none"], "description": "Whose runs are the basis: of the same job, or of others."},
              "name": {"type": "string", "description": "The family with `#` for numbers, or the user, project or partition."},
              "runs": {"type": "integer", "description": "How many runs, at most 20."},
              "days": {"type": "integer", "description": "How far back they were looked for."}
            }
          },
          "expected": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
              "wait_s": {"$ref": "#/components/schemas/Range", "description": "Time in the queue."},
              "elapsed_s": {"$ref": "#/components/schemas/Range"},
              "energy_kwh": {"$ref": "#/components/schemas/Range"},
              "cost": {"$ref": "#/components/schemas/Range", "description": "By the prices of the site, for a start now."},
              "emissions_g": {"$ref": "#/components/schemas/Range", "description": "CO2e in grams."}
            }
          },
          "array_tasks": {"type": "integer", "description": "As requested."},
          "over_limit": {"type": "integer", "description": "How many of the runs took longer than the time limit that is requested."},
          "held": {
            "type": "object",
            "description": "How often ranges of energy held for the last runs of the cluster, each expected from those before it.",
            "required": ["share", "of"],
            "additionalProperties": false,
            "properties": {"share": {"type": "number"}, "of": {"type": "integer"}}
          },
          "unused": {
            "type": "object",
            "description": "The medians of what runs of the family left unused.",
            "additionalProperties": false,
            "properties": {
              "gpus": {"type": "number"},
              "cpus": {"type": "number"},
              "memory_bytes": {"type": "number"},
              "time_limit_s": {"type": "number"}
            }
          },
          "suggestions": {
            "type": "array",
            "items": {
              "type": "object",
              "required": ["rule", "text", "lines", "was", "saves", "seen_in"],
              "additionalProperties": false,
              "properties": {
                "rule": {"type": "string", "description": "Id of the rule."},
                "text": {"type": "string"},
                "lines": {"type": "array", "items": {"type": "string"}, "description": "Options in the form of the request."},
                "was": {"type": "array", "items": {"type": "string"}, "description": "What stands there now, in the same order; empty if it is not known."},
                "saves": {"type": "object", "additionalProperties": {"type": "number"}, "description": "What it would save in a run, such as kwh."},
                "seen_in": {"type": "integer", "description": "In how many of the last 8 runs it was true."}
              }
            }
          },
          "elsewhere": {
            "type": "array",
            "description": "Where else the job could run, from resources.yml.",
            "items": {
              "type": "object",
              "required": ["text"],
              "additionalProperties": false,
              "properties": {
                "site": {"type": "string", "description": "Another site; absent: this one."},
                "partition": {"type": "string"},
                "url": {"type": "string"},
                "text": {"type": "string", "description": "Why it would be better."},
                "for": {"type": "string", "description": "Who may use it."},
                "note": {"type": "string"},
                "cost": {"type": "number", "description": "What the job would cost there."},
                "currency": {"type": "string"}
              }
            }
          },
          "begin": {
            "type": "object",
            "description": "The greenest start within a day, if it saves at least 10 % and 100 g.",
            "required": ["start_ts", "g", "now_g", "band_g", "lines", "basis"],
            "additionalProperties": false,
            "properties": {
              "start_ts": {"type": "integer", "description": "In milliseconds since 1970."},
              "g": {"type": "number", "description": "Emissions then."},
              "now_g": {"type": "number", "description": "Emissions of a start in the next hour."},
              "band_g": {"type": "array", "items": {"type": "number"}, "description": "Least and most of the weeks before."},
              "lines": {"type": "array", "items": {"type": "string"}},
              "basis": {"enum": ["forecast", "median"], "description": "`median`: the same hours of the last four weeks."}
            }
          }
        }
      },
      "Range": {
        "type": "object",
        "description": "The median, and a range that should hold in four of five cases.",
        "required": ["mid", "low", "high"],
        "additionalProperties": false,
        "properties": {
          "mid": {"type": "number"},
          "low": {"type": "number"},
          "high": {"type": "number"},
          "currency": {"type": "string", "description": "Of costs."}
        }
      })json",
            .example =
                R"({"cluster_id":"hpc-a","basis":{"kind":"family","name":"train-#","runs":12,"days":90},)"
                R"("expected":{"wait_s":{"mid":600,"low":0,"high":5400},)"
                R"("elapsed_s":{"mid":18000,"low":16600,"high":19900},)"
                R"("energy_kwh":{"mid":12.1,"low":10.8,"high":13.4},)"
                R"("cost":{"mid":3.02,"low":2.7,"high":3.35,"currency":"EUR"},)"
                R"("emissions_g":{"mid":749,"low":610,"high":880}},"array_tasks":1,)"
                R"("held":{"share":0.81,"of":1500},)"
                R"("unused":{"gpus":2,"cpus":17.3,"time_limit_s":25200},)"
                R"("suggestions":[{"rule":"gpu-unused","text":"2 of 4 GPUs never ran a kernel.",)"
                R"("lines":["--gres=gpu:2"],"was":["--gres=gpu:4"],"saves":{"kwh":0.63},"seen_in":8}],)"
                R"("elsewhere":[{"partition":"gpu-small","text":"The job fits into the partition)"
                R"( gpu-small, where it costs about 1.51 EUR instead of 3.02 EUR.","for":"everybody",)"
                R"("cost":1.51,"currency":"EUR"}],)"
                R"("begin":{"start_ts":1794949200000,"g":505,"now_g":749,"band_g":[446,547],)"
                R"("lines":["--begin=22:00"],"basis":"median"}})"},
       .body =
           {.name = "JobRequest",
            .definitions = R"json("JobRequest": {
        "type": "object",
        "required": ["cluster_id"],
        "additionalProperties": false,
        "properties": {
          "cluster_id": {"type": "string"},
          "form": {"enum": ["sbatch", "pbs", "lsf", "k8s"], "description": "Form of the lines to suggest. Default: that of the cluster's manager."},
          "request": {
            "type": "object",
            "description": "CPUs, GPUs and memory are of the whole job.",
            "additionalProperties": false,
            "properties": {
              "name": {"type": "string", "description": "Name of the job; without it, that of the executable."},
              "project": {"type": "string"},
              "partition": {"type": "string"},
              "nodes": {"type": "number"},
              "cpus": {"type": "number"},
              "gpus": {"type": "number"},
              "memory_bytes": {"type": "number"},
              "time_limit_s": {"type": "number"},
              "array_tasks": {"type": "integer"},
              "executable": {"type": "string"}
            }
          },
          "directives": {"type": "array", "items": {"type": "string"}, "description": "Options as they were written, in order: `--nodes=1`."},
          "deadline_ts": {"type": "integer", "description": "When the job has to be done, in milliseconds since 1970."}
        }
      })json",
            .example =
                R"({"cluster_id":"hpc-a","form":"sbatch","request":{"name":"train-7","project":"fluids",)"
                R"("partition":"gpu","nodes":1,"cpus":32,"gpus":4,"memory_bytes":137438953472,)"
                R"("time_limit_s":43200,"array_tasks":1,"executable":"train.py"},)"
                R"("directives":["--nodes=1","--gres=gpu:4"],"deadline_ts":1794949200000})"},
       .params = {Param::kLanguage},
       .tagged = false,
       .audited = false,
       .by_token = ByToken::kAlways,
       .refusals = {ApiErrorType::kBadData}}};
}

}  // namespace ceems::api
