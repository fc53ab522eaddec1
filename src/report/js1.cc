// The summary that jobstats keeps in SLURM's AdminComment and its readers take: facts of the format
// are at https://github.com/PrincetonUniversity/jobstats.
#include <zlib.h>

#include <cmath>

#include "base/json.h"
#include "crypto/base64.h"
#include "report/report.h"

namespace ceems::report {
namespace {

constexpr double kPercent = 100;

double one_decimal(double value) {
  return std::round(value * 10) / 10;
}

void add_whole(JsonWriter& json, std::string_view key, const Number& number) {
  if (number && std::isfinite(*number) && std::abs(*number) < 9e18) {
    json.member(key, static_cast<std::int64_t>(std::llround(*number)));
  }
}

/// One map from the index of each GPU to a value, left out if no GPU has one.
template <typename Value>
void add_gpus(JsonWriter& json,
              std::string_view key,
              const std::vector<GpuUse>& gpus,
              const Value& value) {
  bool any = false;
  for (const GpuUse& gpu : gpus) {
    any = any || value(gpu).has_value();
  }
  if (!any) {
    return;
  }
  json.key(key).begin_object();
  for (const GpuUse& gpu : gpus) {
    if (const Number number = value(gpu)) {
      json.member(gpu.index, *number);
    }
  }
  json.end_object();
}

/// gzip without a time, so that the same report gives the same bytes. Empty if zlib fails.
std::string gzip(std::string_view text) {
  z_stream stream{};
  constexpr int kGzipWindow = MAX_WBITS + 16;
  constexpr int kMemory = 8;
  if (::deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemory,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
    return {};
  }
  std::string packed(::deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  std::string input(text);  // zlib's API is not const-correct
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int done = ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  return done == Z_STREAM_END ? packed : std::string();
}

}  // namespace

std::string to_js1_json(const Report& report) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("nodes").begin_object();
  for (const NodeUse& node : report.nodes) {
    json.key(node.node.substr(0, node.node.find('.'))).begin_object();
    if (node.cpu_seconds) {
      json.member("total_time", one_decimal(*node.cpu_seconds));
    }
    add_whole(json, "cpus", node.cpus);
    add_whole(json, "used_memory", node.mem_peak);
    add_whole(json, "total_memory", node.mem_alloc);
    add_gpus(json, "gpu_utilization", node.gpus, [](const GpuUse& gpu) {
      return gpu.busy ? Number(one_decimal(*gpu.busy * kPercent)) : std::nullopt;
    });
    add_gpus(json, "gpu_used_memory", node.gpus, [](const GpuUse& gpu) { return gpu.mem_peak; });
    add_gpus(json, "gpu_total_memory", node.gpus, [](const GpuUse& gpu) { return gpu.mem_total; });
    json.end_object();
  }
  json.end_object();
  json.member("total_time",
              static_cast<std::int64_t>(std::llround(report.job.elapsed.value_or(0))));
  json.member("gpus", static_cast<std::int64_t>(std::llround(report.job.gpus.value_or(0))));
  json.end_object();
  return text;
}

std::string to_js1(const Report& report) {
  constexpr double kShort = 60;  // twice the sampling interval of jobstats
  if (report.job.elapsed && *report.job.elapsed < kShort) {
    return "Short";
  }
  if (report.nodes.empty()) {
    return "None";
  }
  return crypto::base64_encode(gzip(to_js1_json(report)));
}

}  // namespace ceems::report
