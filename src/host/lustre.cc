#include "host/lustre.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/strings.h"

namespace ceems::host {
namespace {

constexpr std::size_t kMaxFilesystemName = 32;  // Lustre itself allows 8
constexpr std::size_t kMaxJobId = 64;           // Lustre itself allows 31
constexpr std::size_t kMinInstanceDigits = 8;
constexpr std::size_t kChunk = std::size_t{64} << 10U;

/// The sum of a line. The kernel's sums have a sign, so a sum that overflowed is negative:
/// then there is none, but the line is valid.
bool take_sum(std::string_view text, std::optional<std::uint64_t>& sum) {
  sum = parse_int(text);
  return sum.has_value() || parse_int<std::int64_t>(text).has_value();
}

bool is_time_of_file(std::string_view name) {
  return name == "snapshot_time" || name == "start_time" || name == "elapsed_time";
}

std::optional<LustreCount> parse_stats_line(std::string_view line) {
  LustreCount count;
  count.name = take_word(line);
  const auto samples = parse_int(take_word(line));
  const std::string_view word = take_word(line);
  const std::string_view unit = take_word(line);
  if (count.name.empty() || !samples || word != "samples" || unit.size() < 3 ||
      !unit.starts_with('[') || !unit.ends_with(']')) {
    return std::nullopt;
  }
  count.samples = *samples;
  count.unit = unit.substr(1, unit.size() - 2);
  if (take_word(line).empty()) {  // the minimum
    return count;
  }
  const bool has_maximum = !take_word(line).empty();
  if (!has_maximum || !take_sum(take_word(line), count.sum)) {
    return std::nullopt;
  }
  return count;
}

/// "open: { samples: 3, unit: usecs, min: 1, max: 9, sum: 12, sumsq: 90, hist: { 4K: 1 } }"
std::optional<LustreCount> parse_job_line(std::string_view line) {
  LustreCount count;
  count.name = trim(take_until(line, ':'));
  line = trim(line);
  if (count.name.empty() || line.size() < 2 || !line.starts_with('{') || !line.ends_with('}')) {
    return std::nullopt;
  }
  line = line.substr(1, line.size() - 2);
  bool has_samples = false;
  while (!line.empty()) {
    std::string_view item = take_until(line, ',');
    const std::string_view key = trim(take_until(item, ':'));
    const std::string_view value = trim(item);
    if (key == "samples") {
      const auto samples = parse_int(value);
      if (!samples) {
        return std::nullopt;
      }
      count.samples = *samples;
      has_samples = true;
    } else if (key == "unit") {
      count.unit = value;
    } else if (key == "sum") {
      if (!take_sum(value, count.sum)) {
        return std::nullopt;
      }
    } else if (key == "hist") {
      break;
    }
  }
  return has_samples ? std::optional(count) : std::nullopt;
}

std::string_view without_quotes(std::string_view text) {
  if (text.size() >= 2 && text.starts_with('"') && text.ends_with('"')) {
    text.remove_prefix(1);
    text.remove_suffix(1);
  }
  return text;
}

/// The address by which a client distinguishes its mounts.
bool is_instance(std::string_view text) {
  return text.size() >= kMinInstanceDigits && std::ranges::all_of(text, is_hex_digit);
}

bool is_filesystem_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxFilesystemName && has_only_words(text, "_-");
}

}  // namespace

bool is_lustre_time(std::string_view unit) {
  return unit == "usecs" || unit == "usec";
}

Result<> parse_lustre_stats(std::string_view text, std::vector<LustreCount>& counts) {
  counts.clear();
  std::optional<Error> first;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = take_until(text, '\n');
    std::string_view rest = line;
    const std::string_view name = take_word(rest);
    if (name.empty() || is_time_of_file(name)) {
      continue;
    }
    if (const auto count = parse_stats_line(line)) {
      counts.push_back(*count);
    } else if (!first) {
      first = Error{ErrorCode::kParse,
                    fmt::format("line {}: expected 'name count samples [unit] ...', got '{}'",
                                number, printable(line))};
    }
  }
  if (first) {
    return fail(std::move(*first));
  }
  return {};
}

Result<> parse_lustre_job_stats(std::string_view text,
                                const std::function<void(const LustreJob&)>& use) {
  constexpr std::string_view kNewJob = "- job_id:";
  std::optional<Error> first;
  LustreJob job;
  bool in_job = false;
  bool valid = false;
  const auto finish = [&] {
    if (in_job && valid) {
      use(job);
    }
  };
  for (int number = 1; !text.empty(); ++number) {
    const bool cut = text.find('\n') == std::string_view::npos;
    const std::string_view line = take_until(text, '\n');
    const std::string_view content = trim(line);
    if (content.starts_with(kNewJob) && !cut) {
      finish();
      job.id = without_quotes(trim(content.substr(kNewJob.size())));
      job.counts.clear();
      in_job = true;
      valid = true;
      continue;
    }
    std::string_view rest = content;
    if (!cut &&
        (content.empty() || content == "job_stats:" || is_time_of_file(take_until(rest, ':')))) {
      continue;
    }
    if (cut && content.starts_with('-')) {  // of the next job: this one is complete
      finish();
      in_job = false;
    }
    auto count = cut ? std::nullopt : parse_job_line(content);
    if (count && in_job) {
      job.counts.push_back(*count);
      continue;
    }
    valid = false;
    if (!first) {
      first = Error{ErrorCode::kParse,
                    fmt::format("line {}: expected 'operation: {{ samples: number, ... }}', got "
                                "'{}'{}",
                                number, printable(content), cut ? " (cut)" : "")};
    }
  }
  finish();
  if (first) {
    return fail(std::move(*first));
  }
  return {};
}

bool is_lustre_job_id(std::string_view id) {
  return !id.empty() && id.size() <= kMaxJobId && has_only_words(id, "._:@+-/[]");
}

std::optional<std::string_view> lustre_client_filesystem(std::string_view directory) {
  const std::size_t dash = directory.rfind('-');
  if (dash == std::string_view::npos || !is_instance(directory.substr(dash + 1)) ||
      !is_filesystem_name(directory.substr(0, dash))) {
    return std::nullopt;
  }
  return directory.substr(0, dash);
}

std::optional<LustreTarget> lustre_target(std::string_view directory) {
  constexpr std::size_t kKind = 5;  // "-OST0000": the number has four hexadecimal digits
  const std::size_t dash = directory.rfind('-');
  if (dash == std::string_view::npos || directory.size() <= dash + kKind - 1) {
    return std::nullopt;
  }
  const std::string_view kind = directory.substr(dash, kKind - 1);
  const std::string_view number = directory.substr(dash + kKind - 1);
  LustreTarget target{.filesystem = directory.substr(0, dash), .metadata = kind == "-MDT"};
  if ((kind != "-OST" && !target.metadata) || !std::ranges::all_of(number, is_hex_digit) ||
      !is_filesystem_name(target.filesystem)) {
    return std::nullopt;
  }
  return target;
}

std::optional<LustreTarget> lustre_client_target(std::string_view directory) {
  const auto connection = lustre_client_filesystem(directory);  // "scratch-OST001f-osc"
  if (!connection) {
    return std::nullopt;
  }
  for (const std::string_view kind : {"-osc", "-mdc"}) {
    if (connection->ends_with(kind)) {
      return lustre_target(connection->substr(0, connection->size() - kind.size()));
    }
  }
  return std::nullopt;
}

Result<> read_lustre_file(const UniqueFd& fd, std::string& buffer, std::size_t limit) {
  buffer.clear();
  int failure = 0;
  for (bool done = false; !done && buffer.size() < limit;) {
    const std::size_t used = buffer.size();
    const std::size_t room = std::min(limit, std::max(used + kChunk, buffer.capacity()));
    buffer.resize_and_overwrite(room, [&](char* data, std::size_t size) {
      ssize_t count = 0;
      do {
        count = ::pread(fd.get(), data + used, size - used, static_cast<off_t>(used));
      } while (count < 0 && errno == EINTR);
      failure = count < 0 ? errno : 0;
      done = count <= 0;
      return used + static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    });
  }
  if (failure != 0) {
    return fail(errno_error(failure, "read"));
  }
  return {};
}

}  // namespace ceems::host
