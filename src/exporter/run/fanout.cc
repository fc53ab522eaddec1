#include "exporter/run/fanout.h"

#include <fmt/format.h>

#include "base/strings.h"

namespace ceems::exporter::run {

Result<Fanout> choose_fanout(std::string_view text, const Job& job) {
  if (text == "auto") {
    const bool elsewhere = job.node_count > 1 || !job.on_node;
    return job.manager == "slurm" && elsewhere ? Fanout::kSrun : Fanout::kNone;
  }
  if (text == "srun" && job.manager != "slurm") {
    return fail(ErrorCode::kInvalidArgument, "--fanout=srun: this is not a job of SLURM");
  }
  if ((text == "ssh" || text == "blaunch") && job.nodes.empty()) {
    return fail(ErrorCode::kInvalidArgument, "--fanout={}: the nodes of the job are not known",
                text);
  }
  return text == "srun"      ? Fanout::kSrun
         : text == "pbsdsh"  ? Fanout::kPbsdsh
         : text == "blaunch" ? Fanout::kBlaunch
         : text == "ssh"     ? Fanout::kSsh
                             : Fanout::kNone;
}

std::vector<std::vector<std::string>> fanout_commands(Fanout fanout,
                                                      const Job& job,
                                                      const std::vector<std::string>& agent) {
  std::vector<std::vector<std::string>> commands;
  const auto add = [&](std::vector<std::string> words) {
    words.insert(words.end(), agent.begin(), agent.end());
    commands.push_back(std::move(words));
  };
  switch (fanout) {
    case Fanout::kNone:
      break;
    case Fanout::kSrun:
      // --ntasks, because that of the job is in the environment and takes precedence otherwise.
      // Ways of asking for memory exclude each other, so the job's settings are removed.
      add({"env", "-u", "SLURM_MEM_PER_CPU", "-u", "SLURM_MEM_PER_GPU", "-u", "SLURM_MEM_PER_NODE",
           "srun", "--overlap", fmt::format("--ntasks={}", job.node_count), "--ntasks-per-node=1",
           fmt::format("--nodes={}", job.node_count), "--mem=0", "--cpu-bind=none",
           "--kill-on-bad-exit=0"});
      break;
    case Fanout::kPbsdsh:
      add({"pbsdsh", "-u", "--"});
      break;
    case Fanout::kBlaunch: {
      add({"blaunch", "-z", fmt::format("{}", fmt::join(job.nodes, " "))});
      break;
    }
    case Fanout::kSsh: {
      std::string line;
      for (const std::string& word : agent) {
        line += (line.empty() ? "" : " ") + shell_quoted(word);
      }
      for (const std::string& node : job.nodes) {
        // A name that looks like an option would be one.
        if (node != job.node && !node.starts_with('-')) {
          commands.push_back({"ssh", "-o", "BatchMode=yes", node, line});
        }
      }
      break;
    }
  }
  return commands;
}

}  // namespace ceems::exporter::run
