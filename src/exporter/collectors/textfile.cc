#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/strings.h"
#include "exporter/collector.h"
#include "metrics/text_format.h"
#include "os/file.h"

namespace ceems::exporter {
namespace {

constexpr std::size_t kMaxFiles = 200;
constexpr std::size_t kMaxFileBytes = std::size_t{4} << 20U;
constexpr std::size_t kMaxSamples = 20'000;  // of all files
constexpr std::string_view kSuffix = ".prom";

const metrics::Desc kMtime{"ceems_textfile_mtime_seconds",
                           "Time of the last change of a text file, in seconds since 1970.",
                           metrics::Type::kGauge,
                           {"hostname", "file"}};
const metrics::Desc kError{
    "ceems_textfile_scrape_error",
    "1 if a directory of text files or one of its files could not be used, otherwise 0.",
    metrics::Type::kGauge,
    {"hostname"}};

/// What identifies one version of a file.
struct Version {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  timespec changed{};
  bool operator==(const Version& other) const {
    return device == other.device && inode == other.inode && size == other.size &&
           changed.tv_sec == other.changed.tv_sec && changed.tv_nsec == other.changed.tv_nsec;
  }
};

/// A file as it was read last. It is parsed again only when it changes.
struct TextFile {
  Version version;
  std::vector<metrics::TextSample> samples;
  std::string error;  ///< empty if the samples are from the file
};

/// Whether the name is one of the exporter's, of its process, or of the recording rules of CEEMS
/// (`uuid:ceems_cpu_usage:ratio_irate`, `ceems:country`, `dev:amd_gpu_power_watts:pue`), which its
/// queries read.
bool is_reserved(std::string_view name) {
  return name.starts_with("ceems_") || name.starts_with("ceems:") || name.contains(":ceems") ||
         name.ends_with(":pue") || name.starts_with("process_") || name.starts_with("promhttp_");
}

/// Samples in the name of CEEMS would falsify what it measures.
Result<> refuse_reserved_names(const std::vector<metrics::TextSample>& samples) {
  const auto own = std::ranges::find_if(
      samples, [](const metrics::TextSample& sample) { return is_reserved(sample.desc.name); });
  return own == samples.end()
             ? Result<>()
             : fail(ErrorCode::kParse, "{}: the name is reserved for CEEMS", own->desc.name);
}

class TextfileCollector final : public Collector {
 public:
  TextfileCollector(const CollectorContext& context, std::vector<std::string> directories)
      : hostname_(context.hostname), directories_(std::move(directories)) {}

  Result<> collect(metrics::Sink& sink) override {
    std::map<std::string, TextFile> before = std::exchange(files_, {});
    errors_.clear();
    samples_ = 0;
    for (const std::string& directory : directories_) {
      if (auto read = read_directory(directory, before); !read) {
        errors_.push_back(std::move(read).error().message);
      }
    }
    for (const auto& [path, file] : files_) {
      add(path, file, sink);
    }
    sink.add(kError, errors_.empty() ? 0 : 1, {hostname_});
    if (errors_.empty()) {
      return {};
    }
    return fail(ErrorCode::kUnavailable, "{}", fmt::join(errors_, "; "));
  }

 private:
  Result<> read_directory(const std::string& directory, std::map<std::string, TextFile>& before) {
    struct stat info{};
    if (::stat(directory.c_str(), &info) != 0) {
      return fail(errno_error(errno, directory));
    }
    // A job could write what it likes, in the name of the whole node.
    if ((info.st_mode & S_IWOTH) != 0) {
      return fail(ErrorCode::kPermissionDenied, "{}: every user can write into it", directory);
    }
    std::error_code error;
    std::vector<std::string> paths;
    for (auto entry = std::filesystem::directory_iterator(directory, error);
         !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      if (const std::string path = entry->path(); path.ends_with(kSuffix)) {
        paths.push_back(path);
      }
    }
    if (error) {
      return fail(errno_error(error.value(), directory));
    }
    std::ranges::sort(paths);
    for (const std::string& path : paths) {
      if (files_.size() >= kMaxFiles) {
        return fail(ErrorCode::kUnavailable, "{}: more than {} files", directory, kMaxFiles);
      }
      read_file(path, before);
    }
    return {};
  }

  void read_file(const std::string& path, std::map<std::string, TextFile>& before) {
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0) {
      return;  // it was removed meanwhile
    }
    const Version version{
        .device = info.st_dev, .inode = info.st_ino, .size = info.st_size, .changed = info.st_mtim};
    TextFile& file = files_[path];
    if (const auto found = before.find(path);
        found != before.end() && found->second.version == version) {
      file = std::move(found->second);
      return;
    }
    file.version = version;
    const auto text = os::read_regular_file(path, kMaxFileBytes);
    auto samples = text ? metrics::parse_text_format(*text, {.max_samples = kMaxSamples})
                        : Result<std::vector<metrics::TextSample>>(fail(text.error()));
    if (samples) {
      if (auto allowed = refuse_reserved_names(*samples); !allowed) {
        samples = fail(std::move(allowed).error());
      }
    }
    if (samples) {
      file.samples = std::move(*samples);
    } else {
      file.error = samples.error().message;
    }
  }

  void add(const std::string& path, const TextFile& file, metrics::Sink& sink) {
    if (!file.error.empty()) {
      errors_.push_back(file.error.find(path) == std::string::npos
                            ? fmt::format("{}: {}", path, file.error)
                            : file.error);
      return;
    }
    samples_ += file.samples.size();
    if (samples_ > kMaxSamples) {
      errors_.push_back(fmt::format("{}: more than {} samples in all files", path, kMaxSamples));
      return;
    }
    const std::uint64_t dropped = sink.dropped();
    for (const metrics::TextSample& sample : file.samples) {
      labels_.assign(sample.labels.begin(), sample.labels.end());
      sink.add(sample.desc, sample.value, labels_);
    }
    if (sink.dropped() > dropped) {
      errors_.push_back(
          fmt::format("{}: left out {} samples whose series, type or help is another one elsewhere",
                      path, sink.dropped() - dropped));
    }
    const auto& changed = file.version.changed;
    sink.add(kMtime,
             static_cast<double>(changed.tv_sec) + static_cast<double>(changed.tv_nsec) / 1e9,
             {hostname_, path});
  }

  std::string hostname_;
  std::vector<std::string> directories_;
  std::map<std::string, TextFile> files_;  // by path
  std::vector<std::string> errors_;        // of this scrape
  std::size_t samples_ = 0;                // on this page
  std::vector<std::string_view> labels_;   // kept for its memory
};

}  // namespace

/// --collector.textfile: samples of the *.prom files in some directories, which other programs
/// write. They are parsed when they change. Not even a broken file spoils the others.
CollectorSpec textfile_collector() {
  const auto directories = std::make_shared<std::vector<std::string>>();
  return {.name = "textfile",
          .help = "Enable the textfile collector (metrics that other programs write into files)",
          .add_flags =
              [directories](config::FlagSet& set) {
                set.add("collector.textfile.directory", *directories,
                        {.help = "Directory with files *.prom in Prometheus' text format; may be "
                                 "given several times",
                         .placeholder = "DIR"});
              },
          .create = [directories](const CollectorContext& context,
                                  const Sources&) -> Result<std::unique_ptr<Collector>> {
            if (directories->empty()) {
              return fail(ErrorCode::kInvalidArgument,
                          "--collector.textfile needs --collector.textfile.directory");
            }
            return std::make_unique<TextfileCollector>(context, *directories);
          }};
}

}  // namespace ceems::exporter
