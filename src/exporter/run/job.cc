#include "exporter/run/job.h"

#include <algorithm>

#include "base/strings.h"
#include "base/text/node_list.h"

namespace ceems::exporter::run {
namespace {

constexpr std::size_t kMaxNodes = 65'536;
constexpr std::size_t kMaxFileName = 64;

std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words;
  for (const std::string_view word : split(list, ',')) {
    if (!trim(word).empty() && words.size() < kMaxNodes) {
      words.emplace_back(trim(word));
    }
  }
  return words;
}

std::string_view without_domain(std::string_view host) {
  return host.substr(0, host.find('.'));
}

void describe_slurm(const Environment& environment, Job& job) {
  job.name = environment("SLURM_JOB_NAME");
  job.cluster = environment("SLURM_CLUSTER_NAME");
  job.nodes =
      expand_node_list(environment("SLURM_JOB_NODELIST")).value_or(std::vector<std::string>());
  job.node_count = parse_int<std::size_t>(environment("SLURM_JOB_NUM_NODES"))
                       .value_or(std::max<std::size_t>(job.nodes.size(), 1));
  const std::string node = environment("SLURMD_NODENAME");
  job.node = node.empty() ? node_name_of(job.nodes, job.node) : node;
  // salloc starts a shell where it was called, which is usually none of the job's nodes.
  job.on_node = !node.empty() || std::ranges::find(job.nodes, job.node) != job.nodes.end();
  const bool in_step = is_number(environment("SLURM_STEP_ID"));
  job.first_task = !in_step || environment("SLURM_PROCID") == "0";
  for (const char* name : {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"}) {
    if (job.gpus.empty()) {
      job.gpus = words_of(environment(name));
    }
  }
}

}  // namespace

std::vector<std::string> nodes_in_file(std::string_view text) {
  std::vector<std::string> nodes;
  for (const std::string_view line : split(text, '\n')) {
    std::string_view rest = line;
    const std::string_view node = take_word(rest);
    const bool is_new = std::ranges::find(nodes, node) == nodes.end();
    if (!node.empty() && is_new && nodes.size() < kMaxNodes) {
      nodes.emplace_back(node);
    }
  }
  return nodes;
}

Job describe_job(const Environment& environment, const std::string& hostname, int pid) {
  Job job{.manager = "run",
          .id = std::to_string(pid),
          .name = {},
          .cluster = {},
          .node = hostname,
          .nodes = {},
          .node_file = {},
          .gpus = {},
          .id_variable = {}};
  if (const std::string id = environment("SLURM_JOB_ID"); !id.empty()) {
    set_manager(job, "slurm", id);
    describe_slurm(environment, job);
  } else if (const std::string pbs = environment("PBS_JOBID"); !pbs.empty()) {
    set_manager(job, "pbs", pbs);
    job.name = environment("PBS_JOBNAME");
    job.node_file = environment("PBS_NODEFILE");
  } else if (const std::string lsf = environment("LSB_JOBID"); !lsf.empty()) {
    set_manager(job, "lsf", lsf);
    job.name = environment("LSB_JOBNAME");
    job.node_file = environment("LSB_DJOB_HOSTFILE");
  }
  if (job.managed() && job.gpus.empty()) {
    job.gpus = words_of(environment("CUDA_VISIBLE_DEVICES"));
  }
  if (job.managed() && job.gpus.empty()) {
    job.gpus = words_of(environment("ROCR_VISIBLE_DEVICES"));
  }
  return job;
}

void set_manager(Job& job, const std::string& manager, const std::string& id) {
  job.manager = manager;
  job.id = id;
  job.id_variable = manager == "slurm" ? "SLURM_JOB_ID"
                    : manager == "pbs" ? "PBS_JOBID"
                    : manager == "lsf" ? "LSB_JOBID"
                                       : "";
}

std::string node_name_of(const std::vector<std::string>& nodes, std::string_view hostname) {
  const auto same = [&](const std::string& node) {
    return without_domain(node) == without_domain(hostname);
  };
  const auto found = std::ranges::find_if(nodes, same);
  return found != nodes.end() ? *found : std::string(without_domain(hostname));
}

std::string file_name_of(std::string_view text) {
  std::string name(text.substr(0, kMaxFileName));
  for (char& c : name) {
    c = is_word(c, "._-") ? c : '_';
  }
  if (name.empty() || name.front() == '.') {
    name.insert(0, 1, '_');
  }
  return name;
}

std::optional<std::string> job_directory(std::string_view cgroups,
                                         std::string_view controller,
                                         const Job& job) {
  if (!job.managed() || job.id.empty()) {
    return std::nullopt;
  }
  const std::string slurm = "job_" + job.id;
  for (const std::string_view line : split(cgroups, '\n')) {
    std::string_view rest = line;  // number:controllers:path
    take_until(rest, ':');
    const auto controllers = split(take_until(rest, ':'), ',');
    if (std::ranges::find(controllers, controller) == controllers.end()) {
      continue;
    }
    std::string directory;
    for (const std::string_view name : split(rest, '/')) {
      if (name.empty() || name == "..") {
        continue;
      }
      directory += "/" + std::string(name);
      if (name == slurm || (job.manager == "pbs" && name == job.id)) {
        return directory;
      }
    }
  }
  return std::nullopt;
}

}  // namespace ceems::exporter::run
