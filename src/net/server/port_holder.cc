#include "net/server/port_holder.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "base/strings.h"

namespace ceems::net {

namespace fs = std::filesystem;

namespace {

std::string file_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::optional<std::uint64_t> hex(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

/// True if the process has one of the sockets open.
bool holds(const fs::path& process, const std::vector<std::string>& sockets) {
  std::error_code error;
  for (fs::directory_iterator entry(process / "fd", error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    const std::string target = fs::read_symlink(entry->path(), ignored).string();
    if (std::ranges::find(sockets, target) != sockets.end()) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<std::uint64_t> listening_inodes(std::string_view table, std::uint16_t port) {
  constexpr std::string_view kListen = "0A";
  std::vector<std::uint64_t> inodes;
  while (!table.empty()) {
    std::string_view line = take_until(table, '\n');
    std::vector<std::string_view> words;
    for (std::string_view word = take_word(line); !word.empty() && words.size() < 10;
         word = take_word(line)) {
      words.push_back(word);
    }
    // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
    if (words.size() < 10 || words[3] != kListen) {
      continue;
    }
    const std::size_t colon = words[1].find(':');
    const auto inode = parse_int(words[9]);
    if (colon != std::string_view::npos && inode && hex(words[1].substr(colon + 1)) == port) {
      inodes.push_back(*inode);
    }
  }
  return inodes;
}

std::string port_holder(std::uint16_t port, const fs::path& proc) {
  std::vector<std::string> sockets;
  for (const char* table : {"net/tcp", "net/tcp6"}) {
    for (const std::uint64_t inode : listening_inodes(file_text(proc / table), port)) {
      sockets.push_back(fmt::format("socket:[{}]", inode));
    }
  }
  if (sockets.empty()) {
    return {};
  }
  std::error_code error;
  for (fs::directory_iterator entry(proc, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string pid = entry->path().filename().string();
    if (parse_int(pid) && holds(entry->path(), sockets)) {
      const std::string name(trim(file_text(entry->path() / "comm")));
      return fmt::format("process {} ({})", pid, printable(name, 32));
    }
  }
  return {};
}

}  // namespace ceems::net
