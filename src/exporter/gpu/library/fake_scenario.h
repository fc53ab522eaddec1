#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "testing/eventually.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::gpu {

/// The values that the fake libraries of tests/fake_gpu_libraries return during its lifetime. For
/// tests, one at a time: all use the same file, which the libraries find through the environment.
class FakeScenario {
 public:
  using Values = std::map<std::string, std::string>;

  explicit FakeScenario(Values values) : values_(std::move(values)) { write(); }
  ~FakeScenario() {
    values_.clear();
    write();
  }
  FakeScenario(const FakeScenario&) = delete;
  FakeScenario& operator=(const FakeScenario&) = delete;

  void set(const std::string& key, const std::string& value) {
    values_[key] = value;
    write();
  }
  /// Makes a function of the library hang until erase("hang"), and waits until it is called.
  [[nodiscard]] bool hang(const std::string& function) {
    const std::string mark = path().string() + ".hangs";
    std::filesystem::remove(mark);
    set("hang", function);
    return testing::eventually([&] { return std::filesystem::exists(mark); });
  }
  void erase(const std::string& key) {
    values_.erase(key);
    write();
  }

 private:
  static const std::filesystem::path& path() {
    static const testing::TempDir kDirectory;
    static const std::filesystem::path kPath = [] {
      const std::filesystem::path file = kDirectory.path() / "scenario";
      // NOLINTNEXTLINE(concurrency-mt-unsafe): once, before a fake library is loaded
      setenv("CEEMS_FAKE_GPU", file.c_str(), 1);
      return file;
    }();
    return kPath;
  }
  /// A library that reads at the same time sees the old or the new text.
  void write() const {
    const std::filesystem::path draft = path().string() + ".new";
    std::ofstream file(draft);
    for (const auto& [key, value] : values_) {
      file << key << ' ' << value << '\n';
    }
    file.close();
    std::filesystem::rename(draft, path());
  }

  Values values_;
};

}  // namespace ceems::exporter::gpu
