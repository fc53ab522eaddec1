#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cacct/api.h"
#include "cacct/options.h"
#include "cacct/output/answer.h"

namespace ceems::cacct {

/// Whether the jobs are shown as a list for people: on a terminal, or with --gpus, and unless a
/// flag asks for another form.
bool shows_listing(const Options& options, bool terminal);

/// The list of `units` with their sums and, where the site has prices, their cost. `now` in
/// seconds. With --gpus there is a strip below each job that has GPUs; what of that cannot be had
/// is said on standard error.
std::string listing_text(Api& api,
                         const Options& options,
                         const Question& question,
                         const std::vector<Record>& units,
                         const std::vector<Record>& usage,
                         std::int64_t now);

/// What is said when no job was found, with what to try: "No jobs today; try -S now-1weeks".
std::string no_jobs_text(const Options& options, const Question& question, std::int64_t now);

}  // namespace ceems::cacct
