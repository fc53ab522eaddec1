#include "lb/figures.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/version.h"

namespace ceems::lb {
namespace {

using metrics::Desc;
using metrics::Type;

const Desc kBuildInfo{"ceems_lb_build_info",
                      "Version of the program; the value is always 1.",
                      Type::kGauge,
                      {"branch", "goarch", "goos", "goversion", "revision", "tags", "version"}};
const Desc kDecisions{"ceems_lb_decisions_total",
                      "Requests that were let through (allowed, admin) or refused, by reason.",
                      Type::kCounter,
                      {"backend_type", "reason"}};
const Desc kAnswers{"ceems_lb_answers_total",
                    "Requests that were passed on, by class of the answer's HTTP status; 0xx: the "
                    "client left before one came.",
                    Type::kCounter,
                    {"backend_type", "status"}};
const Desc kBroken{"ceems_lb_answers_broken_total",
                   "Answers that broke off: backend or client went away in their midst.",
                   Type::kCounter,
                   {"backend_type"}};
const Desc kBytes{"ceems_lb_answer_bytes_total",
                  "Bytes of the bodies of answers.",
                  Type::kCounter,
                  {"backend_type"}};
const Desc kUp{"ceems_lb_backend_up",
               "Whether requests are sent to the backend (1) or not (0).",
               Type::kGauge,
               {"backend", "backend_type", "cluster_id"}};
const Desc kInFlight{"ceems_lb_backend_requests_in_flight",
                     "Requests that wait for the backend or for the end of its answer.",
                     Type::kGauge,
                     {"backend", "backend_type", "cluster_id"}};
constexpr std::string_view kDecisionSeconds = "ceems_lb_decision_duration_seconds";
constexpr std::string_view kAnswerSeconds = "ceems_lb_answer_duration_seconds";

constexpr std::array<std::string_view, 6> kClassNames{"0xx", "1xx", "2xx", "3xx", "4xx", "5xx"};
constexpr std::array kTypes{gate::BackendType::kTsdb, gate::BackendType::kProfiles};

/// Decisions take microseconds, or as long as the database.
constexpr std::array kDecisionBounds{5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0};

std::size_t place(gate::BackendType type) {
  return type == gate::BackendType::kTsdb ? 0 : 1;
}

}  // namespace

Figures::OfType::OfType() : decisions(kDecisionBounds), seconds(metrics::Histogram::latencies()) {}

Figures::Figures() : process_("the load balancer") {}

void Figures::count_decision(gate::BackendType type, std::string_view reason) {
  const std::scoped_lock lock(mutex_);
  ++reasons_[{type, std::string(reason)}];
}

void Figures::observe_decision(gate::BackendType type, double seconds) {
  types_.at(place(type)).decisions.observe(seconds);
}

void Figures::count_answer(gate::BackendType type, const net::RelayEnd& end, double seconds) {
  constexpr int kPerClass = 100;
  OfType& of_type = types_.at(place(type));
  const int status_class = std::clamp(end.status / kPerClass, 0, static_cast<int>(kClasses) - 1);
  of_type.answers.at(static_cast<std::size_t>(status_class)).fetch_add(1);
  of_type.bytes.fetch_add(end.body_bytes);
  of_type.broken.fetch_add(!end.error.empty() && end.upstream != nullptr ? 1U : 0U);
  of_type.seconds.observe(seconds);
}

std::string Figures::page(const std::vector<Server>& servers) {
  metrics::Sink sink;
  const Version& about = version();
  sink.add(kBuildInfo, 1, {about.branch, "amd64", "linux", "", about.revision, "", about.version});
  for (const gate::BackendType type : kTypes) {
    const std::string_view name = gate::type_name(type);
    OfType& of_type = types_.at(place(type));
    for (std::size_t i = 0; i < kClasses; ++i) {
      sink.add(kAnswers, static_cast<double>(of_type.answers.at(i)), {name, kClassNames.at(i)});
    }
    sink.add(kBytes, static_cast<double>(of_type.bytes), {name});
    sink.add(kBroken, static_cast<double>(of_type.broken), {name});
  }
  for (const Server& server : servers) {
    const std::string address = server.upstream->address();
    const std::string_view type = gate::type_name(server.type);
    sink.add(kUp, server.upstream->alive() ? 1 : 0, {address, type, server.cluster});
    sink.add(kInFlight, server.upstream->in_flight(), {address, type, server.cluster});
  }
  std::string out;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [key, count] : reasons_) {
      sink.add(kDecisions, static_cast<double>(count), {gate::type_name(key.first), key.second});
    }
    process_.add(sink);
  }
  sink.render(metrics::Exposition::kText, out);
  metrics::append_histogram_header(out, kDecisionSeconds,
                                   "Time from a whole request to the decision about it.");
  for (const gate::BackendType type : kTypes) {
    types_.at(place(type))
        .decisions.append(out, kDecisionSeconds,
                          fmt::format("backend_type=\"{}\"", gate::type_name(type)));
  }
  metrics::append_histogram_header(out, kAnswerSeconds,
                                   "Time from the decision to the last byte of the answer.");
  for (const gate::BackendType type : kTypes) {
    types_.at(place(type))
        .seconds.append(out, kAnswerSeconds,
                        fmt::format("backend_type=\"{}\"", gate::type_name(type)));
  }
  return out;
}

}  // namespace ceems::lb
