// fuzz_seeds DIRECTORY [FILE]: runs every fuzz target on the saved seeds in DIRECTORY/NAME and on
// simple variations of them: truncated, with changed bytes, with repeated pieces, or combined from
// two seeds. The variations are always the same, so a finding can be reproduced.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

// NOLINTBEGIN(cppcoreguidelines-macro-usage): CMake makes the list of targets
#define CEEMS_FUZZ_TARGET(name) \
  extern "C" int fuzz_##name(const std::uint8_t* data, std::size_t size);
#include "fuzz_targets.inc"
#undef CEEMS_FUZZ_TARGET

namespace {

struct Target {
  const char* name;
  int (*run)(const std::uint8_t* data, std::size_t size);
};

#define CEEMS_FUZZ_TARGET(name) {#name, fuzz_##name},
const Target kTargets[] = {
#include "fuzz_targets.inc"
};
#undef CEEMS_FUZZ_TARGET
// NOLINTEND(cppcoreguidelines-macro-usage)

constexpr int kVariations = 300;  // per seed
constexpr std::size_t kMaxBytes = std::size_t{1} << 16U;

using Bytes = std::vector<std::uint8_t>;

Bytes read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Makes one to four small changes.
Bytes varied(Bytes bytes, const Bytes& other, std::mt19937& dice) {
  const auto below = [&dice](std::size_t limit) { return limit == 0 ? 0 : dice() % limit; };
  for (std::size_t change = 1 + below(4); change > 0; --change) {
    const auto at = static_cast<std::ptrdiff_t>(below(bytes.size() + 1));
    switch (below(6)) {
      case 0:
        bytes.resize(static_cast<std::size_t>(at));
        break;
      case 1:
        bytes.insert(bytes.begin() + at, static_cast<std::uint8_t>(dice()));
        break;
      case 2:
        if (!bytes.empty()) {
          bytes[below(bytes.size())] = static_cast<std::uint8_t>(dice());
        }
        break;
      case 3:
        if (!bytes.empty()) {
          bytes[below(bytes.size())] ^= static_cast<std::uint8_t>(1U << below(8));
        }
        break;
      case 4: {
        const Bytes piece(bytes.begin() + at, bytes.end());
        bytes.insert(bytes.begin() + at, piece.begin(), piece.end());
        break;
      }
      default:
        bytes.resize(static_cast<std::size_t>(at));
        bytes.insert(bytes.end(),
                     other.begin() + static_cast<std::ptrdiff_t>(below(other.size() + 1)),
                     other.end());
    }
  }
  bytes.resize(std::min(bytes.size(), kMaxBytes));
  return bytes;
}

const char* kept_input = nullptr;  // the file for the current input, to examine a finding

/// Never passes a null pointer, like libFuzzer.
void give(const Target& target, const Bytes& input) {
  constexpr std::uint8_t kNothing = 0;
  if (kept_input != nullptr) {
    std::ofstream(kept_input, std::ios::binary)
        .write(reinterpret_cast<const char*>(input.data()),  // NOLINT(*-reinterpret-cast): bytes
               static_cast<std::streamsize>(input.size()));
  }
  target.run(input.empty() ? &kNothing : input.data(), input.size());
}

std::size_t run(const Target& target, const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory / target.name)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> seeds{{}};
  for (const auto& path : paths) {
    seeds.push_back(read(path));
  }
  std::mt19937 dice(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): a constant seed, on purpose
  std::size_t inputs = 0;
  for (const Bytes& seed : seeds) {
    give(target, seed);
    ++inputs;
    for (int i = 0; i < kVariations; ++i) {
      give(target, varied(seed, seeds[dice() % seeds.size()], dice));
      ++inputs;
    }
  }
  return inputs;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fputs("usage: fuzz_seeds DIRECTORY [FILE-FOR-THE-CURRENT-INPUT]\n", stderr);
    return 2;
  }
  kept_input = argc == 3 ? argv[2] : nullptr;
  try {
    for (const Target& target : kTargets) {
      std::printf("%s: ", target.name);
      std::fflush(stdout);  // show the name of a target that hangs
      std::printf("%zu inputs\n", run(target, argv[1]));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz_seeds: %s\n", error.what());
    return 1;
  }
  return 0;
}
