#include "exporter/collectors/gpu_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/collectors/collector_test_support.h"
#include "testing/fake_runner.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::gpu {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::string_view kQuery =
    "<nvidia_smi_log><gpu id=\"0:7:0.0\"><product_name>NVIDIA A100-SXM4</product_name>"
    "<uuid>GPU-a</uuid><minor_number>0</minor_number></gpu>"
    "<gpu id=\"0:9:0.0\"><uuid>GPU-c</uuid><minor_number>1</minor_number>"
    "<mig_mode><current_mig>Enabled</current_mig></mig_mode><mig_devices>"
    "<mig_device><index>0</index><gpu_instance_id>3</gpu_instance_id>"
    "<compute_instance_id>0</compute_instance_id><device_attributes><shared>"
    "<multiprocessor_count>42</multiprocessor_count></shared></device_attributes></mig_device>"
    "</mig_devices></gpu></nvidia_smi_log>";

/// Claims that a test sets.
struct FakeClaims final : public ClaimSource {
  explicit FakeClaims(Result<std::vector<Claim>>& given) : answer(given) {}
  Result<std::vector<Claim>> claims(const UnitSnapshot& /*snapshot*/) override {
    ++requests;
    return answer;
  }
  [[nodiscard]] std::vector<os::Capability> capabilities() const override { return {19}; }
  Result<std::vector<Claim>>& answer;
  int requests = 0;
};

class MapCollectorTest : public ::testing::Test {
 protected:
  MapCollectorTest() : test_(dir_.path()) {
    runner_.reply("nvidia-smi", {.output = std::string(kQuery)});
  }

  void make(const std::string& type = "nvidia", MapOptions options = {}) {
    InventoryOptions inventory;
    inventory.paths = test_.context.paths;
    inventory.type = type;
    inventory.nvidia_smi = "/fake/nvidia-smi";
    inventory_ = Inventory::create(inventory, runner_);
    auto claims = std::make_unique<FakeClaims>(claims_);
    source_ = claims.get();
    collector_ =
        make_map_collector(test_.context, inventory_, "Help", std::move(claims), std::move(options))
            .value();
  }
  std::string page(Result<>* result = nullptr) {
    metrics::Sink sink;
    UnitSnapshot snapshot;
    snapshot.manager = "slurm";
    const auto done = collector_->collect(snapshot, sink);
    if (result != nullptr) {
      *result = done;
    }
    std::string text;
    sink.render(metrics::Exposition::kText, text);
    return text;
  }
  static Claim claim(const std::string& uuid, std::vector<std::string> ordinals) {
    return {.uuid = uuid,
            .cgrouphostname = "node0",
            .evidence = Evidence::kRootFile,
            .ordinals = std::move(ordinals)};
  }

  testing::TempDir dir_;
  TestContext test_;
  testing::FakeRunner runner_;
  Result<std::vector<Claim>> claims_ = std::vector<Claim>{};
  std::shared_ptr<Inventory> inventory_;
  FakeClaims* source_ = nullptr;
  std::unique_ptr<SubCollector> collector_;
};

TEST_F(MapCollectorTest, WritesAGoldenPage) {
  claims_ = {claim("12", {"0", "1"}), claim("13", {"0"})};
  make();
  EXPECT_EQ(page(),
            R"(# HELP ceems_compute_unit_gpu_index_flag Help
# TYPE ceems_compute_unit_gpu_index_flag gauge
ceems_compute_unit_gpu_index_flag{cgrouphostname="node0",gpuiid="",gpuuuid="GPU-a",hindex="n1/gpu-0",hostname="n1",index="0",manager="slurm",uuid="12"} 1
ceems_compute_unit_gpu_index_flag{cgrouphostname="node0",gpuiid="",gpuuuid="GPU-a",hindex="n1/gpu-0",hostname="n1",index="0",manager="slurm",uuid="13"} 1
ceems_compute_unit_gpu_index_flag{cgrouphostname="node0",gpuiid="3",gpuuuid="GPU-c",hindex="n1/gpu-1",hostname="n1",index="1",manager="slurm",uuid="12"} 1
# HELP ceems_compute_unit_gpu_sm_count Number of SMs/CUs in the GPU instance
# TYPE ceems_compute_unit_gpu_sm_count gauge
ceems_compute_unit_gpu_sm_count{cgrouphostname="node0",gpuiid="",gpuuuid="GPU-a",hindex="n1/gpu-0",hostname="n1",index="0",manager="slurm",uuid="12"} 108
ceems_compute_unit_gpu_sm_count{cgrouphostname="node0",gpuiid="",gpuuuid="GPU-a",hindex="n1/gpu-0",hostname="n1",index="0",manager="slurm",uuid="13"} 108
ceems_compute_unit_gpu_sm_count{cgrouphostname="node0",gpuiid="3",gpuuuid="GPU-c",hindex="n1/gpu-1",hostname="n1",index="1",manager="slurm",uuid="12"} 42
)");
}

TEST_F(MapCollectorTest, PublishesAssignmentsWhosePartsAddUpToOne) {
  claims_ = {claim("12", {"0", "1"}), claim("13", {"0"})};
  make();
  page();
  const auto all = inventory_->assignments().all();
  ASSERT_THAT(*all, SizeIs(3));
  EXPECT_EQ((*all)[0].share, 0.5);
  EXPECT_EQ((*all)[1].share, 0.5);
  EXPECT_EQ((*all)[2].share, 1);
  EXPECT_EQ((*all)[2].gpu_instance, "3");
  EXPECT_EQ((*all)[2].device_uuid, "GPU-c");
  EXPECT_EQ((*all)[2].evidence, Evidence::kRootFile);
  inventory_->assignments().publish("k8s", {{.manager = "k8s"}});
  EXPECT_THAT(*inventory_->assignments().all(), SizeIs(4));
}

TEST_F(MapCollectorTest, CountsAssignmentsThatUsersCouldForge) {
  auto guess = claim("13", {"0", "1"});
  guess.evidence = Evidence::kEnvironment;
  claims_ = {claim("12", {"0"}), guess};
  make();
  EXPECT_EQ(collector_->hints(), 0U);
  page();
  EXPECT_EQ(collector_->hints(), 1U) << "the claim on GPU 0 has better evidence";
}

TEST_F(MapCollectorTest, RequestsNoClaimsWithoutGpus) {
  make("nogpu");
  EXPECT_THAT(page(), IsEmpty());
  EXPECT_EQ(source_->requests, 0);
  EXPECT_THAT(collector_->capabilities(), IsEmpty());
}

TEST_F(MapCollectorTest, HasNoSeriesWhenTheClaimsFail) {
  claims_ = {claim("12", {"0"})};
  make();
  EXPECT_THAT(page(), Not(IsEmpty()));
  claims_ = fail(ErrorCode::kUnavailable, "no kubelet");
  Result<> result;
  EXPECT_THAT(page(&result), IsEmpty());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "no kubelet");
  EXPECT_THAT(*inventory_->assignments().all(), IsEmpty());
  EXPECT_THAT(collector_->capabilities(), SizeIs(1));
}

TEST_F(MapCollectorTest, UsesGresLinesOfVirtualNodes) {
  auto a = claim("12", {"0"});
  a.shares = 2;
  auto b = claim("13", {"0"});
  b.shares = 6;
  claims_ = {a, b};
  make("nvidia",
       {.gres = parse_gres_conf("NodeName=node[0-3] Name=shard Count=8 File=/dev/nvidia0\n"
                                "NodeName=other Name=shard Count=1 File=/dev/nvidia0\n")});
  EXPECT_THAT(page(), HasSubstr(R"(uuid="12"} 0.25)"));
  EXPECT_THAT(page(), HasSubstr(R"(uuid="13"} 0.75)"));
}

TEST_F(MapCollectorTest, UsesTheOrderOfSlurm) {
  claims_ = {claim("12", {"5"})};
  make("nvidia", {.order = parse_order_map("5:1.3")});
  EXPECT_THAT(page(), HasSubstr(R"(gpuiid="3",gpuuuid="GPU-c",hindex="n1/gpu-5")"));
}

}  // namespace
}  // namespace ceems::exporter::gpu
