#include "tool/validate/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::tool::validate {
namespace {

TEST(ExporterPage, HasTheEnergyOfTheNode) {
  const auto page =
      parse_exporter_page(
          "# HELP ceems_node_energy_joules_total Energy.\n"
          "ceems_node_energy_joules_total{domain=\"node\",source=\"ipmi_dcmi\"} 100.5\n"
          "ceems_node_energy_joules_total{domain=\"node\",source=\"redfish\"} 1e2\n"
          "ceems_node_energy_joules_total{domain=\"package\",source=\"rapl\"} 70\n"
          "ceems_compute_unit_energy_joules_total{domain=\"node\",uuid=\"load-1\"} 40\n"
          "ceems_compute_unit_energy_joules_total{domain=\"package\",uuid=\"x\"} 4\n"
          "ceems_compute_unit_energy_joules_total{domain=\"node\",uuid=\"a\\\"b}\"} 2\n"
          "ceems_energy_source_info{domain=\"package\",method=\"measured\","
          "source=\"rapl-package-0\"} 1\n"
          "ceems_energy_source_info{domain=\"package\",method=\"measured\","
          "source=\"rapl-package-1\"} 1\n"
          "ceems_energy_source_info{domain=\"node\",method=\"modelled\","
          "source=\"power-model\"} 1\n"
          "ceems_gpu_info{gpuiid=\"\",index=\"0\",name=\"NVIDIA A100\"} 1\n"
          "ceems_gpu_info{gpuiid=\"1\",index=\"0\",name=\"MIG 1g.5gb\"} 1\n"
          "ceems_exporter_build_info{version=\"1.2.3\"} 1\n"
          "other_metric 5\n")
          .value();
  EXPECT_DOUBLE_EQ(page.node_joules(), 200.5);
  EXPECT_EQ(page.units.size(), 2U);
  EXPECT_DOUBLE_EQ(page.units.at("load-1"), 40);
  EXPECT_DOUBLE_EQ(page.units.at("a\"b}"), 2);
  EXPECT_EQ(page.sources, (std::vector<EnergySource>{
                              {.domain = "node", .kind = "power-model", .method = "modelled"},
                              {.domain = "package", .kind = "rapl", .method = "measured"}}));
  EXPECT_EQ(page.gpus, std::vector<std::string>{"NVIDIA A100"});
  EXPECT_EQ(page.version, "1.2.3");
}

TEST(ExporterPage, SaysWhatIsMissing) {
  for (const char* text :
       {"", "up 1\n", "ceems_node_energy_joules_total{domain=\"node\"\n",
        "ceems_node_energy_joules_total{domain=\"package\"} 5\n",
        "ceems_node_energy_joules_total{domain=\"node\"} x\n", "ceems_{", "ceems_{a=\""}) {
    EXPECT_THAT(parse_exporter_page(text).error().message,
                ::testing::HasSubstr("start the exporter with --collector.energy"))
        << text;
  }
}

}  // namespace
}  // namespace ceems::tool::validate
