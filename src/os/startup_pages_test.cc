#include "os/startup_pages.h"

#include <atomic>
#include <fstream>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::os {
namespace {

/// Resident pages of mapped files in kB, as /proc/self/status tells (proc(5)).
long resident_of_files() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "RssFile:") {
      long kilobytes = 0;
      status >> kilobytes;
      return kilobytes;
    }
  }
  return -1;
}

struct Shape {
  virtual ~Shape() = default;
  [[nodiscard]] virtual int corners() const = 0;
};
struct Square : Shape {
  [[nodiscard]] int corners() const override { return 4; }
};

std::vector<std::unique_ptr<Shape>> shapes() {
  std::vector<std::unique_ptr<Shape>> all;
  all.push_back(std::make_unique<Square>());
  return all;
}

TEST(StartupPages, PagesOfFilesThatAreNotUsedAnyMoreAreNotResident) {
  const long before = resident_of_files();
  const std::size_t released = release_startup_pages();
  const long after = resident_of_files();
  ASSERT_GT(before, 0);
  EXPECT_GT(released, std::size_t{1} << 20U);
  EXPECT_LT(after, before / 2) << "of " << before << " kB";
}

TEST(StartupPages, WhatWasWrittenStays) {
  static int counter = 41;  // in a writable segment
  static const std::string kText(100, 'x');
  const auto all = shapes();  // a table of functions that linking has relocated
  ++counter;
  release_startup_pages();
  EXPECT_EQ(counter, 42);
  EXPECT_EQ(kText, std::string(100, 'x'));
  EXPECT_EQ(all.front()->corners(), 4);
  EXPECT_THROW(static_cast<void>(std::stoi("x")), std::invalid_argument);  // unwinding tables
}

TEST(StartupPages, OtherThreadsGoOn) {
  std::atomic<bool> stop = false;
  std::atomic<long> rounds = 0;
  std::jthread other([&] {
    while (!stop) {
      std::vector<int> numbers(1000);
      std::iota(numbers.begin(), numbers.end(), 0);
      ASSERT_EQ(std::accumulate(numbers.begin(), numbers.end(), 0), 499500);
      ++rounds;
    }
  });
  for (int i = 0; i < 50; ++i) {
    release_startup_pages();
  }
  const long seen = rounds;
  while (rounds == seen) {
    std::this_thread::yield();
  }
  stop = true;
}

}  // namespace
}  // namespace ceems::os
