// Reads the summary that jobstats keeps in SLURM's AdminComment (js1.cc). Users cannot write there,
// but operators' scripts can, so it is read as untrusted.
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/json_reader.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "crypto/base64.h"
#include "report/report.h"

namespace ceems::report {
namespace {

constexpr double kWholePercent = 100;
constexpr std::size_t kMaxUnpacked = std::size_t{4} << 20U;
constexpr std::size_t kMaxNodes = 20'000;
constexpr std::size_t kMaxGpus = 256;  // of a node
constexpr std::size_t kMaxName = 256;
constexpr double kMaxNumber = 1e14;  // seconds and bytes beyond are not plausible

std::unexpected<Error> malformed(std::string_view what) {
  return fail(ErrorCode::kParse, "not a summary of jobstats: {}", what);
}

/// Unpacks one gzip member of at most kMaxUnpacked bytes.
Result<std::string> unpack(const std::string& packed) {
  z_stream stream{};
  constexpr int kGzipWindow = MAX_WBITS + 16;
  if (::inflateInit2(&stream, kGzipWindow) != Z_OK) {
    return fail(ErrorCode::kInternal, "zlib cannot start");
  }
  std::string input(packed);  // zlib's API is not const-correct
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  std::string text;
  int state = Z_OK;
  while (state == Z_OK && text.size() < kMaxUnpacked) {
    constexpr std::size_t kPart = 32 << 10;
    const std::size_t before = text.size();
    text.resize(before + kPart);
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + before);
    stream.avail_out = kPart;
    state = ::inflate(&stream, Z_NO_FLUSH);
    text.resize(before + kPart - stream.avail_out);
  }
  ::inflateEnd(&stream);
  if (state != Z_STREAM_END) {
    return malformed(state == Z_OK ? "too large" : "damaged gzip");
  }
  return text;
}

bool skip(JsonScanner& scanner) {
  constexpr int kDepth = 4;
  std::string ignored;
  return scanner.value(ignored, kDepth);
}

/// Takes a number that is not negative. Others, and values of other kinds, are not known.
bool take_number(JsonScanner& scanner, Number& to) {
  const std::string_view text = scanner.number();
  if (text.empty()) {
    if (scanner.at('{') || scanner.at('[') || scanner.at('"')) {
      return skip(scanner);
    }
    const std::string_view word = scanner.bare_word();
    return word == "null" || word == "NaN" || word == "Infinity" || word == "-Infinity";  // Python
  }
  const auto number = parse_double(text);
  if (number && *number >= 0 && *number <= kMaxNumber) {
    to = number;
  }
  return true;
}

GpuUse* gpu_named(NodeUse& node, const std::string& index) {
  const auto found = std::ranges::find(node.gpus, index, &GpuUse::index);
  if (found != node.gpus.end()) {
    return &*found;
  }
  if (node.gpus.size() >= kMaxGpus || index.empty() || index.size() > kMaxName) {
    return nullptr;
  }
  node.gpus.push_back({.index = index});
  return &node.gpus.back();
}

/// One of the maps from the index of each GPU to a number.
bool take_gpus(JsonScanner& scanner, NodeUse& node, Number GpuUse::* to) {
  return each_member(scanner, [&](const std::string& index) {
    GpuUse* const gpu = gpu_named(node, clean_text(index));
    Number number;
    if (gpu == nullptr || !take_number(scanner, number)) {
      return false;
    }
    if (number && to == &GpuUse::busy) {
      number = std::min(*number / kWholePercent, 1.0);
    }
    gpu->*to = number;
    return true;
  });
}

bool take_node(JsonScanner& scanner, NodeUse& node) {
  return each_member(scanner, [&](const std::string& name) {
    if (name == "total_time") {
      return take_number(scanner, node.cpu_seconds);
    }
    if (name == "cpus") {
      return take_number(scanner, node.cpus);
    }
    if (name == "used_memory") {
      return take_number(scanner, node.mem_peak);
    }
    if (name == "total_memory") {
      return take_number(scanner, node.mem_alloc);
    }
    if (name == "gpu_utilization") {
      return take_gpus(scanner, node, &GpuUse::busy);
    }
    if (name == "gpu_used_memory") {
      return take_gpus(scanner, node, &GpuUse::mem_peak);
    }
    if (name == "gpu_total_memory") {
      return take_gpus(scanner, node, &GpuUse::mem_total);
    }
    return skip(scanner);
  });
}

bool take_nodes(JsonScanner& scanner, std::vector<NodeUse>& nodes) {
  return each_member(scanner, [&](const std::string& name) {
    if (nodes.size() >= kMaxNodes || name.empty() || name.size() > kMaxName) {
      return false;
    }
    nodes.push_back({.node = clean_text(name)});
    const bool good = take_node(scanner, nodes.back());
    // By their numbers, whichever map named them first.
    std::ranges::sort(nodes.back().gpus, {}, [](const GpuUse& gpu) {
      return std::pair<std::size_t, std::string_view>(gpu.index.size(), gpu.index);
    });
    return good;
  });
}

}  // namespace

Result<Js1> parse_js1_json(std::string_view text) {
  JsonScanner scanner(text);
  Js1 summary;
  const bool good = each_member(scanner, [&](const std::string& name) {
    if (name == "nodes") {
      summary.nodes.clear();
      return take_nodes(scanner, summary.nodes);
    }
    if (name == "total_time") {
      return take_number(scanner, summary.elapsed);
    }
    if (name == "gpus") {
      return take_number(scanner, summary.gpus);
    }
    return skip(scanner);
  });
  if (!good || !scanner.at_end()) {
    return malformed("unexpected JSON");
  }
  return summary;
}

Result<Js1> parse_js1(std::string_view text) {
  constexpr std::string_view kPrefix = "JS1:";
  text = trim(text);
  if (text.starts_with(kPrefix)) {
    text.remove_prefix(kPrefix.size());
  }
  if (text == "Short" || text == "None") {
    return fail(ErrorCode::kNoData, "jobstats has no summary of this job");
  }
  if (text.size() > kMaxJs1) {
    return malformed("too large");
  }
  std::string packed(text);
  std::erase_if(packed, [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; });
  const auto bytes = crypto::base64_decode(packed);
  if (!bytes) {
    return malformed("no base64");
  }
  const auto json = unpack(*bytes);
  return json ? parse_js1_json(*json) : Result<Js1>(fail(json.error()));
}

}  // namespace ceems::report
