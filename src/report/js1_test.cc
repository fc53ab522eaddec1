#include <zlib.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crypto/base64.h"
#include "report/report.h"

namespace ceems::report {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Report some_report() {
  Report report{.cluster_id = "c", .uuid = "1"};
  report.job.elapsed = 7200;
  report.job.gpus = 2;
  report.nodes = {{.node = "g14.cluster.example.org",
                   .cpus = 32,
                   .cpu_seconds = 323000.53,
                   .mem_peak = 8482560000,
                   .mem_alloc = 137438953472,
                   .gpus = {{.index = "0",
                             .uuid = "GPU-0",
                             .busy = 0.664,
                             .mem_peak = 28454158336,
                             .mem_total = 85899345920},
                            {.index = "1", .uuid = "GPU-1", .busy = 0.0}}},
                  {.node = "g15", .cpus = 32, .cpu_seconds = 10, .mem_peak = 1}};
  return report;
}

std::string gunzip(const std::string& packed) {
  z_stream stream{};
  EXPECT_EQ(::inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
  std::string input = packed;
  std::string text(10'000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(::inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  ::inflateEnd(&stream);
  return text;
}

TEST(Js1, IsTheJsonOfJobstats) {
  EXPECT_EQ(to_js1_json(some_report()),
            R"({"nodes":{"g14":{"total_time":323000.5,"cpus":32,"used_memory":8482560000,)"
            R"("total_memory":137438953472,"gpu_utilization":{"0":66.4,"1":0},)"
            R"("gpu_used_memory":{"0":28454158336},"gpu_total_memory":{"0":85899345920}},)"
            R"("g15":{"total_time":10,"cpus":32,"used_memory":1}},"total_time":7200,"gpus":2})");
}

TEST(Js1, IsPackedTheSameEachTime) {
  const std::string packed = to_js1(some_report());
  EXPECT_THAT(packed, StartsWith("H4s"));
  EXPECT_EQ(packed, to_js1(some_report()));
  EXPECT_EQ(gunzip(crypto::base64_decode(packed).value_or("")), to_js1_json(some_report()));
}

TEST(Js1, HasWordsForWhatItDoesNotHold) {
  Report report = some_report();
  report.job.elapsed = 59;
  EXPECT_EQ(to_js1(report), "Short");
  report.job.elapsed = 60;
  EXPECT_THAT(to_js1(report), StartsWith("H4s"));
  report.nodes.clear();
  EXPECT_EQ(to_js1(report), "None");
  // Names are hostile here, too.
  report = some_report();
  report.nodes[0].node = "\"},\x1b";
  EXPECT_THAT(to_js1_json(report), HasSubstr(R"("\"},\u001b":{)"));
}

}  // namespace
}  // namespace ceems::report
