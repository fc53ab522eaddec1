#include "config/arguments.h"

#include <cerrno>
#include <deque>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "config/spelling.h"

namespace ceems::config {
namespace {

constexpr std::size_t kMaxArgumentFile = std::size_t{1} << 20U;  // bytes
constexpr int kMaxArgumentFiles = 16;  // in total; a file may name other files, or itself

Result<std::string> read_argument_file(const std::string& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) {
    return fail(errno_error(EISDIR, "read " + printable(path)));
  }
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return fail(errno_error(errno != 0 ? errno : ENOENT, "open " + printable(path)));
  }
  std::string text(kMaxArgumentFile + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (in.bad()) {
    return fail(errno_error(EIO, "read " + printable(path)));
  }
  if (text.size() > kMaxArgumentFile || text.find('\0') != std::string::npos) {
    return fail(ErrorCode::kInvalidArgument, "{}: not a list of arguments", printable(path));
  }
  return text;
}

/// Splits the text of an argument file, which holds one argument per line. Blank lines and lines
/// that begin with '#' are skipped.
std::vector<std::string> split_arguments(std::string_view text) {
  std::vector<std::string> arguments;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    line.remove_suffix(line.ends_with('\r') ? 1 : 0);
    if (!trim(line).empty() && !line.starts_with('#')) {
      arguments.emplace_back(line);
    }
  }
  return arguments;
}

/// Parses one command line.
class Reader {
 public:
  Reader(std::span<const char* const> arguments, std::span<Flag> flags, bool takes_positionals)
      : rest_(arguments.begin(), arguments.end()),
        flags_(flags),
        takes_positionals_(takes_positionals) {}

  Result<Arguments> read() && {
    while (!rest_.empty()) {
      const std::string argument = std::move(rest_.front());
      rest_.pop_front();
      CEEMS_TRY(take(argument));
    }
    return std::move(read_);
  }

 private:
  Result<> take(const std::string& argument) {
    if (flags_ended_ || argument == "-" ||
        !(argument.starts_with('-') || argument.starts_with('@'))) {
      return take_positional(argument);
    }
    if (argument == "--") {
      flags_ended_ = true;
      return {};
    }
    if (argument.starts_with("--")) {
      return take_flag(std::string_view(argument).substr(2));
    }
    if (argument.starts_with('-')) {
      return take_letters(std::string_view(argument).substr(1));
    }
    return take_file(argument.substr(1));
  }

  Result<> take_positional(const std::string& argument) {
    if (!takes_positionals_) {
      return fail(ErrorCode::kInvalidArgument, "unexpected argument '{}'", printable(argument));
    }
    read_.positionals.push_back(argument);
    return {};
  }

  /// Handles "name" or "name=value". Without "=value", the next argument is the value unless the
  /// flag is boolean.
  Result<> take_flag(std::string_view text) {
    const std::size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    Flag* flag = find_flag(flags_, name);
    const bool negated = flag == nullptr && name.starts_with("no-");
    if (negated) {
      flag = find_flag(flags_, name.substr(3));
    }
    if (flag == nullptr || (negated && !flag->is_bool())) {
      return fail(unknown(name));
    }
    if (flag->is_bool()) {
      if (equals != std::string_view::npos) {
        return fail(ErrorCode::kInvalidArgument,
                    "unexpected argument '{}' for boolean flag '--{}'; use --{} or --no-{}",
                    printable(text.substr(equals)), name, flag->name, flag->name);
      }
      read_.flags.emplace_back(flag, negated ? "false" : "true",
                               std::string(name.substr(negated ? 3 : 0)));
      return {};
    }
    if (equals != std::string_view::npos) {
      read_.flags.emplace_back(flag, std::string(text.substr(equals + 1)), std::string(name));
      return {};
    }
    if (rest_.empty() || (rest_.front().size() > 1 && rest_.front().starts_with('-'))) {
      return fail(ErrorCode::kInvalidArgument, "expected argument for flag '--{}'", name);
    }
    read_.flags.emplace_back(flag, std::move(rest_.front()), std::string(name));
    rest_.pop_front();
    return {};
  }

  /// Handles "xy" of -xy: booleans, of which the last may be another flag with or without its
  /// value.
  Result<> take_letters(std::string_view text) {
    while (!text.empty()) {
      const char letter = text.front();
      text.remove_prefix(1);
      const auto flag =
          std::ranges::find(flags_, letter, [](const Flag& f) { return f.info.letter; });
      if (flag == flags_.end()) {
        return fail(ErrorCode::kInvalidArgument, "unknown short flag '-{}'",
                    printable(std::string(1, letter)));
      }
      if (flag->is_bool()) {
        read_.flags.emplace_back(&*flag, "true", flag->name);
        continue;
      }
      if (text.empty() &&
          (rest_.empty() || (rest_.front().size() > 1 && rest_.front()[0] == '-'))) {
        return fail(ErrorCode::kInvalidArgument, "expected argument for flag '-{}'", letter);
      }
      if (text.empty()) {
        read_.flags.emplace_back(&*flag, std::move(rest_.front()), flag->name);
        rest_.pop_front();
      } else {
        read_.flags.emplace_back(&*flag, std::string(text), flag->name);
      }
      return {};
    }
    return {};
  }

  /// Replaces an @path argument by the arguments in that file.
  Result<> take_file(const std::string& path) {
    if (++files_ > kMaxArgumentFiles) {
      return fail(ErrorCode::kInvalidArgument, "more than {} argument files", kMaxArgumentFiles);
    }
    CEEMS_TRY(text, read_argument_file(path));
    const auto arguments = split_arguments(text);
    rest_.insert(rest_.begin(), arguments.begin(), arguments.end());
    return {};
  }

  [[nodiscard]] Error unknown(std::string_view name) const {
    std::vector<std::string_view> known;
    for (const Flag& flag : flags_) {
      known.push_back(flag.name);
      known.insert(known.end(), flag.aliases.begin(), flag.aliases.end());
    }
    std::string message = fmt::format("unknown long flag '--{}'", printable(name));
    if (const std::string_view near = nearest(name, known); !near.empty()) {
      message += fmt::format(" (did you mean '--{}'?)", near);
    }
    return {ErrorCode::kInvalidArgument, std::move(message)};
  }

  std::deque<std::string> rest_;  ///< not read yet
  std::span<Flag> flags_;
  bool takes_positionals_;
  bool flags_ended_ = false;  ///< "--" was read
  int files_ = 0;
  Arguments read_;
};

}  // namespace

Result<Arguments> read_arguments(std::span<const char* const> arguments,
                                 std::span<Flag> flags,
                                 bool takes_positionals) {
  return Reader(arguments, flags, takes_positionals).read();
}

}  // namespace ceems::config
