// How well slow members of jobs are found, on simulated jobs whose faults are known.
//
//   fleet_stragglers [JOBS [HEALTHY [SEED]]]
//
// Prints a row for each fault: of JOBS jobs, the share of faulty members that were found at all and
// within ten minutes in which it computed, the share of rows that name a faulty member and the
// right kind, and the median minutes until it was found. Of HEALTHY jobs, those with any row.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/fleet/devices.h"

namespace {

using namespace ceems::bench::fleet;  // NOLINT(google-build-using-namespace)
using ceems::fleet::JobMember;
using ceems::fleet::Straggler;

constexpr std::size_t kMinutes = 45;
constexpr std::size_t kInTime = 10;
constexpr std::size_t kWarmUp = 5;
constexpr double kPercent = 100;

struct Score {
  std::size_t jobs = 0, faulty = 0, found = 0, in_time = 0, rows = 0, right = 0, jobs_with_rows = 0;
  std::vector<std::size_t> minutes = {};
};

void judge(const SimulatedJob& job, Score& score) {
  const std::vector<Straggler> rows = ceems::fleet::find_stragglers(job.members);
  ++score.jobs;
  score.faulty += job.at_fault.size();
  score.rows += rows.size();
  score.jobs_with_rows += rows.empty() ? 0 : 1;
  for (const Straggler& row : rows) {
    bool right = false;
    for (const std::size_t place : job.at_fault) {
      const JobMember& member = job.members[place];
      if (row.kind != job.kind || row.node != member.node ||
          (!row.device.empty() && row.device != member.device)) {
        continue;
      }
      right = true;
      ++score.found;
      const std::size_t begin = std::max(job.from, kWarmUp);
      const auto minutes = static_cast<std::size_t>(
          std::count(job.computes.begin() + static_cast<std::ptrdiff_t>(begin),
                     job.computes.begin() + static_cast<std::ptrdiff_t>(row.found_at + 1), true));
      score.minutes.push_back(minutes);
      score.in_time += minutes <= kInTime ? 1 : 0;
    }
    score.right += right ? 1 : 0;
  }
}

std::string share(std::size_t part, std::size_t all) {
  return all == 0 ? "-"
                  : fmt::format("{:.3f}", static_cast<double>(part) / static_cast<double>(all));
}

std::size_t argument(std::span<char*> arguments, std::size_t place, std::size_t standard) {
  return place < arguments.size() ? std::strtoull(arguments[place], nullptr, 10) : standard;
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  const std::size_t jobs = argument(arguments, 1, 1000);
  const std::size_t healthy = argument(arguments, 2, 10'000);
  std::mt19937_64 random(argument(arguments, 3, 1));
  fmt::print("| Fault | Jobs | Recall in 10 min | Recall | Precision | Minutes |\n");
  fmt::print("|---|---:|---:|---:|---:|---:|\n");
  for (const Fault fault : {Fault::kSlow5, Fault::kSlow10, Fault::kSlow20, Fault::kHotRack,
                            Fault::kImbalance, Fault::kWaits, Fault::kBadCable}) {
    Score score;
    for (std::size_t i = 0; i < jobs; ++i) {
      judge(simulate_job(fault, kMinutes, random), score);
    }
    std::ranges::sort(score.minutes);
    fmt::print(
        "| {} | {} | {} | {} | {} | {} |\n", name_of(fault), score.jobs,
        share(score.in_time, score.faulty), share(score.found, score.faulty),
        share(score.right, score.rows),
        score.minutes.empty() ? "-" : fmt::to_string(score.minutes[score.minutes.size() / 2]));
  }
  fmt::print("\n| Healthy jobs | Jobs | With a finding |\n|---|---:|---:|\n");
  for (const auto& [fault, count] :
       {std::pair(Fault::kNone, healthy), std::pair(Fault::kMaster, healthy / 10)}) {
    Score score;
    for (std::size_t i = 0; i < count; ++i) {
      judge(simulate_job(fault, kMinutes, random), score);
    }
    fmt::print("| {} | {} | {:.2f} % |\n", name_of(fault), score.jobs,
               kPercent * static_cast<double>(score.jobs_with_rows) /
                   static_cast<double>(std::max<std::size_t>(1, score.jobs)));
  }
  return 0;
}
