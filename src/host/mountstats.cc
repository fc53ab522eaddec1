#include "host/mountstats.h"

#include <span>
#include <utility>

#include "base/strings.h"

namespace ceems::host {
namespace {

constexpr std::size_t kMaxPath = 1024;
constexpr std::size_t kMaxOperations = 256;  // Linux has fewer than 80

/// The device line of a mount: "device SOURCE mounted on POINT with fstype nfs4 statvers=1.1".
struct Heading {
  bool is_nfs = false;
  std::string_view source;
  std::string_view mount_point;
  std::string_view version;
};

std::optional<Heading> parse_heading(std::string_view line) {
  Heading heading;
  take_word(line);  // "device"
  heading.source = take_word(line);
  for (const std::string_view expected : {"mounted", "on"}) {
    if (take_word(line) != expected) {
      return std::nullopt;
    }
  }
  heading.mount_point = take_word(line);
  for (const std::string_view expected : {"with", "fstype"}) {
    if (take_word(line) != expected) {
      return std::nullopt;
    }
  }
  const std::string_view type = take_word(line);
  heading.is_nfs = type == "nfs" || type == "nfs4";
  std::string_view version = take_word(line);
  if (take_until(version, '=') == "statvers") {
    heading.version = version;
  }
  return type.empty() ? std::nullopt : std::optional(heading);
}

bool take_numbers(std::string_view& rest, std::span<std::uint64_t> numbers) {
  for (std::uint64_t& number : numbers) {
    const auto value = parse_int(take_word(rest));
    if (!value) {
      return false;
    }
    number = *value;
  }
  return true;
}

std::optional<NfsBytes> parse_bytes(std::string_view rest) {
  std::array<std::uint64_t, 6> n{};
  if (!take_numbers(rest, n)) {
    return std::nullopt;
  }
  return NfsBytes{.read = n[0],
                  .written = n[1],
                  .direct_read = n[2],
                  .direct_written = n[3],
                  .server_read = n[4],
                  .server_written = n[5]};
}

std::optional<NfsOperation> parse_operation(std::string_view line) {
  NfsOperation operation;
  operation.name = trim(take_until(line, ':'));
  if (operation.name.empty() || !has_only_words(operation.name, "_") ||
      !take_numbers(line, operation.columns)) {
    return std::nullopt;
  }
  if (const std::string_view errors = take_word(line); !errors.empty()) {
    operation.errors = parse_int(errors);
    if (!operation.errors) {
      return std::nullopt;
    }
  }
  return operation;
}

class Parser {
 public:
  Parser(std::size_t max_mounts, NfsMounts& result) : max_mounts_(max_mounts), result_(result) {}

  /// False if the line is malformed.
  bool take(std::string_view content) {
    std::string_view rest = content;
    const std::string_view word = take_word(rest);
    if (word == "device" || word == "no") {  // "no device mounted on / with fstype rootfs"
      return word == "no" ? (mount_ = nullptr, true) : start(content);
    }
    if (mount_ == nullptr) {
      return true;
    }
    if (content == "per-op statistics") {
      in_operations_ = true;
      return true;
    }
    if (in_operations_) {
      const auto operation = parse_operation(content);
      if (operation && mount_->operations.size() < kMaxOperations) {
        mount_->operations.push_back(*operation);
      }
      return operation.has_value();
    }
    if (word == "bytes:") {
      mount_->bytes = parse_bytes(rest);
      return mount_->bytes.has_value();
    }
    return true;
  }

 private:
  bool start(std::string_view line) {
    mount_ = nullptr;
    in_operations_ = false;
    const auto heading = parse_heading(line);
    if (!heading) {
      return false;
    }
    if (!heading->is_nfs) {
      return true;
    }
    if ((heading->version != "1.0" && heading->version != "1.1") ||
        heading->source.size() > kMaxPath || heading->mount_point.size() > kMaxPath) {
      return false;
    }
    if (result_.mounts.size() >= max_mounts_) {
      ++result_.left_out;
      return true;
    }
    mount_ = &result_.mounts.emplace_back();
    mount_->source = heading->source;
    mount_->mount_point = heading->mount_point;
    return true;
  }

  std::size_t max_mounts_;
  NfsMounts& result_;
  NfsMount* mount_ = nullptr;  // null outside of NFS mounts
  bool in_operations_ = false;
};

}  // namespace

Result<> parse_mountstats(std::string_view text, std::size_t max_mounts, NfsMounts& result) {
  result.mounts.clear();
  result.left_out = 0;
  std::optional<Error> first;
  Parser parser(max_mounts, result);
  for (int number = 1; !text.empty(); ++number) {
    const bool cut = text.find('\n') == std::string_view::npos;
    const std::string_view content = trim(take_until(text, '\n'));
    if (cut || (!content.empty() && !parser.take(content))) {
      if (!first) {
        first = Error{ErrorCode::kParse,
                      fmt::format("line {}: expected statistics of NFS 1.0 or 1.1, got '{}'{}",
                                  number, printable(content), cut ? " (cut)" : "")};
      }
    }
  }
  if (first) {
    return fail(std::move(*first));
  }
  return {};
}

}  // namespace ceems::host
