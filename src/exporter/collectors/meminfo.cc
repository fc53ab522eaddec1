#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <map>

#include "exporter/collector.h"
#include "host/proc.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

constexpr std::array<std::string_view, 3> kDefaultKeys{"MemTotal", "MemFree", "MemAvailable"};
/// Names come from the kernel, but the file may be anything. One with more lines is not a meminfo.
constexpr std::size_t kMaxLines = 1000;

/// Metric name of a line of /proc/meminfo: "Active(anon)" in bytes becomes
/// "ceems_meminfo_Active_anon_bytes".
std::string metric_name(std::string_view key, bool is_bytes) {
  // "Active(anon)" becomes "Active_anon". No kernel has used other characters so far.
  std::string text(key);
  if (text.ends_with(')')) {
    text.pop_back();
  }
  return "ceems_meminfo_" + metrics::sanitize_name(text) + (is_bytes ? "_bytes" : "");
}

metrics::Desc meminfo_desc(std::string_view key, bool is_bytes) {
  std::string name = metric_name(key, is_bytes);
  const auto type = name.ends_with("_total") ? metrics::Type::kCounter : metrics::Type::kGauge;
  return {std::move(name), "Memory of the node: field of /proc/meminfo.", type, {"hostname"}};
}

class MeminfoCollector final : public Collector {
 public:
  MeminfoCollector(const CollectorContext& context, bool all_stats)
      : path_(context.paths.proc / "meminfo"), hostname_(context.hostname), all_stats_(all_stats) {}

  Result<> collect(metrics::Sink& sink) override {
    CEEMS_TRY(read());
    CEEMS_TRY_IN(path_, host::parse_meminfo(buffer_, lines_));
    if (lines_.empty()) {
      return fail(ErrorCode::kNoData, "{}: the file is empty", path_);
    }
    if (lines_.size() > kMaxLines) {
      return fail(ErrorCode::kParse, "{}: more than {} lines", path_, kMaxLines);
    }
    if (all_stats_) {
      for (const host::MeminfoLine& line : lines_) {
        add(sink, line);
      }
      return {};
    }
    for (const std::string_view key : kDefaultKeys) {
      const auto line = std::ranges::find(lines_, key, &host::MeminfoLine::key);
      // Rules subtract these from each other, so a field that the kernel does not list is 0.
      add(sink, line != lines_.end() ? *line : host::MeminfoLine{key, 0, true});
    }
    return {};
  }

 private:
  /// Reads the file into the buffer. A pipe or device in its place is an error.
  Result<> read() {
    CEEMS_TRY(file, host::open_file(path_.c_str()));
    struct stat status{};
    if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
      return fail(ErrorCode::kInvalidArgument, "{}: expected a regular file", path_);
    }
    CEEMS_TRY_IN(path_, host::reread(file, buffer_));
    return {};
  }

  void add(metrics::Sink& sink, const host::MeminfoLine& line) {
    auto desc = descs_.find(line.key);
    if (desc == descs_.end()) {
      desc = descs_.emplace(line.key, meminfo_desc(line.key, line.is_bytes)).first;
    }
    sink.add(desc->second, static_cast<double>(line.value), {hostname_});
  }

  std::string path_;
  std::string hostname_;
  bool all_stats_;
  std::map<std::string, metrics::Desc, std::less<>> descs_;
  std::vector<host::MeminfoLine> lines_;
  std::string buffer_;
};

}  // namespace

/// --collector.meminfo: ceems_meminfo_{MemTotal,MemFree,MemAvailable}_bytes, or every line of
/// /proc/meminfo with --collector.meminfo.all-stats.
CollectorSpec meminfo_collector() {
  auto all_stats = std::make_shared<bool>(false);
  return {.name = "meminfo",
          .help = "Enable the meminfo collector (memory of the node)",
          .enabled_by_default = true,
          .add_flags =
              [all_stats](config::FlagSet& flags) {
                flags.add("collector.meminfo.all-stats", *all_stats,
                          {.help = "Export every field of /proc/meminfo"});
              },
          .create = [all_stats](const CollectorContext& context,
                                const Sources&) -> Result<std::unique_ptr<Collector>> {
            return std::make_unique<MeminfoCollector>(context, *all_stats);
          }};
}

}  // namespace ceems::exporter
