#include "exporter/rdma/command_reader.h"

#include <linux/capability.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "exporter/rdma/text.h"

namespace ceems::exporter::rdma {
namespace {

constexpr std::chrono::seconds kDeadline{5};

Result<std::string> output_of(const Result<os::CommandResult>& result, const std::string& what) {
  if (!result) {
    return fail(Error(result.error()).with_context(what));
  }
  if (result->exit_status != 0) {
    return fail(ErrorCode::kUnavailable, "{}: exit status {}: {}", what, result->exit_status,
                printable(trim(result->error_text)));
  }
  return result->output;
}

}  // namespace

Result<std::string> CommandReader::run(std::vector<std::string> arguments,
                                       const std::stop_token& stop,
                                       std::chrono::milliseconds limit) {
  std::string what = "rdma";
  for (const std::string& argument : arguments) {
    what += " " + argument;
  }
  return output_of(runner_.run({.path = program_,
                                .arguments = std::move(arguments),
                                .environment = environment_,
                                .timeout = std::min<std::chrono::milliseconds>(limit, kDeadline)},
                               stop),
                   what);
}

Result<std::vector<LinkMode>> CommandReader::modes(std::chrono::milliseconds limit,
                                                   std::stop_token stop) {
  CEEMS_TRY(text, run({"statistic", "qp", "mode"}, stop, limit));
  return parse_modes(text);
}

Result<Resources> CommandReader::read(bool counters, std::stop_token stop) {
  Resources resources;
  std::optional<Error> failure;
  const auto part = [&](std::vector<std::string> arguments, auto parse, auto& into) {
    auto text = run(std::move(arguments), stop, kDeadline);
    if (text) {
      into = parse(*text);
    } else {
      failure = std::move(text).error();
    }
  };
  part({"resource", "show", "mr"}, parse_regions, resources.regions);
  part({"resource", "show", "cq"}, parse_queues, resources.queues);
  part({"resource", "show", "qp"}, parse_pairs, resources.pairs);
  if (counters) {
    part({"statistic", "qp", "show"}, parse_counters, resources.counters);
  }
  if (failure && !resources.regions && !resources.queues && !resources.pairs) {
    return fail(*std::move(failure));
  }
  return resources;
}

Result<> CommandReader::set_counting(const std::string& link, bool on) {
  std::vector<std::string> arguments{"statistic", "qp", "set", "link", link, "auto"};
  arguments.emplace_back(on ? "type,pid" : "off");
  if (on) {
    arguments.emplace_back("on");
  }
  CEEMS_TRY(output_of(runner_.run({.path = program_,
                                   .arguments = std::move(arguments),
                                   .environment = environment_,
                                   .timeout = kDeadline,
                                   .as_root = true,
                                   .only_trusted = true}),
                      "rdma statistic qp set link " + link));
  return {};
}

std::vector<os::Capability> CommandReader::capabilities() const {
  return {CAP_SETUID, CAP_SETGID};
}

}  // namespace ceems::exporter::rdma
