#include "jobscript/request.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::jobscript {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

constexpr std::int64_t kGibi = std::int64_t{1} << 30U;

Request slurm(std::string_view script, const Words& words = {"job.sh"}) {
  return read_request(Form::kSlurm, split_command(Form::kSlurm, words), script).value();
}
/// A script with these directives.
Request asked(const std::string& options) {
  return slurm("#!/bin/bash\n#SBATCH " + options + "\n");
}

TEST(SlurmRequest, IsReadFromScriptAndCommand) {
  constexpr std::string_view kScript =
      "#!/bin/bash -l\n"
      "#SBATCH --job-name=train-7 -A p --partition=gpu\n"
      "#SBATCH --nodes=1 --ntasks=4 --cpus-per-task=8\n"
      "#SBATCH --gres=gpu:a100:4 --mem=128G\n"
      "#SBATCH -t 12:00:00\n"
      "module load python\n"
      "#SBATCH --nodes=9\n"
      "srun --unbuffered python train.py --epochs 5\n";
  const Request request = slurm(kScript);
  EXPECT_EQ(request.name, "train-7");
  EXPECT_EQ(request.project, "p");
  EXPECT_EQ(request.partition, "gpu");
  EXPECT_EQ(request.executable, "train.py");
  EXPECT_EQ(request.nodes, 1);
  EXPECT_EQ(request.cpus, 32);
  EXPECT_EQ(request.gpus, 4);
  EXPECT_EQ(request.memory_bytes, 128 * kGibi);
  EXPECT_EQ(request.time_limit_s, 43200);
  EXPECT_EQ(request.array_tasks, std::nullopt);
  EXPECT_THAT(request.directives,
              ElementsAre("--cpus-per-task=8", "--gres=gpu:a100:4", "--mem=128G", "--nodes=1",
                          "--ntasks=4", "--time=12:00:00"));
  // The command wins; what stands behind the script is its own.
  const Request other = slurm(kScript, {"-N", "2", "--mem-per-cpu=1G", "-p", "cpu", "-a0-9%2", "-J",
                                        "x", "dir/job.sh", "-N", "7"});
  EXPECT_EQ(other.name, "x");
  EXPECT_EQ(other.nodes, 2);
  EXPECT_EQ(other.partition, "cpu");
  EXPECT_EQ(other.gpus, 8);
  EXPECT_EQ(other.memory_bytes, 32 * kGibi);
  EXPECT_EQ(other.array_tasks, 10);
  EXPECT_EQ(slurm("#!/bin/sh\n", {"dir/job.sh"}).name, "job.sh");
  EXPECT_EQ(slurm("", {"--wrap", "hostname"}).name, "wrap");
  EXPECT_EQ(asked("--deadline=22:00").deadline, "22:00");
}

TEST(SlurmRequest, HasManyForms) {
  EXPECT_EQ(asked("-n 64 -c 2").cpus, 128);
  EXPECT_EQ(asked("-n 64 -c 2").nodes, std::nullopt);
  EXPECT_EQ(asked("-n 64 --ntasks-per-node=20").nodes, 4);
  EXPECT_EQ(asked("-N 2-4 --ntasks-per-node=16 --mem=10G").cpus, 32);
  EXPECT_EQ(asked("-N 2-4 --ntasks-per-node=16 --mem=10G").memory_bytes, 20 * kGibi);
  EXPECT_EQ(asked("-N 2 --gpus-per-node=a100:4 --cpus-per-gpu=16").gpus, 8);
  EXPECT_EQ(asked("-N 2 --gpus-per-node=a100:4 --cpus-per-gpu=16").cpus, 128);
  EXPECT_EQ(asked("-n 4 --gpus-per-task=1 --mem-per-gpu=60G").memory_bytes, 240 * kGibi);
  EXPECT_EQ(asked("-G a100:2,v100:1").gpus, 3);
  EXPECT_EQ(asked("--gres=ssd:1,gpu").gpus, 1);
  EXPECT_EQ(asked("--gres=ssd:1").gpus, 0);
  EXPECT_EQ(asked("--gpus=4 --ntasks-per-gpu=2").cpus, 8);
  EXPECT_EQ(asked("").cpus, 1);
  EXPECT_EQ(asked("").nodes, 1);
  EXPECT_EQ(asked("--mem=2000").memory_bytes, 2000 * (kGibi / 1024));
  // All of a node, the default of the site, or what cannot be known.
  EXPECT_EQ(asked("--exclusive --mem-per-cpu=2G").cpus, std::nullopt);
  EXPECT_EQ(asked("--exclusive --mem-per-cpu=2G").memory_bytes, std::nullopt);
  EXPECT_EQ(asked("--mem=0").memory_bytes, std::nullopt);
  EXPECT_EQ(asked("-n 64 --mem=1G").memory_bytes, std::nullopt);
  EXPECT_EQ(asked("--tres-per-task=cpu=4,gres/gpu=1").gpus, std::nullopt);
  EXPECT_EQ(asked("--gpus-per-socket=2 --sockets-per-node=2").gpus, std::nullopt);
  EXPECT_EQ(asked("--time=UNLIMITED").time_limit_s, std::nullopt);
  EXPECT_EQ(asked("-N x -n -5 --mem=nan").memory_bytes, std::nullopt);
}

TEST(SlurmRequest, SendsNothingThatIsNobodysBusiness) {
  EXPECT_THAT(asked("--export=TOKEN=1 --mail-user=a@b -D /home/a --comment='x y'").directives,
              IsEmpty());
  EXPECT_THAT(asked("--mem='$(reboot)' --gpus='\x1b[31m' -w host1").directives,
              ElementsAre("--nodelist=host1"));
}

Request pbs(std::string_view script, const Words& words = {"job.pbs"}) {
  return read_request(Form::kPbs, split_command(Form::kPbs, words), script).value();
}

TEST(PbsRequest, IsReadFromScriptAndCommand) {
  constexpr std::string_view kScript =
      "#!/bin/sh\n"
      "#PBS -N water -P chem -q gpu@srv\n"
      "#PBS -l select=2:ncpus=16:mem=64gb:ngpus=2:mpiprocs=16,walltime=24:00:00\n"
      "#PBS -l place=scatter -J 1-20:2\n"
      "cd $PBS_O_WORKDIR\n"
      "#PBS -l walltime=1:00:00\n"
      "mpirun -np 32 ./relax input\n";
  const Request request = pbs(kScript);
  EXPECT_EQ(request.name, "water");
  EXPECT_EQ(request.project, "chem");
  EXPECT_EQ(request.partition, "gpu");
  EXPECT_EQ(request.executable, "relax");
  EXPECT_EQ(request.nodes, 2);
  EXPECT_EQ(request.cpus, 32);
  EXPECT_EQ(request.gpus, 4);
  EXPECT_EQ(request.memory_bytes, 128 * kGibi);
  EXPECT_EQ(request.time_limit_s, 86400);
  EXPECT_EQ(request.array_tasks, 10);
  EXPECT_THAT(request.directives,
              ElementsAre("-l place=scatter", "-l select=2:ncpus=16:mem=64gb:ngpus=2:mpiprocs=16",
                          "-l walltime=24:00:00"));
  const Request other = pbs(kScript, {"-hV", "-lwalltime=600", "-l", "select=1:ncpus=4+2:ncpus=8",
                                      "-A", "a", "job.pbs", "-N", "y"});
  EXPECT_EQ(other.cpus, 20);
  EXPECT_EQ(other.nodes, std::nullopt);  // as PBS places the chunks
  EXPECT_EQ(other.memory_bytes, std::nullopt);
  EXPECT_EQ(other.time_limit_s, 600);
  EXPECT_EQ(other.name, "water");
  EXPECT_EQ(pbs("#PBS -l nodes=2:ppn=8:gpus=1,mem=4gb\n").cpus, 16);
  EXPECT_EQ(pbs("#PBS -l nodes=2:ppn=8:gpus=1,mem=4gb\n").gpus, 2);
  EXPECT_EQ(pbs("#PBS -l nodes=2:ppn=8:gpus=1,mem=4gb\n").memory_bytes, 4 * kGibi);
  EXPECT_EQ(pbs("#PBS -l ncpus=4,ngpus=1\n", {"-q", "x", "run.sh"}).cpus, 4);
  EXPECT_EQ(pbs("hostname\n#PBS -l ncpus=4\n", {"run.sh"}).cpus, 1);
  EXPECT_EQ(pbs("", {"run.sh"}).name, "run.sh");
}

Request lsf(std::string_view script, const Words& words = {"job.lsf"}) {
  return read_request(Form::kLsf, split_command(Form::kLsf, words), script).value();
}

TEST(LsfRequest, IsReadFromScriptAndCommand) {
  constexpr std::string_view kScript =
      "#!/bin/sh\n"
      "#BSUB -J \"water[1-100]%5\" -P chem -q normal -B\n"
      "#BSUB -n 32 -W 12:30\n"
      "#BSUB -R \"span[ptile=16]\"\n"
      "#BSUB -R 'rusage[mem=64G]' -gpu \"num=2:mode=shared\"\n"
      "blaunch ./relax\n"
      "#BSUB -n 1\n";
  const Request request = lsf(kScript);
  EXPECT_EQ(request.name, "water");
  EXPECT_EQ(request.project, "chem");
  EXPECT_EQ(request.partition, "normal");
  EXPECT_EQ(request.array_tasks, 100);
  EXPECT_EQ(request.nodes, 2);
  EXPECT_EQ(request.cpus, 32);
  EXPECT_EQ(request.gpus, 4);
  EXPECT_EQ(request.memory_bytes, 128 * kGibi);
  EXPECT_EQ(request.time_limit_s, 45000);
  EXPECT_THAT(request.directives, ElementsAre("-R \"span[ptile=16] rusage[mem=64G]\"", "-W 12:30",
                                              "-gpu num=2:mode=shared", "-n 32"));
  const Request other = lsf(kScript, {"-K", "-n4", "-W", "30", "-R", "span[hosts=1]", "job.lsf"});
  EXPECT_EQ(other.cpus, 4);
  EXPECT_EQ(other.nodes, 1);
  EXPECT_EQ(other.gpus, 2);
  EXPECT_EQ(other.time_limit_s, 1800);
  EXPECT_EQ(lsf("#BSUB -n 4,8\n").nodes, std::nullopt);
  EXPECT_EQ(lsf("#BSUB -n 4 -gpu num=1\n").gpus, std::nullopt);
  EXPECT_EQ(lsf("#BSUB -n 4 -gpu num=1/task\n").gpus, 4);
  EXPECT_EQ(lsf("#BSUB -gpu -\n").gpus, 1);
  EXPECT_EQ(lsf("").cpus, 1);
}

constexpr std::string_view kJob = R"(# a job
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: ml}
spec:
  completions: 8
  activeDeadlineSeconds: 3600
  template:
    spec:
      containers:
      - name: main
        command: [python3, /app/train.py]
        resources:
          requests: {cpu: 500m, memory: 2Gi}
          limits: {cpu: "4", memory: 4Gi, nvidia.com/gpu: 2}
      - name: side
        resources: {limits: {cpu: 250m}}
)";

TEST(KubernetesRequest, IsThatOfThePod) {
  const Request request = read_request(Form::kK8s, {}, kJob).value();
  EXPECT_EQ(request.name, "train");
  EXPECT_EQ(request.project, "ml");
  EXPECT_EQ(request.executable, "train.py");
  EXPECT_EQ(request.cpus, 0.75);
  EXPECT_EQ(request.gpus, 2);
  EXPECT_EQ(request.memory_bytes, 2 * kGibi);
  EXPECT_EQ(request.time_limit_s, 3600);
  EXPECT_EQ(request.array_tasks, 8);
  EXPECT_THAT(request.directives,
              ElementsAre("cpu: 500m", "memory: 2Gi", "nvidia.com/gpu: 2", "cpu: 250m"));
  const Request pod =
      read_request(Form::kK8s, {}, "kind: Pod\nmetadata: {generateName: a-}\nspec: {x: 1}\n")
          .value();
  EXPECT_EQ(pod.name, "a-");
  EXPECT_EQ(pod.gpus, 0);
  EXPECT_EQ(pod.cpus, std::nullopt);
  for (const std::string_view text :
       {"", "kind: Service\n", "{", "\x01\x02", "kind: Pod\nspec: []\n", "[1, 2]", "a: &a [*a]"}) {
    EXPECT_FALSE(read_request(Form::kK8s, {}, text)) << text;
  }
}

TEST(Form, IsThatOfTheFirstDirective) {
  EXPECT_EQ(form_of("#!/bin/sh\n# x\n#SBATCH -n2\n"), Form::kSlurm);
  EXPECT_EQ(form_of("#PBS -l ncpus=1\n#SBATCH -n2\n"), Form::kPbs);
  EXPECT_EQ(form_of("#!/bin/sh\n\n#BSUB -n 2\n"), Form::kLsf);
  EXPECT_EQ(form_of(kJob), Form::kK8s);
  EXPECT_EQ(form_of(R"({"apiVersion":"v1","kind":"Pod"})"), Form::kK8s);
  EXPECT_EQ(form_of("#!/bin/sh\nhostname\n#SBATCH -n2\n"), std::nullopt);
  EXPECT_EQ(form_of("kind: Pod\n"), std::nullopt);
  EXPECT_EQ(form_of(""), std::nullopt);
}

Words parts(Form form, const Words& words) {
  Command command = split_command(form, words);
  command.options.push_back("> " + command.script);
  return command.options;
}

TEST(Command, EndsAtItsScript) {
  EXPECT_THAT(parts(Form::kSlurm, {"-N", "2", "--exclusive", "job.sh", "-n", "3"}),
              ElementsAre("-N", "2", "--exclusive", "> job.sh"));
  EXPECT_THAT(parts(Form::kSlurm, {"--mem=2G", "--", "job.sh"}),
              ElementsAre("--mem=2G", "--", "> job.sh"));
  EXPECT_THAT(parts(Form::kSlurm, {"--wrap=hostname"}), ElementsAre("--wrap=hostname", "> "));
  EXPECT_THAT(parts(Form::kSlurm, {"-N"}), ElementsAre("-N", "> "));
  EXPECT_THAT(parts(Form::kSlurm, {"-"}), ElementsAre("> -"));
  EXPECT_THAT(parts(Form::kPbs, {"-V", "-l", "ncpus=2", "-hq", "x", "job", "a"}),
              ElementsAre("-V", "-l", "ncpus=2", "-hq", "x", "> job"));
  EXPECT_THAT(parts(Form::kLsf, {"-K", "-n", "2", "job", "a"}),
              ElementsAre("-K", "-n", "2", "> job"));
  EXPECT_THAT(parts(Form::kK8s, {"-n", "ml", "-f", "job.yml"}),
              ElementsAre("-n", "ml", "-f", "> job.yml"));
  EXPECT_THAT(parts(Form::kK8s, {"--filename=job.yml"}), ElementsAre("> job.yml"));
}

TEST(Executable, IsTheFirstProgramThatWorks) {
  EXPECT_EQ(executable_of("#!/bin/sh\nset -e\nexport A=1\ncd /x\nOMP_NUM_THREADS=4 ./a.out\n"),
            "a.out");
  EXPECT_EQ(executable_of("srun -n 4 --mpi=pmix /opt/gmx mdrun\n"), "gmx");
  EXPECT_EQ(executable_of("python3 -u run_3.py\n"), "run_3.py");
  EXPECT_EQ(executable_of("module load x\n"), "");
  EXPECT_EQ(executable_of("\x1b[31m\n$(reboot)\n"), "");
  EXPECT_EQ(executable_of("if [ -d x ]; then\n"), "");
}

TEST(Request, IsReadFromAnyBytes) {
  const std::string long_line(4U << 20U, 'x');
  std::string binary;
  for (int byte = 0; byte < 256; ++byte) {
    binary += static_cast<char>(byte);
  }
  for (const Form form : {Form::kSlurm, Form::kPbs, Form::kLsf}) {
    for (const std::string& text : {long_line, binary, "#!/bin/sh\n#SBATCH -n " + long_line,
                                    "#PBS -l select=" + long_line, "#BSUB -R " + long_line}) {
      const auto request = read_request(form, {{}, "x"}, text);
      ASSERT_TRUE(request);
      EXPECT_EQ(request->name, "x");
      EXPECT_LE(request->executable.size(), 128U);
      for (const std::string& line : request->directives) {
        EXPECT_LE(line.size(), 300U);
      }
    }
  }
}

}  // namespace
}  // namespace ceems::jobscript
