#include "exporter/run/own_devices.h"

#include <gtest/gtest.h>

namespace ceems::exporter::run {
namespace {

gpu::DeviceState device(const std::string& index, const std::string& uuid) {
  gpu::DeviceState state;
  state.index = index;
  state.uuid = uuid;
  return state;
}

TEST(OwnDevices, AreThoseThatTheManagerNames) {
  Job job;
  set_manager(job, "slurm", "4711");
  job.gpus = {"1", "GPU-c"};
  EXPECT_FALSE(is_reserved(job, device("0", "GPU-a"), 4));
  EXPECT_TRUE(is_reserved(job, device("1", "GPU-b"), 4));
  EXPECT_TRUE(is_reserved(job, device("2", "GPU-c"), 4));
  EXPECT_FALSE(is_reserved(job, device("3", "GPU-d"), 4));
}

TEST(OwnDevices, AreAllThatAConfinedJobSees) {
  Job job;
  set_manager(job, "slurm", "4711");
  job.gpus = {"2", "3"};
  EXPECT_TRUE(is_reserved(job, device("0", "GPU-c"), 2));
  gpu::DeviceState lost = device("1", "GPU-d");
  lost.lost = "it does not answer";
  EXPECT_FALSE(is_reserved(job, lost, 2));
  gpu::DeviceState split = device("1", "GPU-d");
  split.split = true;
  EXPECT_FALSE(is_reserved(job, split, 2));
}

TEST(OwnDevices, AreReservedByAManagerOnly) {
  Job job;
  set_manager(job, "run", "1");
  job.gpus = {"0"};
  EXPECT_FALSE(is_reserved(job, device("0", "GPU-a"), 1));
  set_manager(job, "slurm", "1");
  job.gpus.clear();
  EXPECT_FALSE(is_reserved(job, device("0", "GPU-a"), 1));
  EXPECT_FALSE(is_reserved(job, device("0", "GPU-a"), 0));
}

TEST(OwnDevices, NeedALibraryOnlyWhereThereIsAGpu) {
  EXPECT_TRUE(load_gpu_libraries({.proc = "/none", .sys = "/none", .cgroup = "/none"}).empty());
}

}  // namespace
}  // namespace ceems::exporter::run
