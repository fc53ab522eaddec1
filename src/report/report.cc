#include "report/report.h"

#include <algorithm>
#include <cmath>

#include "report/rounding.h"

namespace ceems::report {
namespace {

void round_to(Number& number, double step) {
  if (number) {
    number = std::round(*number / step) * step;
  }
}

void round_marks(Report& report) {
  constexpr int kDigits = 3;
  constexpr int kMoreDigits = 6;
  for (Phase& phase : report.phases) {
    round_to(phase.seconds, 1);
    round_share(phase.share);
    round_share(phase.longer);
    for (Number* number : {&phase.kwh, &phase.self_kwh, &phase.watts}) {
      round_significant(*number, kDigits);
    }
  }
  for (JobResult& result : report.results) {
    round_significant(result.n, 2 * kMoreDigits);
    round_significant(result.joules, kDigits);
    round_significant(result.family_joules, kDigits);
    for (EarlierResult& earlier : result.family) {
      round_significant(earlier.joules, kDigits);
    }
  }
  for (Merit& merit : report.merits) {
    round_significant(merit.last, kMoreDigits);
    round_significant(merit.mean, kMoreDigits);
  }
}

}  // namespace

std::string_view to_string(State state) {
  switch (state) {
    case State::kSoFar:
      return "so_far";
    case State::kPartial:
      return "partial";
    case State::kFinal:
      break;
  }
  return "final";
}

void round_report(Report& report) {
  if (report.coverage) {  // down, because 99.96 % is not all
    report.coverage = std::floor(*report.coverage * 1000) / 1000;
  }
  for (Number* share :
       {&report.use.cpu, &report.use.mem, &report.use.gpu_busy, &report.use.gpu_sm,
        &report.use.gpu_mem, &report.compared.cpu_low, &report.compared.cpu_high,
        &report.compared.mem_median, &report.compared.gpu_low, &report.compared.gpu_high}) {
    round_share(*share);
  }
  for (Number* bytes : {&report.use.mem_peak_node, &report.use.mem_alloc_node}) {
    round_to(*bytes, 1);
  }
  for (Number* seconds : {&report.job.elapsed, &report.job.limit, &report.job.waited}) {
    round_to(*seconds, 1);
  }
  for (NodeUse& node : report.nodes) {
    round_to(node.mem_peak, 1);
    round_to(node.mem_alloc, 1);
    if (node.cpu_seconds) {
      node.cpu_seconds = std::round(*node.cpu_seconds * 10) / 10;
    }
    for (GpuUse& gpu : node.gpus) {
      round_share(gpu.busy);
      round_share(gpu.sm);
      round_to(gpu.mem_peak, 1);
      round_to(gpu.mem_total, 1);
    }
  }
  constexpr int kDigits = 3;
  for (Number* number : {&report.energy.kwh, &report.energy.idle_kwh, &report.energy.not_used_kwh,
                         &report.co2.grams, &report.compared.median_kwh}) {
    round_significant(*number, kDigits);
  }
  if (Number& amount = report.cost.amount) {
    constexpr double kCents = 100;
    amount = std::round(*amount * kCents) / kCents;
  }
  round_significant(report.compared.project_month_share, 2);
  for (auto& [domain, kwh] : report.energy.domains) {
    kwh = significant(kwh, kDigits);
  }
  for (advice::Finding& finding : report.findings) {
    round_significant(finding.saves_kwh, 2);
  }
  round_marks(report);
}

void withhold_written(Report& report) {
  report.job.name.clear();
  report.job.qos.clear();
  for (advice::Finding& finding : report.findings) {
    finding.lines.clear();
  }
  report.phases.clear();
  report.results.clear();
  report.merits.clear();
}

}  // namespace ceems::report
