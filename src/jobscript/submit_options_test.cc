#include "jobscript/submit_options.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/strings.h"

namespace ceems::jobscript {
namespace {

/// The directives of a script; "?" if they are not certain.
std::string directives(std::string_view script) {
  ScriptDirectives directives;
  while (!script.empty()) {
    directives.add_line(take_until(script, '\n'));
  }
  return directives.text().value_or("?");
}

// Each of these was tried with sbatch of SLURM 22.05.
TEST(ScriptDirectives, AreReadAsSbatchReadsThem) {
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH --mem=2G\nhostname\n"), "--mem=2G");
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH -n2\n\n# text\n  # text\n#SBATCH -c2\n"),
            "--cpus-per-task=2 --ntasks=2");
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH --mem=2G\n#SBATCH --mem=3G\n"), "--mem=3G");
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH --mem=\"2G\" '-n' \\2\n"), "--mem=2G --ntasks=2");
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH --mem 2G # --mem=3G\n"), "--mem=2G");
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH --mem=2G#x\n"), "--mem=2G");
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH--mem=2G\n"), "--mem=2G");
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH --mem-per-c=2G\n"), "--mem-per-cpu=2G");
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH --tasks-per-node=2\n"), "--ntasks-per-node=2");
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH --comment=\"a b --mem=3G\" -N 2\n"), "--nodes=2");
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH --gres=gpu:a100:2,ssd:1 --exclusive --time=5\n"),
            "--exclusive= --gres=gpu:a100:2,ssd:1 --time=5");
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH -J name -o out.txt\nhostname\n"), "--");
  EXPECT_EQ(directives("#!/bin/sh\nhostname\n"), "--");
  // No directives: a blank or a hash in front, and what follows the first command.
  EXPECT_EQ(directives("#!/bin/sh\n #SBATCH --mem=2G\n##SBATCH --mem=2G\n"), "--");
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH -n2\ncat <<X\n#SBATCH --mem=9G\nX\n"), "--ntasks=2");
  EXPECT_EQ(directives("#!/bin/sh\n: --ntasks\n#SBATCH --mem=1G\n"), "--");
  // Components of a heterogeneous job.
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH -n2\n#SBATCH hetjob\n#SBATCH -n4\n"), ":");
}

TEST(ScriptDirectives, AreNotKnownOfWhatSbatchRefusesOrOthersAsk) {
  for (const char* script :
       {"", "NONE\n", "hostname\n#SBATCH --mem=2G\n", "#!/bin/sh\n#PBS -l mem=2gb\n",
        "#!/bin/sh\n#BSUB -M 2000\n#SBATCH -n2\n", "#!/bin/sh\n#SBATCH -n 2 foo -c 2\n",
        "#!/bin/sh\n#SBATCH --mem=\"2G\n", "#!/bin/sh\n#SBATCH : --mem=2G\n",
        "#!/bin/sh\n#SBATCH -- --mem=2G\n", "#!/bin/sh\n#SBATCH --wrap=x\n",
        "#!/bin/sh\n#SBATCH \"\" --mem=2G\n"}) {
    EXPECT_EQ(directives(script), "?") << script;
  }
  // PBS below the first command is a comment of the script.
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH -n2\nhostname\n#PBS -l mem=2gb\n"), "--ntasks=2");
}

TEST(ScriptDirectives, HoldNothingButOptionsAndNumbers) {
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH --mem='$(reboot)' --gpus=\"a b\" -n '1;2'\n"),
            "--gpus= --mem= --ntasks=");
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH --mem=\x01\x1b[31m\xff -w secret,host -F /home/me\n"),
            "--mem= --nodefile= --nodelist=");
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH --export=TOKEN=1 --mail-user=me@example.org -A proj\n"),
            "--");
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH --mem=" + std::string(65, '1') + "\n"), "--mem=");
  const std::string long_line(1U << 20U, 'x');
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH --comment=" + long_line + "\n"), "?");
  EXPECT_EQ(directives("#!/bin/sh\n# " + long_line + "\n#SBATCH --mem=2G\n"), "--mem=2G");
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH -n2\necho " + long_line + "\n"), "--ntasks=2");
  std::string many = "#!/bin/sh\n";
  for (int i = 0; i < 10'000; ++i) {
    many += "#SBATCH -n2\n";
  }
  EXPECT_EQ(directives(many), "?");
}

std::string value(std::string_view line, std::string_view of_script, std::string_view option) {
  return std::string(read_submit_options(line, of_script).value(option).value_or("?"));
}

TEST(SubmitOptions, OfTheCommandWinOverThoseOfTheScript) {
  EXPECT_EQ(value("sbatch --mem=1G run.sh", "--mem=2G --ntasks=3", "mem"), "1G");
  EXPECT_EQ(value("sbatch --mem=1G run.sh", "--mem=2G --ntasks=3", "ntasks"), "3");
  EXPECT_EQ(value("sbatch run.sh", "--nodelist= --ntasks=3", "ntasks"), "3");
  EXPECT_EQ(value("sbatch --tasks-per-node=4 run.sh", "--", "ntasks-per-node"), "4");
  // There is no script beside --wrap, and none of srun.
  EXPECT_EQ(value("sbatch --wrap=hostname", "--ntasks=3", "ntasks"), "?");
  EXPECT_EQ(value("srun hostname", "--ntasks=3", "ntasks"), "?");
  EXPECT_TRUE(read_submit_options("sbatch run.sh").script);
  EXPECT_FALSE(read_submit_options("sbatch run.sh", "--").script);
  EXPECT_FALSE(read_submit_options("sbatch run.sh", "--").several);
  EXPECT_TRUE(read_submit_options("sbatch run.sh", ":").several);
  EXPECT_TRUE(read_submit_options("sbatch a.sh : b.sh", "--").several);
}

}  // namespace
}  // namespace ceems::jobscript
