#include "cacct/series/dump.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/strings.h"
#include "cacct/series/dump_progress.h"
#include "os/file.h"

namespace ceems::cacct {
namespace {

constexpr std::int64_t kFirstPoints = 1000;         // in the first piece of a query
constexpr std::int64_t kMaxPoints = 10'000;         // Prometheus refuses more than 11,000
constexpr std::int64_t kSamplesPerPiece = 200'000;  // about 20 MB while an answer is parsed
constexpr std::chrono::seconds kSaveEvery{1};
constexpr std::size_t kMaxProgressBytes = std::size_t{256} << 20U;
/// A label that tells apart series of two queries that are otherwise the same.
constexpr const char* kQueryLabel = "__query__";

/// The shortest decimal text without an exponent.
std::string value_text(double value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  if (std::isinf(value)) {
    return value > 0 ? "+Inf" : "-Inf";
  }
  std::array<char, 512> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
  return {buffer.data(), end.ptr};
}

/// A pair of a unit and a query.
struct Item {
  const DumpUnit* unit;
  const SeriesQuery* query;
};

class Dump {
 public:
  Dump(tsdb::Client& client,
       std::vector<Item> items,
       const DumpOptions& options,
       const Clock& clock)
      : client_(client), items_(std::move(items)), options_(options), clock_(clock) {}

  Result<DumpOutcome> run() {
    progress_.key = key();
    CEEMS_TRY(open());
    for (; progress_.item < items_.size(); ++progress_.item, progress_.next_ms = 0) {
      CEEMS_TRY(fetch(items_[progress_.item]));
    }
    CEEMS_TRY(write_metadata());
    ::unlink(path("progress.json").c_str());
    return DumpOutcome{.series = progress_.series.size(),
                       .samples = progress_.samples,
                       .resumed = resumed_,
                       .failed = progress_.failed};
  }

 private:
  [[nodiscard]] std::string path(std::string_view name) const {
    return fmt::format("{}/{}", options_.directory, name);
  }
  [[nodiscard]] std::string series_path(std::string_view fingerprint) const {
    return path(
        fmt::format("{}.{}", fingerprint, options_.format == SeriesFormat::kCsv ? "csv" : "jsonl"));
  }

  /// Identifies what is dumped, so that only the same thing is continued.
  [[nodiscard]] std::string key() const {
    std::string text =
        fmt::format("{} {} {}", options_.format == SeriesFormat::kCsv ? "csv" : "jsonl",
                    options_.step.count(), options_.lookback.count());
    for (const Item& item : items_) {
      text +=
          fmt::format("\n{} {} {}", item.unit->start_ms, item.unit->running ? 0 : item.unit->end_ms,
                      item.query->render({item.unit->uuid}, {}));
    }
    return fingerprint({{"dump", text}});
  }

  /// Makes the directory, and continues an interrupted dump of the same things.
  Result<> open() {
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::path(options_.directory).parent_path();
    if (!parent.empty()) {
      std::filesystem::create_directories(parent, error);
    }
    if (::mkdir(options_.directory.c_str(), 0700) != 0 && errno != EEXIST) {
      return fail(errno_error(errno, "create the directory " + printable(options_.directory)));
    }
    const auto text = os::read_regular_file(path("progress.json"), kMaxProgressBytes);
    if (!text) {
      return {};
    }
    auto before = parse_progress(*text);
    if (!before || before->key != progress_.key || before->item >= items_.size()) {
      return {};
    }
    for (const auto& [name, series] : before->series) {
      // What was written after the progress was saved is fetched again.
      struct stat info{};
      const std::string file = series_path(name);
      const bool whole = name == fingerprint(series.labels) && ::lstat(file.c_str(), &info) == 0 &&
                         S_ISREG(info.st_mode) &&
                         static_cast<std::uint64_t>(info.st_size) >= series.bytes &&
                         ::truncate(file.c_str(), static_cast<off_t>(series.bytes)) == 0;
      if (!whole) {
        return {};
      }
    }
    progress_ = std::move(*before);
    resumed_ = true;
    return {};
  }

  Result<> fetch(const Item& item) {
    const std::int64_t step = options_.step.count();
    tsdb::QueryVariables variables = options_.variables;
    variables.range = tsdb::duration_text(std::chrono::milliseconds(
        std::max<std::int64_t>(item.unit->end_ms - item.unit->start_ms, 1000)));
    const std::string query = item.query->render({item.unit->uuid}, variables);
    std::int64_t points = kFirstPoints;
    std::int64_t start = std::max(progress_.next_ms, item.unit->start_ms);
    while (start <= item.unit->end_ms) {
      report(item, start);
      const std::int64_t last = std::min(start + (points - 1) * step, item.unit->end_ms);
      const auto answer = client_.query_range(query, start, last, options_.step, options_.lookback);
      if (!answer) {
        progress_.failed.push_back(fmt::format("failed to fetch time series for query {} of {}: {}",
                                               item.query->name, item.unit->uuid,
                                               answer.error().message));
        return {};
      }
      CEEMS_TRY(store(item, *answer));
      const auto width = static_cast<std::int64_t>(std::max<std::size_t>(answer->series.size(), 1));
      points = std::clamp(kSamplesPerPiece / width, std::int64_t{10}, kMaxPoints);
      start = last + step;
      progress_.next_ms = start;
      CEEMS_TRY(save());
    }
    return {};
  }

  Result<> store(const Item& item, const tsdb::QueryAnswer& answer) {
    for (const tsdb::Series& series : answer.series) {
      if (series.labels.get("uuid").empty() || series.samples.empty()) {
        continue;
      }
      SeriesLabels labels(series.labels.entries().begin(), series.labels.entries().end());
      std::string name = fingerprint(labels);
      const auto other = progress_.series.find(name);
      if (other != progress_.series.end() && other->second.item != progress_.item) {
        labels[kQueryLabel] = item.query->name;
        name = fingerprint(labels);
      }
      WrittenSeries& written = progress_.series[name];
      written.labels = std::move(labels);
      written.item = progress_.item;
      CEEMS_TRY_IN(series_path(name), append(name, series.samples, written));
    }
    return {};
  }

  Result<> append(const std::string& name,
                  const std::vector<tsdb::Sample>& samples,
                  WrittenSeries& written) {
    std::string text;
    if (written.bytes == 0 && options_.format == SeriesFormat::kCsv) {
      text = "timestamp,value\n";
    }
    for (const tsdb::Sample& sample : samples) {
      if (sample.time_ms <= written.last_ms) {
        continue;
      }
      written.last_ms = sample.time_ms;
      ++progress_.samples;
      const std::string time = tsdb::seconds_text(sample.time_ms);
      const std::string value = value_text(sample.value);
      if (options_.format == SeriesFormat::kCsv) {
        text.append(time).append(",").append(value);
      } else {
        const std::string_view quote = std::isfinite(sample.value) ? "" : "\"";
        text += fmt::format("{{\"timestamp\":{},\"value\":{}{}{}}}", time, quote, value, quote);
      }
      text += '\n';
    }
    const int create = written.bytes == 0 ? O_CREAT | O_TRUNC : 0;
    const UniqueFd fd(::open(series_path(name).c_str(),
                             O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | create, 0600));
    if (!fd.valid()) {
      return fail(errno_error(errno, "open"));
    }
    CEEMS_TRY(os::write_all(fd.get(), text));
    written.bytes += text.size();
    return {};
  }

  /// Saves the progress if that was not done lately.
  Result<> save() {
    const auto now = clock_.steady_now();
    if (now - saved_ < kSaveEvery) {
      return {};
    }
    saved_ = now;
    return os::replace_file(path("progress.json"), to_json(progress_));
  }

  Result<> write_metadata() {
    std::string text = "[";
    for (auto& [name, series] : progress_.series) {
      if (options_.describe && series.item < items_.size()) {
        const SeriesQuery& query = *items_[series.item].query;
        series.labels["metric"] = query.title;
        series.labels["help"] = query.help;
      }
      text += text.size() == 1 ? "\n" : ",\n";
      text += fmt::format("\t{{\n\t\t\"fingerprint\": \"{}\",\n\t\t\"labels\": {{", name);
      bool first = true;
      for (const auto& [label, value] : series.labels) {
        text += std::exchange(first, false) ? "\n\t\t\t" : ",\n\t\t\t";
        append_json_string(text, label, JsonEscape::kPlain);
        text += ": ";
        append_json_string(text, value, JsonEscape::kPlain);
      }
      text += "\n\t\t}\n\t}";
    }
    text += progress_.series.empty() ? "]\n" : "\n]\n";
    return os::replace_file(path("metadata.json"), text);
  }

  void report(const Item& item, std::int64_t start) const {
    if (!options_.progress) {
      return;
    }
    const auto length =
        static_cast<double>(std::max<std::int64_t>(item.unit->end_ms - item.unit->start_ms, 1));
    const double part = static_cast<double>(start - item.unit->start_ms) / length;
    options_.progress(
        fmt::format("{} of {}", item.query->name, item.unit->uuid),
        (static_cast<double>(progress_.item) + part) / static_cast<double>(items_.size()));
  }

  tsdb::Client& client_;
  const std::vector<Item> items_;
  const DumpOptions& options_;
  const Clock& clock_;
  DumpProgress progress_;
  bool resumed_ = false;
  Clock::SteadyTime saved_{};
};

}  // namespace

Result<DumpOutcome> dump_series(tsdb::Client& client,
                                const std::vector<DumpUnit>& units,
                                const std::vector<const SeriesQuery*>& queries,
                                const DumpOptions& options,
                                const Clock& clock) {
  std::vector<Item> items;
  for (const DumpUnit& unit : units) {
    for (const SeriesQuery* query : queries) {
      items.push_back({.unit = &unit, .query = query});
    }
  }
  return Dump(client, std::move(items), options, clock).run();
}

}  // namespace ceems::cacct
