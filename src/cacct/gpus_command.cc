#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <re2/re2.h>

#include "base/strings.h"
#include "cacct/api.h"
#include "cacct/commands.h"
#include "cacct/output/gpu_board.h"
#include "cacct/output/pager.h"
#include "cacct/output/terminal.h"
#include "cacct/session.h"

namespace ceems::cacct {
namespace {

bool used_by(const GpuLine& line, std::string_view user) {
  return std::ranges::any_of(line.cells, [&](const GpuCell& cell) {
    return std::ranges::find(cell.units, user, &GpuUnit::user) != cell.units.end();
  });
}

Result<> print_gpus(const GpusOptions& options, const Caller& caller) {
  if (options.json && options.csv) {
    return fail(ErrorCode::kInvalidArgument, "--json and --csv exclude each other");
  }
  RE2::Options quiet;
  quiet.set_log_errors(false);
  const RE2 pattern(options.node, quiet);
  if (!pattern.ok()) {
    return fail(ErrorCode::kInvalidArgument, "--node: {}", printable(pattern.error(), 200));
  }
  CEEMS_TRY(session, open_session(caller));
  const Config& config = session.config;
  session.log.write(log::Level::kInfo, "gpus",
                    {{"user", caller.login},
                     {"uid", caller.uid},
                     {"gid", caller.gid},
                     {"users", options.all_users ? "all" : ""}});
  CEEMS_TRY(api, Api::create(config.api_url, config.api_client, config.user_header, caller.login));
  CEEMS_TRY(body, api.gpus(config.cluster_id, options.all_users));
  CEEMS_TRY(board, parse_gpu_board(body));
  for (const std::string& missing : board.missing) {
    fmt::print(stderr, "cacct: no data of cluster {}\n", missing);
  }
  std::erase_if(board.lines, [&](const GpuLine& line) {
    return !RE2::PartialMatch(re2::StringPiece(line.host.data(), line.host.size()), pattern) ||
           (options.me && !used_by(line, caller.login));
  });
  std::string text;
  if (options.json) {
    text = gpu_board_json(board);
  } else if (options.csv) {
    text = gpu_board_csv(board);
  } else {
    text = draw_gpu_board(board, {.ascii = options.ascii || lacks_utf8(),
                                  .colour = shows_bold(),
                                  .width = terminal_width()});
  }
  return show(text, false) ? Result<>()
                           : fail(ErrorCode::kUnavailable, "cannot write to standard output");
}

}  // namespace

void add_gpus_flags(config::FlagSet& flags, GpusOptions& options) {
  flags.add("me", options.me, {.help = "Only show GPUs that your jobs used."});
  flags.add("node", options.node,
            {.help = "Only show nodes whose name has a match of this regular expression.",
             .placeholder = "PATTERN"});
  flags.add("allusers", options.all_users,
            {.help = "Show jobs of all users. Only operators may do that.", .letter = 'a'});
  flags.add("json", options.json, {.help = "Print JSON."});
  flags.add("csv", options.csv, {.help = "Print CSV: a line for each job in each period."});
  flags.add("ascii", options.ascii,
            {.help = "Print no characters beyond ASCII. The default on terminals without UTF-8."});
}

int run_gpus(const GpusOptions& options, const Caller& caller) {
  const auto printed = print_gpus(options, caller);
  if (!printed) {
    fmt::print(stderr, "cacct: error: {}\n", printed.error().message);
    return 1;
  }
  return 0;
}

}  // namespace ceems::cacct
