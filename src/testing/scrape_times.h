#pragma once

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace ceems::testing {

/// Measures scrapes, without the delay that a busy machine adds by waking threads up late.
class ScrapeTimes {
 public:
  template <class Scrape>
  void add(const Scrape& scrape) {
    took_.push_back(milliseconds_of(scrape));
    const auto nap = std::chrono::milliseconds(1);
    late_ = std::max(late_, milliseconds_of([&] { std::this_thread::sleep_for(nap); }) - 1);
  }
  /// In milliseconds, less the longest late wake-up that was seen.
  [[nodiscard]] double percentile_99() const {
    std::vector<double> sorted = took_;
    std::ranges::sort(sorted);
    return sorted.at(sorted.size() * 99 / 100 - 1) - late_;
  }

 private:
  template <class Work>
  static double milliseconds_of(const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
        .count();
  }

  std::vector<double> took_;
  double late_ = 0;
};

}  // namespace ceems::testing
