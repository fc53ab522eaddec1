#include "energy/report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace ceems::bench::energy {
namespace {

constexpr double kMapeWithAll = 8;  // percent
constexpr double kMapeElsewhere = 12;
constexpr double kAboveReference = 2;
constexpr double kIdle = 5;

std::string_view word(bool good) {
  return good ? "PASS" : "MISS";
}

double mean_size(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += std::abs(value);
  }
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double largest(const std::vector<double>& values) {
  const auto at = std::ranges::max_element(values, {}, [](double v) { return std::abs(v); });
  return at == values.end() ? 0 : *at;
}

const Errors& of(const Result& result, Rule rule, std::size_t what) {
  return result.classes.at(static_cast<std::size_t>(rule)).at(what);
}

double long_mape(const Result& result, Rule rule) {
  return result.long_jobs.at(static_cast<std::size_t>(rule)).mape();
}

}  // namespace

void Errors::add(double charged, double due) {
  charged_ += charged;
  truth_ += due;
  absolute_ += std::abs(charged - due);
  relative_ += std::abs(charged - due) / due;
  jobs_ += 1;
}

void Result::add(Rule rule, JobClass what, double charged, double due) {
  const auto at = static_cast<std::size_t>(rule);
  classes.at(at).at(static_cast<std::size_t>(what)).add(charged, due);
  if (is_long(what)) {
    long_jobs.at(at).add(charged, due);
  }
}

Verdict judge(const MeterSet& meters, const Result& result) {
  Verdict verdict;
  const bool all = meters.packages && meters.dram && meters.wall_period > 0;
  verdict.mape_goal = all ? kMapeWithAll : kMapeElsewhere;
  verdict.mape = long_mape(result, Rule::kOurs) <= verdict.mape_goal;
  verdict.worst = -std::numeric_limits<double>::infinity();
  for (std::size_t what = 0; what < kClassCount; ++what) {
    const Errors& ours = of(result, Rule::kOurs, what);
    const double above = ours.mean_error() - of(result, Rule::kReference, what).mean_error();
    if (!ours.empty() && above > verdict.worst) {
      verdict.worst = above;
      verdict.worst_class = static_cast<JobClass>(what);
    }
  }
  verdict.classes = verdict.worst <= kAboveReference;
  verdict.idle = largest(result.idle_last);
  verdict.idle_power = std::abs(verdict.idle) <= kIdle;
  return verdict;
}

void print(std::string_view name,
           const std::vector<MeterSet>& meters,
           const std::vector<Result>& results) {
  fmt::print("\n**{}**\n\n| ours / reference / Kepler |", name);
  for (const MeterSet& set : meters) {
    fmt::print(" {} |", set.name);
  }
  fmt::print("\n|---|");
  for (std::size_t i = 0; i < meters.size(); ++i) {
    fmt::print("---|");
  }
  fmt::print("\n");
  for (std::size_t what = 0; what < kClassCount; ++what) {
    if (of(results.front(), Rule::kOurs, what).empty()) {
      continue;
    }
    fmt::print("| {} |", to_string(static_cast<JobClass>(what)));
    for (const Result& result : results) {
      for (const Rule rule : {Rule::kOurs, Rule::kReference, Rule::kKepler}) {
        const Errors& errors = of(result, rule, what);
        fmt::print(" {:+.0f} ({:.0f}){}", errors.bias(), errors.mean_error(),
                   rule == Rule::kKepler ? " |" : " /");
      }
    }
    fmt::print("\n");
  }
  fmt::print("| **long jobs, MAPE** |");
  for (const Result& result : results) {
    fmt::print(" **{:.1f}** / {:.1f} / {:.1f} |", long_mape(result, Rule::kOurs),
               long_mape(result, Rule::kReference), long_mape(result, Rule::kKepler));
  }
  fmt::print("\n| idle power after 30 min of varied use: mean error (largest) |");
  for (const Result& result : results) {
    fmt::print(" {:.1f} ({:+.1f}) |", mean_size(result.idle_first), largest(result.idle_first));
  }
  fmt::print("\n| the same at the end |");
  for (const Result& result : results) {
    fmt::print(" {:.1f} ({:+.1f}) |", mean_size(result.idle_last), largest(result.idle_last));
  }
  fmt::print("\n| the same if all that can be seen were known |");
  for (const Result& result : results) {
    fmt::print(" {:.1f} ({:+.1f}) |", mean_size(result.idle_unseen), largest(result.idle_unseen));
  }
  fmt::print("\n| largest error above the reference's |");
  for (std::size_t i = 0; i < meters.size(); ++i) {
    const Verdict verdict = judge(meters[i], results[i]);
    fmt::print(" {:+.0f} ({}) |", verdict.worst, to_string(verdict.worst_class));
  }
  fmt::print("\n| goals: MAPE, classes, idle power |");
  for (std::size_t i = 0; i < meters.size(); ++i) {
    const Verdict verdict = judge(meters[i], results[i]);
    fmt::print(" {}, {}, {} |", word(verdict.mape), word(verdict.classes),
               word(verdict.idle_power));
  }
  fmt::print("\n");
}

void print_summary_head() {
  fmt::print(
      "\n**Summary**\n\n| scenario | meters | long jobs, MAPE: ours (goal) / reference / Kepler "
      "| largest error above the reference's | idle power: mean error (largest) | goals |\n"
      "|---|---|---|---|---|---|\n");
}

void print_summary(std::string_view name,
                   const std::vector<MeterSet>& meters,
                   const std::vector<Result>& results) {
  for (std::size_t i = 0; i < meters.size(); ++i) {
    const Result& result = results[i];
    const Verdict verdict = judge(meters[i], result);
    fmt::print(
        "| {} | {} | {:.1f} ({:.0f}) / {:.1f} / {:.1f} | {:+.0f}, {} | {:.1f} ({:+.1f}) | {} |\n",
        name, meters[i].name, long_mape(result, Rule::kOurs), verdict.mape_goal,
        long_mape(result, Rule::kReference), long_mape(result, Rule::kKepler), verdict.worst,
        to_string(verdict.worst_class), mean_size(result.idle_last), verdict.idle,
        word(verdict.pass()));
  }
}

}  // namespace ceems::bench::energy
