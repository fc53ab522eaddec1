#include "audit/config.h"

#include <utility>

#include "config/section.h"

namespace ceems::audit {

Result<Options> read_options(const config::Node& node, const std::string& directory) {
  constexpr std::int64_t kMaxMegabytes = 1'000'000;
  constexpr std::int64_t kMaxFiles = 100;
  constexpr std::uint64_t kMegabyte = 1'000'000;
  Options options;
  auto megabytes = static_cast<std::int64_t>(options.max_bytes / kMegabyte);
  std::int64_t keep = options.keep;
  config::Section section(node);
  section.only({"file", "journal", "max_megabytes", "keep"})
      .file("file", options.file, directory)
      .boolean("journal", options.journal)
      .integer("max_megabytes", megabytes)
      .integer("keep", keep)
      .refuse(options.file.empty() == !options.journal, "",
              "expected either file, the name of a file, or journal: true")
      .refuse(megabytes < 0 || megabytes > kMaxMegabytes, "max_megabytes",
              "expected a number from 0 (never) to 1000000")
      .refuse(keep < 1 || keep > kMaxFiles, "keep", "expected a number from 1 to 100");
  if (!node.present()) {
    return Options{};
  }
  if (!section.ok()) {
    return fail(section.done().error());
  }
  options.max_bytes = static_cast<std::uint64_t>(megabytes) * kMegabyte;
  options.keep = static_cast<int>(keep);
  return options;
}

}  // namespace ceems::audit
