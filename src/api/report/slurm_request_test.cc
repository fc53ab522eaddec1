// How jobs of SLURM were asked for, and the lines that follow the same form.
#include "api/report/slurm_request.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "advice/judge.h"
#include "advice/test_runs.h"
#include "base/strings.h"
#include "jobscript/submit_options.h"

namespace ceems::api {
namespace {

namespace json = boost::json;
using ::testing::ElementsAre;

constexpr double kMiB = 1024.0 * 1024;

StoredUnit slurm_unit(const std::string& line,
                      const std::string& allocation = "{}",
                      const std::string& more = "") {
  StoredUnit unit;
  unit.unit.resource_manager = "slurm";
  json::object tags;
  if (!line.empty()) {
    tags["submit_line"] = line;
  }
  if (const std::size_t equals = more.find('='); equals != std::string::npos) {
    tags[more.substr(0, equals)] = more.substr(equals + 1);
  }
  unit.unit.tags = json::serialize(tags);
  unit.unit.allocation = allocation;
  return unit;
}

std::string request_text(const advice::Facts& facts, std::string_view name) {
  const advice::Value value = facts.value_of(name);
  if (const auto* text = std::get_if<std::string_view>(&value)) {
    return std::string(*text);
  }
  if (const auto* number = std::get_if<double>(&value)) {
    return fmt::format("{}", *number);
  }
  if (const bool* truth = std::get_if<bool>(&value)) {
    return *truth ? "yes" : "no";
  }
  return "?";
}

// ---- The table, which tests/slurm/run tries on a real SLURM.

/// The directives of a script with these lines, as the manager stores them.
std::string directives_of(const json::array& lines) {
  jobscript::ScriptDirectives directives;
  directives.add_line("#!/bin/sh");
  for (const json::value& line : lines) {
    directives.add_line("#SBATCH " + std::string(line.as_string()));
  }
  return directives.text().value_or("");
}

/// A row: how a job asked (`submit`: options of the command; `script`: directives; `read`: whether
/// these are read; `limits`: what its `partition` allows), the allocation that it got, and the
/// lines by rule.
advice::Facts facts_of_row(const json::object& row) {
  const auto number = [&row](const char* name) { return row.at(name).to_number<double>(); };
  const double cpus = number("cpus");
  const double nodes = number("nodes");
  const double gpus = number("gpus");
  const double memory = number("mem_mib") * kMiB;
  advice::Facts facts = advice::changed(gpus > 0 ? advice::gpu_run() : advice::cpu_run(),
                                        {{"alloc.nodes", nodes},
                                         {"alloc.cpus", cpus},
                                         {"alloc.gpus", gpus},
                                         {"req.cpus", cpus},
                                         {"alloc.cpus_per_node", cpus / nodes},
                                         {"alloc.mem_per_cpu", memory / cpus},
                                         {"mem.alloc_node", memory / nodes},
                                         {"node.cpus", 16},
                                         {"node.mem", 64000 * kMiB},
                                         {"gpu.per_node", gpus / nodes},
                                         {"limit", 7200}});
  for (const char* fact :
       {"slurm.mem", "slurm.by_tasks", "slurm.by_cpus", "slurm.time", "slurm.gpus_by",
        "slurm.gpus_option", "slurm.gpus_more", "slurm.gpus_asked", "slurm.tasks"}) {
    facts.clear(fact);
  }
  std::string line = "sbatch " + std::string(row.at("submit").as_string());
  line += row.contains("script") ? " run.sh" : " --wrap=hostname";
  std::string limits;
  if (row.contains("limits")) {
    const json::object& known = row.at("limits").as_object();
    limits = fmt::format(R"(,"partition_time":{},"partition_mem":{})",
                         known.at("minutes").to_number<double>() * 60,
                         known.at("mib").to_number<double>() * kMiB);
    for (const auto& [name, limit] :
         {std::pair("cpus", "partition_cpus"), {"min_nodes", "partition_min_nodes"}}) {
      if (known.contains(name)) {
        limits += fmt::format(R"(,"{}":{})", limit, known.at(name).to_number<double>());
      }
    }
    if (known.contains("cpu_mib")) {
      limits +=
          fmt::format(R"(,"partition_mem_cpu":{})", known.at("cpu_mib").to_number<double>() * kMiB);
    }
  }
  const std::string allocation = fmt::format(
      R"({{"cpus":{0},"req_cpus":{0},"nodes":{1},"gpus":{2}{3}}})", cpus, nodes, gpus, limits);
  std::string more = row.contains("unit") ? std::string(row.at("unit").as_string()) : "";
  if (row.contains("read")) {
    more = "script_options=" + directives_of(row.at("script").as_array());
  }
  const StoredUnit unit = slurm_unit(line, allocation, more);
  add_slurm_request(unit, facts);
  add_partition_limits(unit, facts);
  return facts;
}

/// The run as it is when a rule has something to say.
advice::Facts facts_for(const std::string& rule, const advice::Facts& facts) {
  const auto number = [&facts](const char* name) {
    const advice::Value value = facts.value_of(name);
    const auto* found = std::get_if<double>(&value);
    return found == nullptr ? 0 : *found;
  };
  const double memory = number("mem.alloc_node");
  advice::Facts changed =
      advice::changed(facts, {{"mem.peak_node_max", memory * 0.6},
                              {"family.mem_max", memory * 0.6},
                              {"family.mem_p95", memory * 0.6},
                              {"mem.peak_sum", memory * 0.6 * number("alloc.nodes")}});
  if (rule == "mem-excess") {
    changed = advice::changed(changed, {{"mem.peak_node_max", memory / 8},
                                        {"family.mem_max", memory / 8},
                                        {"family.mem_p95", memory / 8},
                                        {"node.mem_per_cpu", 1}});
  } else if (rule == "oom") {
    changed.set("state", "OUT_OF_MEMORY");
  } else if (rule == "timeout") {
    changed.set("state", "TIMEOUT");
  } else if (rule == "time-limit") {
    changed = advice::changed(
        changed, {{"runtime", 1200}, {"family.runtime_p95", 1200}, {"family.runtime_max", 1200}});
  } else if (rule == "cpu-serial") {
    changed = advice::changed(changed, {{"cpu.used", 1}, {"cpu.used_max", 1}});
  } else if (rule == "cpu-unused-node") {
    changed = advice::changed(
        changed, {{"cpu.unused_nodes", 1}, {"cpu.busy_nodes", number("alloc.nodes") - 1}});
  } else if (rule == "nodes-many") {
    changed = advice::changed(changed, {{"mem.peak_sum", memory / 4 * number("alloc.nodes")}});
  } else if (rule == "gpu-unused") {
    changed = advice::changed(changed,
                              {{"gpu.unused", number("alloc.nodes")}, {"gpu.unused_per_node", 1}});
  }
  return changed;
}

constexpr std::array<const char*, 8> kRules{"mem-excess",      "oom",        "gpu-unused",
                                            "cpu-serial",      "time-limit", "timeout",
                                            "cpu-unused-node", "nodes-many"};

/// The lines of all rules that speak, by rule.
json::object lines_of_row(const json::object& row) {
  const advice::Facts facts = facts_of_row(row);
  json::object lines;
  for (const char* rule : kRules) {
    advice::RuleSet only;
    only.rules = {*advice::core_rules().find(rule)};
    for (const advice::Finding& finding :
         advice::judge(only, {.facts = facts_for(rule, facts), .manager = "slurm"})) {
      json::array all;
      for (const advice::Line& line : finding.lines) {
        all.emplace_back(line.type.substr(std::string_view("#SBATCH ").size()));
      }
      lines[rule] = std::move(all);
    }
  }
  return lines;
}

/// If CEEMS_UPDATE_GOLDEN is in the environment, the lines of the table are written anew.
TEST(SlurmRequest, FormsHaveLinesOfTheirForm) {
  const std::string path = std::string(CEEMS_TEST_ROOT) + "/slurm/forms.json";
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  json::array rows = json::parse(text.str()).as_array();
  EXPECT_GE(rows.size(), 40U);
  std::string out;
  for (json::value& value : rows) {
    json::object& row = value.as_object();
    const json::object lines = lines_of_row(row);
    EXPECT_EQ(json::serialize(row["lines"]), json::serialize(lines)) << json::serialize(row);
    row["lines"] = lines;
    out += (out.empty() ? "[" : ",\n ") + json::serialize(row);
  }
  if (std::getenv("CEEMS_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << out << "]\n";
  }
}

std::vector<std::string> request_of(const std::string& line, const std::string& more = "") {
  advice::Facts facts;
  add_slurm_request(slurm_unit(line, R"({"cpus":4,"req_cpus":4,"nodes":1,"gpus":2})", more), facts);
  return {request_text(facts, "slurm.mem"), request_text(facts, "slurm.gpus_option"),
          request_text(facts, "slurm.gpus_asked"), request_text(facts, "slurm.gpus_more")};
}

TEST(SlurmRequest, IsReadAsSbatchReadsItsOptions) {
  EXPECT_THAT(request_of("sbatch --mem-per-cpu=2G run.sh"), ElementsAre("cpu", "?", "?", "?"));
  EXPECT_THAT(request_of("/usr/bin/sbatch -n4 --mem-per-cpu 2G -J x run.sh"),
              ElementsAre("cpu", "?", "?", "?"));
  EXPECT_THAT(request_of("sbatch --mem-per-c=2G run.sh"), ElementsAre("cpu", "?", "?", "?"));
  EXPECT_THAT(request_of("sbatch --hold --mem 2G run.sh"), ElementsAre("node", "?", "?", "?"));
  EXPECT_THAT(request_of("sbatch -QG2 run.sh"), ElementsAre("?", "--gpus=", "2", ""));
  EXPECT_THAT(request_of("sbatch --gpus a100:2 run.sh"), ElementsAre("?", "--gpus=a100:", "2", ""));
  EXPECT_THAT(request_of("sbatch --gres=ssd:1,gpu:a100:2,lic:2 run.sh"),
              ElementsAre("?", "--gres=ssd:1,gpu:a100:", "2", ",lic:2"));
  EXPECT_THAT(request_of("srun --mem=2G hostname --mem-per-cpu=4G"),
              ElementsAre("node", "?", "?", "?"));
  EXPECT_THAT(request_of("srun hostname"), ElementsAre("none", "?", "?", "?"));
  // What follows a script or --wrap is not of sbatch; the last of several counts.
  EXPECT_THAT(request_of("sbatch --mem=1G --wrap=prog --gpus=2"),
              ElementsAre("node", "?", "?", "?"));
  EXPECT_THAT(request_of("sbatch --gpus=1 --gpus=2 run.sh --gpus=3"),
              ElementsAre("?", "--gpus=", "2", ""));
  // Components, several options, and other texts than names.
  EXPECT_THAT(request_of("sbatch --mem=1G : --mem=2G run.sh"), ElementsAre("?", "?", "?", "?"));
  EXPECT_THAT(request_of("sbatch --gpus=2 --gpus-per-node=2 run.sh"),
              ElementsAre("?", "?", "?", "?"));
  for (const char* gpus : {"$(reboot):2", "a100:", "a:b:2", ":2", "-1", "2,v100:1", "0", "1e9"}) {
    EXPECT_THAT(request_of(fmt::format("sbatch --gpus={} run.sh", gpus)),
                ElementsAre("?", "?", "?", "?"))
        << gpus;
  }
  EXPECT_THAT(request_of("sbatch --gres=gpu:2,a;b run.sh"), ElementsAre("?", "?", "?", "?"));
  // A command that is cut off may have had more.
  EXPECT_THAT(request_of("sbatch --mem=1G --comment=" + std::string(1000, 'x')),
              ElementsAre("?", "?", "?", "?"));
  EXPECT_THAT(request_of("sbatch --mem=1G run.sh " + std::string(1000, 'x')),
              ElementsAre("node", "?", "?", "?"));
}

std::vector<std::string> limits(const std::string& more, const std::string& line = "sbatch a.sh") {
  advice::Facts facts;
  const StoredUnit unit =
      slurm_unit(line, R"({"cpus":8,"nodes":2,"gpus":4)" + more + "}", "mem_per=cpu");
  add_slurm_request(unit, facts);
  add_partition_limits(unit, facts);
  return {request_text(facts, "queue.limit"), request_text(facts, "queue.mem"),
          request_text(facts, "queue.mem_cpu")};
}

TEST(SlurmRequest, KnowsWhatThePartitionAllows) {
  EXPECT_THAT(limits(""), ElementsAre("?", "?", "?"));
  EXPECT_THAT(limits(R"(,"partition_time":7200)"), ElementsAre("7200", "?", "?"));
  EXPECT_THAT(limits(R"(,"partition_time":0)"), ElementsAre("?", "?", "?"));
  // One MiB less for each CPU or GPU of a node by which memory is asked for.
  const std::string memory = R"(,"partition_mem":104857600)";
  EXPECT_THAT(limits(memory), ElementsAre("?", "100663296", "?"));
  EXPECT_THAT(limits(memory, "sbatch --mem-per-gpu=1G a.sh"), ElementsAre("?", "102760448", "?"));
  EXPECT_THAT(limits(memory, "sbatch --mem=1G a.sh"), ElementsAre("?", "104857600", "?"));
  EXPECT_THAT(limits(R"(,"partition_mem_cpu":10485760)", "sbatch --mem=1G a.sh"),
              ElementsAre("?", "41943040", "10485760"));
  EXPECT_THAT(limits(memory + R"(,"partition_mem_cpu":10485760)", "sbatch --mem=1G a.sh"),
              ElementsAre("?", "41943040", "10485760"));
  EXPECT_THAT(limits(R"(,"partition_mem":1)"), ElementsAre("?", "0", "?"));
}

TEST(SlurmRequest, KnowsWhatThePartitionAllowsOnNodesThatAreNotKnown) {
  const StoredUnit unit = slurm_unit(
      "sbatch --mem=1G a.sh",
      R"({"cpus":8,"nodes":2,"partition_mem_max":1000,"partition_cpus":24,"partition_min_nodes":2})");
  advice::Facts facts;
  add_slurm_request(unit, facts);
  add_partition_limits(unit, facts);
  EXPECT_EQ(request_text(facts, "queue.mem"), "1000");
  EXPECT_EQ(request_text(facts, "queue.cpus"), "24");
  EXPECT_EQ(request_text(facts, "queue.min_nodes"), "2");
  facts.set("node.mem", 1000);  // of which a tenth is not for jobs
  add_partition_limits(unit, facts);
  EXPECT_EQ(request_text(facts, "queue.mem"), "900");
  facts.set("node.mem", 2000);
  add_partition_limits(unit, facts);
  EXPECT_EQ(request_text(facts, "queue.mem"), "1000");
  // Four CPUs on a node have more than its memory.
  add_partition_limits(
      slurm_unit("sbatch --mem=1G a.sh", R"({"cpus":8,"nodes":2,"partition_mem_cpu":1000})"),
      facts);
  EXPECT_EQ(request_text(facts, "queue.mem"), "1800");
}

/// The value of a line such as "--mem=3G", in MiB if it is memory; nothing for other options.
std::optional<double> value_of(const json::value& line, std::string_view option) {
  const std::string text(line.as_string());
  const std::string start = std::string(option) + "=";
  if (!text.starts_with(start)) {
    return std::nullopt;
  }
  const double number = std::stod(text.substr(start.size()));
  return text.ends_with('G') ? number * 1024 : number;
}

double seconds_of(std::string_view text) {  // [DAYS-]HOURS:MINUTES:SECONDS
  double days = 0;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    days = std::stod(std::string(text.substr(0, dash)));
    text.remove_prefix(dash + 1);
  }
  const auto parts = split(text, ':');
  return days * 86'400 + std::stod(std::string(parts.at(0))) * 3600 +
         std::stod(std::string(parts.at(1))) * 60;
}

/// What the lines of a rule ask for on the fullest node that they may get, beside what is allowed.
void expect_within(const json::object& row, const std::string& rule, const json::array& lines) {
  const json::object& limits = row.at("limits").as_object();
  const auto number = [](const json::object& of, const char* name) {
    return of.at(name).to_number<double>();
  };
  const double before = number(row, "nodes");
  double nodes = before;
  for (const json::value& line : lines) {
    nodes = value_of(line, "--nodes").value_or(nodes);
  }
  const double cpus = rule == "cpu-serial" ? 1 : std::ceil(number(row, "cpus") / before);
  const double gpus = std::ceil(number(row, "gpus") / before);
  const std::string where = rule + " " + json::serialize(row);
  for (const json::value& line : lines) {
    EXPECT_LE(value_of(line, "--mem").value_or(0), number(limits, "mib")) << line << where;
    EXPECT_LE(value_of(line, "--mem-per-cpu").value_or(0) * cpus, number(limits, "mib"))
        << line << where;
    if (rule != "gpu-unused") {
      EXPECT_LE(value_of(line, "--mem-per-gpu").value_or(0) * gpus, number(limits, "mib"))
          << line << where;
    }
    if (line.as_string().starts_with("--time=")) {
      const std::string time(line.as_string());
      EXPECT_LE(seconds_of(std::string_view(time).substr(7)), number(limits, "minutes") * 60)
          << line << where;
    }
  }
  EXPECT_GE(nodes, std::min(before, number(limits, "min_nodes"))) << where;
  if (rule == "nodes-many") {  // with all tasks
    EXPECT_LE(number(row, "cpus") / nodes, number(limits, "cpus")) << where;
  }
}

TEST(SlurmRequest, NoRuleAsksForMoreThanThePartitionAllows) {
  std::ostringstream text;
  text << std::ifstream(std::string(CEEMS_TEST_ROOT) + "/slurm/forms.json").rdbuf();
  std::map<std::string, int> checked;
  const json::array rows = json::parse(text.str()).as_array();
  for (const json::value& value : rows) {
    json::object row = value.as_object();
    const double mib = row.at("mem_mib").to_number<double>() / row.at("nodes").to_number<double>();
    // The job itself is within what is allowed: exactly, by a little, or by far.
    for (const auto& [more, least] : {std::pair(1.0, 1), {1.3, 2}, {10.0, 1}}) {
      const double cpus =
          std::ceil(row.at("cpus").to_number<double>() / row.at("nodes").to_number<double>());
      row["limits"] = {{"minutes", std::ceil(120 * more)},
                       {"mib", std::ceil(mib * more)},
                       {"cpus", std::ceil(cpus * more)},
                       {"min_nodes", least}};
      const json::object found = lines_of_row(row);
      for (const json::key_value_pair& one : found) {
        expect_within(row, std::string(one.key()), one.value().as_array());
        ++checked[std::string(one.key())];
      }
    }
  }
  for (const char* rule : kRules) {
    EXPECT_GE(checked[rule], 10) << rule;
  }
}

TEST(SlurmRequest, IsKnownFromTheScriptWhereTheCommandDoesNotSayIt) {
  EXPECT_THAT(request_of("sbatch run.sh", "script_options=--mem-per-cpu=2G"),
              ElementsAre("cpu", "?", "?", "?"));
  EXPECT_THAT(request_of("sbatch --mem=2G run.sh", "script_options=--mem=1G --gpus=2"),
              ElementsAre("node", "--gpus=", "2", ""));
  EXPECT_THAT(request_of("sbatch run.sh", "script_options=--"), ElementsAre("none", "?", "?", "?"));
  EXPECT_THAT(request_of("sbatch run.sh", "script_options=:"), ElementsAre("?", "?", "?", "?"));
  EXPECT_THAT(request_of("sbatch run.sh", "script_options=--gpus="),
              ElementsAre("none", "?", "?", "?"));
  EXPECT_THAT(request_of("srun hostname", "script_options=--mem-per-cpu=2G"),
              ElementsAre("none", "?", "?", "?"));
}

TEST(SlurmRequest, IsKnownFromTheAccountingWithoutACommand) {
  EXPECT_THAT(request_of(""), ElementsAre("node", "--gres=gpu:", "2", ""));
  EXPECT_THAT(request_of("", "mem_per=cpu"), ElementsAre("cpu", "--gres=gpu:", "2", ""));
  EXPECT_THAT(request_of("", "gpu_type=a100"), ElementsAre("node", "--gres=gpu:a100:", "2", ""));
  EXPECT_THAT(request_of("", "gpu_type=a 1"), ElementsAre("node", "--gres=gpu:", "2", ""));
  // A directive may ask for memory in another way; slurmrestd says in which.
  EXPECT_THAT(request_of("sbatch run.sh"), ElementsAre("?", "?", "?", "?"));
  EXPECT_THAT(request_of("sbatch run.sh", "mem_per=cpu"), ElementsAre("cpu", "?", "?", "?"));
  StoredUnit other = slurm_unit("sbatch --mem=1G run.sh");
  other.unit.resource_manager = "lsf";
  advice::Facts facts;
  add_slurm_request(other, facts);
  EXPECT_EQ(request_text(facts, "slurm.mem"), "?");
}

TEST(Sessions, AreKnownByHowTheyWereStarted) {
  const auto session = [](const std::string& name, const std::string& line,
                          const std::string& more = "") {
    StoredUnit unit = slurm_unit(line, "{}", more);
    unit.unit.name = name;
    return is_session(unit, advice::core_rules().sessions);
  };
  EXPECT_TRUE(session("interactive", "salloc -t 8:00:00"));
  EXPECT_TRUE(session("x", "/usr/bin/salloc -t 8:00:00"));
  EXPECT_TRUE(session("bash", "srun -t 8:00:00 --pty bash"));
  EXPECT_TRUE(session("bash", "srun -n1 --pty -t 1 bash -i"));
  EXPECT_TRUE(session("spawner-jupyterhub", "sbatch --parsable"));
  EXPECT_TRUE(session("jupyterhub-singleuser", "sbatch"));
  EXPECT_TRUE(session("sys/dashboard/sys/bc_desktop", "sbatch"));
  EXPECT_TRUE(session("dev/bc_jupyter", "sbatch"));
  EXPECT_TRUE(session("ood-prod/sys/dashboard/sys/RStudio", "sbatch"));
  EXPECT_TRUE(session("sys-dashboard-sys-matlab", "sbatch"));
  EXPECT_TRUE(session("bash", "")) << "srun --pty bash before SLURM 21.08";
  EXPECT_TRUE(session("zsh", ""));
  EXPECT_FALSE(session("bash", "srun bash run.sh"));
  EXPECT_FALSE(session("bashful", ""));
  EXPECT_FALSE(session("train", "sbatch train.sh"));
  EXPECT_FALSE(session("bash", "srun hostname --pty"));
  EXPECT_FALSE(session("not-interactive", ""));
  StoredUnit unit = slurm_unit("", "{}", "partition=desktop-big");
  EXPECT_FALSE(is_session(unit, {"partition=desktop"}));
  EXPECT_TRUE(is_session(unit, {"name=a", "partition=desktop*"}));
  EXPECT_FALSE(is_session(unit, {}));
}

}  // namespace
}  // namespace ceems::api
