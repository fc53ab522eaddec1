#include "exporter/run/fanout.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::exporter::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Job job_on(const std::string& manager, std::vector<std::string> nodes) {
  Job job;
  set_manager(job, manager, "4711");
  job.node_count = std::max<std::size_t>(nodes.size(), 1);
  job.node = nodes.empty() ? "n1" : nodes.front();
  job.nodes = std::move(nodes);
  return job;
}

TEST(Fanout, IsSrunWhereItIsNeeded) {
  EXPECT_EQ(choose_fanout("auto", job_on("slurm", {"n1", "n2"})).value(), Fanout::kSrun);
  EXPECT_EQ(choose_fanout("auto", job_on("slurm", {"n1"})).value(), Fanout::kNone);
  EXPECT_EQ(choose_fanout("none", job_on("slurm", {"n1", "n2"})).value(), Fanout::kNone);
  EXPECT_EQ(choose_fanout("auto", job_on("pbs", {"n1", "n2"})).value(), Fanout::kNone);
  EXPECT_EQ(choose_fanout("pbsdsh", job_on("pbs", {"n1", "n2"})).value(), Fanout::kPbsdsh);
  Job outside = job_on("slurm", {"n1"});
  outside.on_node = false;
  EXPECT_EQ(choose_fanout("auto", outside).value(), Fanout::kSrun);
}

TEST(Fanout, SaysWhatItCannotDo) {
  EXPECT_EQ(choose_fanout("srun", job_on("run", {})).error().message,
            "--fanout=srun: this is not a job of SLURM");
  EXPECT_EQ(choose_fanout("ssh", job_on("run", {})).error().message,
            "--fanout=ssh: the nodes of the job are not known");
}

TEST(Fanout, MakesCommands) {
  const std::vector<std::string> agent{"/bin/x", "run", "--name=a 'b'"};
  EXPECT_THAT(fanout_commands(Fanout::kNone, job_on("slurm", {"n1"}), agent), IsEmpty());
  EXPECT_THAT(
      fanout_commands(Fanout::kSrun, job_on("slurm", {"n1", "n2"}), agent),
      ElementsAre(ElementsAre("env", "-u", "SLURM_MEM_PER_CPU", "-u", "SLURM_MEM_PER_GPU", "-u",
                              "SLURM_MEM_PER_NODE", "srun", "--overlap", "--ntasks=2",
                              "--ntasks-per-node=1", "--nodes=2", "--mem=0", "--cpu-bind=none",
                              "--kill-on-bad-exit=0", "/bin/x", "run", "--name=a 'b'")));
  EXPECT_THAT(fanout_commands(Fanout::kPbsdsh, job_on("pbs", {"n1", "n2"}), agent),
              ElementsAre(ElementsAre("pbsdsh", "-u", "--", "/bin/x", "run", "--name=a 'b'")));
  EXPECT_THAT(fanout_commands(Fanout::kBlaunch, job_on("lsf", {"n1", "n2"}), agent),
              ElementsAre(ElementsAre("blaunch", "-z", "n1 n2", "/bin/x", "run", "--name=a 'b'")));
  // A node cannot be an option, and the remote shell takes nothing apart.
  EXPECT_THAT(fanout_commands(Fanout::kSsh, job_on("run", {"n1", "n2", "-oProxyCommand=x"}), agent),
              ElementsAre(ElementsAre("ssh", "-o", "BatchMode=yes", "n2",
                                      "'/bin/x' 'run' '--name=a '\\''b'\\'''")));
}

}  // namespace
}  // namespace ceems::exporter::run
