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

TEST(Js1, IsReadAsItWasWritten) {
  const Report report = some_report();
  const auto read = parse_js1("JS1:" + to_js1(report));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->elapsed, 7200);
  EXPECT_EQ(read->gpus, 2);
  Report again{.cluster_id = "c", .uuid = "1"};
  again.job.elapsed = read->elapsed;
  again.job.gpus = read->gpus;
  again.nodes = read->nodes;
  EXPECT_EQ(to_js1_json(again), to_js1_json(report));
  EXPECT_EQ(to_js1(again), to_js1(report));
}

// What Python's json writes: blanks, another order, numbers with a fraction; GPUs of jobs without
// them, and a member of ours.
TEST(Js1, IsReadInAnyOrder) {
  const auto read = parse_js1_json(
      R"({"gpus": 1, "total_time": 50944, "ceems": {"v": 1, "m": ["x"]}, "nodes": {"g9": )"
      R"({"used_memory": 4000000000, "total_memory": 8000000000.0, "total_time": 50000.5, "cpus": 1,)"
      R"( "gpu_total_memory": {"0": 42949672960}, "gpu_used_memory": {"0": 3e9}, )"
      R"("gpu_utilization": {"0": 98.5}, "new": null}}})");
  ASSERT_TRUE(read);
  ASSERT_EQ(read->nodes.size(), 1U);
  const NodeUse& node = read->nodes[0];
  EXPECT_EQ(node.node, "g9");
  EXPECT_EQ(node.cpu_seconds, 50000.5);
  EXPECT_EQ(node.mem_peak, 4e9);
  EXPECT_EQ(node.mem_alloc, 8e9);
  ASSERT_EQ(node.gpus.size(), 1U);
  EXPECT_EQ(node.gpus[0].busy, 0.985);
  EXPECT_EQ(node.gpus[0].mem_peak, 3e9);
  EXPECT_EQ(node.gpus[0].mem_total, 42949672960.0);
  EXPECT_EQ(read->elapsed, 50944);
  EXPECT_TRUE(parse_js1_json("{}"));
}

TEST(Js1, TakesUnknownNumbersAsUnknown) {
  const auto read = parse_js1_json(
      R"({"nodes":{"a":{"total_time":null,"cpus":-1,"used_memory":1e300,"total_memory":"4"},)"
      R"("b":{"total_time":NaN,"gpu_utilization":{"0":140}}}})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->nodes[0].cpu_seconds, std::nullopt);
  EXPECT_EQ(read->nodes[0].cpus, std::nullopt);
  EXPECT_EQ(read->nodes[0].mem_peak, std::nullopt);
  EXPECT_EQ(read->nodes[0].mem_alloc, std::nullopt);
  EXPECT_EQ(read->nodes[1].cpu_seconds, std::nullopt);
  EXPECT_EQ(read->nodes[1].gpus.at(0).busy, 1);
}

TEST(Js1, WithoutDataIsNotAnError) {
  for (const char* text : {"JS1:Short", "JS1:None", " None\n"}) {
    EXPECT_EQ(parse_js1(text).error().code, ErrorCode::kNoData) << text;
  }
}

std::string packed(const std::string& json) {
  std::string text = json;
  std::string out(::compressBound(text.size()) + 100, '\0');
  z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return crypto::base64_encode(out);
}

TEST(Js1, RefusesHostileTexts) {
  EXPECT_TRUE(parse_js1(packed("{}")));
  std::string many = R"({"nodes":{)";
  for (int i = 0; i <= 20'000; ++i) {
    many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":{}";
  }
  many += "}}";
  std::string deep = R"({"x":)";
  deep += std::string(10'000, '[');
  const std::string good = packed("{\"gpus\":1}");
  for (const std::string& text :
       {std::string(), std::string("JS1:"), std::string("JS1:x"), std::string("H4sI"),
        std::string("!!!!"), good.substr(0, good.size() - 8),
        packed(std::string(6 << 20, ' ')),  // 6 KiB that become 6 MiB
        packed(many), packed(deep), packed("[]"), packed("{} {}"), packed("{\"gpus\"}"),
        packed(R"({"nodes":[1]})"), packed(R"({"nodes":{"":{}}})"),
        std::string(kMaxJs1 + 1, 'A')}) {
    const auto read = parse_js1(text);
    ASSERT_FALSE(read) << text.substr(0, 100);
    EXPECT_EQ(read.error().code, ErrorCode::kParse);
  }
}

}  // namespace
}  // namespace ceems::report
