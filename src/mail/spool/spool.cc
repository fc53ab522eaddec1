#include "mail/spool/spool.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include <fmt/format.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/json_reader.h"
#include "base/strings.h"

namespace ceems::mail {
namespace {

// Only the server, which owns the directory, and the writer can enter it.
constexpr mode_t kFileMode = 0644;
constexpr std::string_view kEnding = ".mail";

std::unexpected<Error> malformed() {
  return fail(ErrorCode::kParse, "not a file of ceems_mail");
}

Result<> write_file(const std::string& path, std::string_view text) {
  const UniqueFd file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kFileMode));
  if (!file.valid()) {
    return fail(errno_error(errno, fmt::format("create {}", path)));
  }
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return fail(errno_error(written < 0 ? errno : ENOSPC, fmt::format("write {}", path)));
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

std::string SpoolMail::variable(std::string_view name) const {
  const auto found = job.find(name);
  return found == job.end() ? std::string() : found->second;
}

std::string to_text(const SpoolMail& mail) {
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  json.begin_object().member("v", 1).member("at_ms", mail.at_ms);
  json.member("subject", mail.subject).member("recipient", mail.recipient);
  json.member("body", mail.body).key("job").begin_object();
  for (const auto& [name, value] : mail.job) {
    json.member(name, value);
  }
  json.end_object().end_object();
  return text;
}

Result<SpoolMail> parse_spool_mail(std::string_view text) {
  if (text.size() > kMaxSpoolFile) {
    return malformed();
  }
  SpoolMail mail;
  JsonScanner scanner(text);
  const auto variables = [&](const std::string& name) { return scanner.string(mail.job[name]); };
  const bool good = each_member(scanner, [&](const std::string& name) {
    if (name == "at_ms") {
      const auto number = parse_int<std::int64_t>(scanner.number());
      mail.at_ms = number.value_or(-1);
      return mail.at_ms >= 0;
    }
    if (name == "subject") {
      return scanner.string(mail.subject);
    }
    if (name == "recipient") {
      return scanner.string(mail.recipient);
    }
    if (name == "body") {
      return scanner.string(mail.body);
    }
    if (name == "job") {
      return each_member(scanner, variables);
    }
    constexpr int kDepth = 2;
    std::string ignored;
    return scanner.value(ignored, kDepth);
  });
  if (!good || !scanner.at_end() || mail.recipient.empty()) {
    return malformed();
  }
  return mail;
}

Result<> write_spool_mail(const std::string& directory, const SpoolMail& mail) {
  std::array<unsigned char, 8> random{};
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    return fail(errno_error(errno, "getrandom"));
  }
  std::string name = fmt::format("{:015}-", mail.at_ms);
  for (const unsigned char byte : random) {
    name += fmt::format("{:02x}", byte);
  }
  const std::string path = directory + "/" + name;
  const std::string partial = path + ".part";
  auto written = write_file(partial, to_text(mail));
  if (written && ::rename(partial.c_str(), (path + std::string(kEnding)).c_str()) != 0) {
    written = fail(errno_error(errno, fmt::format("rename {}", partial)));
  }
  if (!written) {
    ::unlink(partial.c_str());
  }
  return written;
}

bool is_spool_name(std::string_view name) {
  return name.ends_with(kEnding) &&
         std::ranges::all_of(name.substr(0, name.size() - kEnding.size()), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == '-';
         });
}

}  // namespace ceems::mail
