#include <utility>

#include <fmt/format.h>

#include "base/json_reader.h"
#include "base/utf8.h"
#include "cacct/api.h"
#include "cacct/commands.h"
#include "cacct/output/answer.h"
#include "cacct/output/pager.h"
#include "cacct/output/terminal.h"
#include "cacct/session.h"

namespace ceems::cacct {
namespace {

std::string format_of(const DigestOptions& options) {
  if (options.json) {
    return "json";
  }
  if (options.markdown) {
    return "markdown";
  }
  if (options.html) {
    return "html";
  }
  return options.ascii || lacks_utf8() ? "ascii" : "text";
}

Result<std::string> fetch(const DigestOptions& options, const Caller& caller) {
  if (options.json + options.markdown + options.html + options.ascii > 1) {
    return fail(ErrorCode::kInvalidArgument,
                "--json, --markdown, --html and --ascii exclude each other");
  }
  if (options.width != 0 && (options.width < kMinTextWidth || options.width > kMaxTextWidth)) {
    return fail(ErrorCode::kInvalidArgument, "--width: expected a number from {} to {}",
                kMinTextWidth, kMaxTextWidth);
  }
  CEEMS_TRY(session, open_session(caller));
  const Config& config = session.config;
  session.log.write(log::Level::kInfo, "digest",
                    {{"user", caller.login},
                     {"uid", caller.uid},
                     {"gid", caller.gid},
                     {"month", options.month},
                     {"project", options.project}});
  CEEMS_TRY(api, Api::create(config.api_url, config.api_client, config.user_header, caller.login));
  return api.digest(
      {.cluster_id = options.all_clusters ? "" : config.cluster_id,
       .month = options.month,
       .project = options.project,
       .format = format_of(options),
       .language = options.language,
       .width = options.width > 0 ? options.width : static_cast<long>(terminal_width())});
}

Result<std::string> print(const DigestOptions& options, const Caller& caller) {
  const auto answer = fetch(options, caller);
  if (!answer || !options.json) {
    return answer ? Result<std::string>(safe_lines(*answer)) : fail(answer.error());
  }
  std::string out;
  if (!append_json(out, *answer)) {
    return fail(ErrorCode::kParse, "unexpected answer of the API server");
  }
  return terminal_safe(out) + "\n";
}

}  // namespace

void add_digest_flags(config::FlagSet& flags, DigestOptions& options) {
  flags.add("month", options.month,
            {.help = "The month, such as 2026-11. The default is this one so far.",
             .placeholder = "MONTH"});
  flags.add("project", options.project,
            {.help = "The month of this project instead of your own. Its leads see all of it, its "
                     "members where it stands among all projects.",
             .placeholder = "PROJECT"});
  flags.add("all-clusters", options.all_clusters,
            {.help = "All clusters of the API server instead of the configured one."});
  flags.add("json", options.json, {.help = "Print JSON, with the same digits."});
  flags.add("markdown", options.markdown, {.help = "Print Markdown."});
  flags.add("html", options.html,
            {.help = "Print a page in HTML that needs no other file and prints well."});
  flags.add("ascii", options.ascii,
            {.help = "Print no characters beyond ASCII. The default on terminals without UTF-8."});
  flags.add("width", options.width,
            {.help = "Columns of the text, from 60 to 240. The default is the width of the "
                     "terminal, otherwise 80.",
             .placeholder = "COLUMNS"});
  flags.add_enum("lang", options.language, {"en", "de", "fr"}, {.help = "Language of the text."});
}

int run_digest(const DigestOptions& options, const Caller& caller) {
  return show_or_explain(print(options, caller));
}

}  // namespace ceems::cacct
