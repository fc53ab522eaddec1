// The minimum cost of a scrape: a bare program that only reads the files that the exporter reads.
//
//   floor (open|kept) PASSES < list
//   floor pulse MICROSECONDS
//
// Each line of the list is a path. A path that ends in "/" is a directory to list. "open" opens,
// reads and closes every file in each pass; "kept" opens each file once and reads it again with
// pread. Prints the CPU microseconds and bytes of one pass. "pulse" reads nothing: it uses that
// much CPU time twice a second until it is killed, as a job whose counters move.
#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/strings.h"

namespace {

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// The number of bytes in one file, which is read from start to end.
std::size_t read_all(int fd, std::vector<char>& buffer) {
  std::size_t total = 0;
  while (true) {
    const ssize_t count = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(total));
    if (count <= 0) {
      return total;
    }
    total += static_cast<std::size_t>(count);
    if (static_cast<std::size_t>(count) < buffer.size()) {
      return total;
    }
  }
}

/// The number of bytes in the names of a directory.
std::size_t list(const std::string& path) {
  DIR* const directory = ::opendir(path.c_str());
  std::size_t bytes = 0;
  if (directory != nullptr) {
    while (const dirent* entry = ::readdir(directory)) {
      bytes += entry->d_reclen;
    }
    ::closedir(directory);
  }
  return bytes;
}

int open_file(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

[[noreturn]] void pulse(double seconds) {
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 500'000'000};
  while (true) {
    for (const double end = cpu_seconds() + seconds; cpu_seconds() < end;) {
    }
    ::nanosleep(&kPause, nullptr);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc == 3 ? argv[1] : "";
  const auto passes = argc == 3 ? ceems::parse_int<int>(argv[2]) : std::nullopt;
  if ((mode != "open" && mode != "kept" && mode != "pulse") || !passes || *passes < 1) {
    std::fputs("usage: floor (open|kept) PASSES < list of paths\n       floor pulse MICROSECONDS\n",
               stderr);
    return 2;
  }
  if (mode == "pulse") {
    pulse(*passes / 1e6);
  }
  std::vector<std::string> paths;
  for (std::string line; std::getline(std::cin, line);) {
    paths.push_back(line);
  }
  std::vector<ceems::UniqueFd> kept;
  if (mode == "kept") {
    for (const std::string& path : paths) {
      kept.emplace_back(open_file(path));
    }
  }
  std::vector<char> buffer(std::size_t{64} << 10U);
  std::size_t bytes = 0;
  double start = 0;
  for (int pass = 0; pass <= *passes; ++pass) {  // the first pass is the warm-up
    if (pass == 1) {
      start = cpu_seconds();
      bytes = 0;
    }
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (paths[i].ends_with('/')) {
        bytes += list(paths[i]);
      } else if (mode == "kept") {
        bytes += read_all(kept[i].get(), buffer);
      } else {
        const ceems::UniqueFd fd(open_file(paths[i]));
        bytes += read_all(fd.get(), buffer);
      }
    }
  }
  const double count = *passes;
  std::printf("%.1f %.0f\n", (cpu_seconds() - start) * 1e6 / count,
              static_cast<double>(bytes) / count);
  return 0;
}
